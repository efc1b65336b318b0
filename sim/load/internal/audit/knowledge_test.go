package audit_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/audit"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
)

// Events that stand for several cannot be counted. What counts is where they lead.
func TestWhoConflatesMustKnowTheNewestState(t *testing.T) {
	on := func(node string) *content.Attributes { return &content.Attributes{Fields: fields.Set{"node": node}} }
	var l audit.Ledger
	for _, e := range []audit.Entry{
		{Revision: 2, Key: "a", Attrs: on("1")}, {Revision: 3, Key: "b", Attrs: on("1")}, {Revision: 4, Key: "c", Attrs: on("1")},
		{Revision: 5, Key: "a", Attrs: on("1")}, {Revision: 6, Key: "b", Attrs: on("2")}, {Revision: 7, Key: "b"},
		{Revision: 8, Key: "a", Attrs: on("1"), Emitted: true},
	} {
		l.Note(e)
	}
	all, one, two := scenario.Selection{}, scenario.Selection{Fields: "node=1"}, scenario.Selection{Fields: "node=2"}
	expected := audit.Expect(slices.Values([]scenario.Selection{all, one, two}), &l)

	see := func(tr *audit.Trail, kind store.EventType, marks store.Marks, key string, rev engine.Revision) {
		o := &engine.Object[content.Item]{Key: key, Revision: rev}
		tr.See(&engine.Event[content.Item]{Type: kind, Marks: marks, Revision: rev, Object: o})
	}
	conflated := func(from engine.Revision, sel scenario.Selection, told func(*audit.Trail)) uint64 {
		var tr audit.Trail
		tr.Remember()
		tr.Begin(from)
		told(&tr)
		return expected.Ignorance(sel, &tr)
	}
	require.Zero(t, conflated(1, all, func(tr *audit.Trail) {
		see(tr, store.Added, store.Conflated, "a", 5)
		see(tr, store.Added, store.Conflated, "c", 4)
		see(tr, store.Emitted, 0, "a", 8)
	}))
	require.Equal(t, uint64(1), conflated(1, all, func(tr *audit.Trail) {
		see(tr, store.Added, store.Conflated, "a", 5)
	}), "it was not told of c")
	require.Equal(t, uint64(2), conflated(1, all, func(tr *audit.Trail) {
		see(tr, store.Added, 0, "a", 2)
		see(tr, store.Added, 0, "b", 3)
		see(tr, store.Added, 0, "c", 4)
	}), "a changed and b went")
	require.Zero(t, conflated(4, all, func(tr *audit.Trail) {
		see(tr, store.Modified, store.Conflated, "a", 5)
	}), "c was there before it came, and never changed")
	require.Zero(t, conflated(4, one, func(tr *audit.Trail) {
		see(tr, store.Modified, store.Conflated, "a", 5)
		see(tr, store.Deleted, store.Conflated, "b", 6)
	}), "b has left what it selects")
	require.Zero(t, conflated(1, two, func(*audit.Trail) {}), "of b nothing is left")
	require.Equal(t, uint64(1), conflated(1, all, func(tr *audit.Trail) {
		see(tr, store.Added, 0, "c", 4)
		tr.Listed(&engine.List[content.Item]{Revision: 7, Items: []*engine.Object[content.Item]{{Key: "a", Revision: 5}}})
	}), "a list is all there is, and c was not in it")
}

// The initial state is all there is; one that breaks off begins again.
func TestWhoConflatesKnowsTheInitialState(t *testing.T) {
	var l audit.Ledger
	l.Note(audit.Entry{Revision: 2, Key: "a", Attrs: &content.Attributes{}})
	l.Note(audit.Entry{Revision: 3, Key: "b", Attrs: &content.Attributes{}})
	l.Note(audit.Entry{Revision: 4, Key: "a"})
	expected := audit.Expect(slices.Values([]scenario.Selection{{}}), &l)
	var tr audit.Trail
	tr.Remember()
	for _, key := range []string{"a", "b"} { // a is gone when it comes back
		tr.Anew()
		tr.See(&engine.Event[content.Item]{Type: store.Added, Marks: store.Initial, Revision: 3, Object: &engine.Object[content.Item]{Key: key, Revision: 3}})
	}
	tr.See(&engine.Event[content.Item]{Type: store.Bookmark, Marks: store.InitialEnd, Revision: 4})
	require.Zero(t, expected.Ignorance(scenario.Selection{}, &tr))
	tr.Anew()
	require.Equal(t, uint64(1), expected.Ignorance(scenario.Selection{}, &tr))
}
