package judge_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// Events that stand for several cannot be counted, but the state to which they add up can
// be compared.
func TestTrail_ConflatedEventsMustLeadToTheNewestState(t *testing.T) {
	on := func(node string) fields.Set { return fields.Set{"node": node} }
	var l judge.Ledger
	for _, e := range []judge.Entry{
		{Revision: 2, Key: "a", Fields: on("1")}, {Revision: 3, Key: "b", Fields: on("1")}, {Revision: 4, Key: "c", Fields: on("1")},
		{Revision: 5, Key: "a", Fields: on("1")}, {Revision: 6, Key: "b", Fields: on("2")}, {Revision: 7, Key: "b", Deleted: true},
		{Revision: 8, Key: "a", Fields: on("1"), Emitted: true},
	} {
		l.Note(e)
	}
	all, one, two := judge.Selection{}, judge.Selection{Fields: "node=1"}, judge.Selection{Fields: "node=2"}
	expected := judge.Expect(slices.Values([]judge.Selection{all, one, two}), &l)

	see := func(tr *judge.Trail[string], kind store.EventType, marks store.Marks, key string, rev engine.Revision) {
		o := &engine.Object[string]{Key: key, Revision: rev}
		tr.Receive(&engine.Event[string]{Type: kind, Marks: marks, Revision: rev, Object: o})
	}
	conflated := func(from engine.Revision, sel judge.Selection, told func(*judge.Trail[string])) uint64 {
		var tr judge.Trail[string]
		tr.KeepObjects()
		tr.Begin(from)
		told(&tr)
		return tr.Outdated(expected, sel)
	}
	require.Zero(t, conflated(1, all, func(tr *judge.Trail[string]) {
		see(tr, store.Added, store.Conflated, "a", 5)
		see(tr, store.Added, store.Conflated, "c", 4)
		see(tr, store.Emitted, 0, "a", 8)
	}))
	require.Equal(t, uint64(1), conflated(1, all, func(tr *judge.Trail[string]) {
		see(tr, store.Added, store.Conflated, "a", 5)
	}), "it was not told of c")
	require.Equal(t, uint64(2), conflated(1, all, func(tr *judge.Trail[string]) {
		see(tr, store.Added, 0, "a", 2)
		see(tr, store.Added, 0, "b", 3)
		see(tr, store.Added, 0, "c", 4)
	}), "a changed and b went")
	require.Zero(t, conflated(4, all, func(tr *judge.Trail[string]) {
		see(tr, store.Modified, store.Conflated, "a", 5)
	}), "c was there before it came, and never changed")
	require.Zero(t, conflated(4, one, func(tr *judge.Trail[string]) {
		see(tr, store.Modified, store.Conflated, "a", 5)
		see(tr, store.Deleted, store.Conflated, "b", 6)
	}), "b has left what it selects")
	require.Zero(t, conflated(1, two, func(*judge.Trail[string]) {}), "of b nothing is left")
	require.Equal(t, uint64(1), conflated(1, all, func(tr *judge.Trail[string]) {
		see(tr, store.Added, 0, "c", 4)
		tr.List(&engine.List[string]{Revision: 7, Items: []*engine.Object[string]{{Key: "a", Revision: 5}}})
	}), "a list is all there is, and c was not in it")
}

// An initial state is the whole state; one that breaks off starts again.
func TestTrail_InitialStateReplacesTheObjects(t *testing.T) {
	var l judge.Ledger
	l.Note(judge.Entry{Revision: 2, Key: "a"})
	l.Note(judge.Entry{Revision: 3, Key: "b"})
	l.Note(judge.Entry{Revision: 4, Key: "a", Deleted: true})
	expected := judge.Expect(slices.Values([]judge.Selection{{}}), &l)
	var tr judge.Trail[string]
	tr.KeepObjects()
	for _, key := range []string{"a", "b"} { // a has been deleted before the second state
		tr.ExpectState()
		tr.Receive(&engine.Event[string]{Type: store.Added, Marks: store.Initial, Revision: 3, Object: &engine.Object[string]{Key: key, Revision: 3}})
	}
	tr.Receive(&engine.Event[string]{Type: store.Bookmark, Marks: store.InitialEnd, Revision: 4})
	require.Zero(t, tr.Outdated(expected, judge.Selection{}))
	tr.ExpectState()
	require.Equal(t, uint64(1), tr.Outdated(expected, judge.Selection{}))
}
