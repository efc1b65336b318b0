package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// TestTrail_JudgesConsumers runs testdata/trails, each with the writes to a storage and what
// a consumer received. The commands are:
//
//	write                  a line per write: revision, key, node; "-" deletes,
//	                       a "!" in front of the node emits
//	gap after=n through=n  the engine did not see these revisions
//	watch [fields=…] [policy=…]
//	                       a line per step of the consumer: begin n, reach n, seen n…,
//	                       state, initial n…, end n (InitialEnd), bookmark n,
//	                       list n n… (a list at a revision, of objects with these),
//	                       conflated n, synthetic n, gap n… and gap-bookmark n (marked
//	                       AfterGap), restart n n… (a new trail goes on with the position
//	                       of this one, and a list there), relist n n… (as restart, but its
//	                       list is a later one)
func TestTrail_JudgesConsumers(t *testing.T) {
	datadriven.Walk(t, "testdata/trails", func(t *testing.T, file string) {
		var l judge.Ledger
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "write":
				l = judge.Ledger{}
				for line := range strings.Lines(d.Input) {
					l.Note(parseEntry(t, line))
				}
				return ""
			case "gap":
				var after, through uint64
				d.ScanArgs(t, "after", &after)
				d.ScanArgs(t, "through", &through)
				l.Gap(store.Revision(after), store.Revision(through))
				return ""
			case "watch":
				return judged(t, d, &l)
			}
			d.Fatalf(t, "no command %q", d.Cmd)
			return ""
		})
	})
}

func parseEntry(t *testing.T, line string) judge.Entry {
	var e judge.Entry
	var node string
	if _, err := fmt.Sscan(line, &e.Revision, &e.Key, &node); err != nil {
		t.Fatal(line, err)
	}
	node, e.Emitted = strings.CutPrefix(node, "!")
	e.Deleted = node == "-"
	e.Fields = fields.Set{"node": node}
	return e
}

func judged(t *testing.T, d *datadriven.TestData, l *judge.Ledger) string {
	var sel judge.Selection
	if d.HasArg("fields") {
		d.ScanArgs(t, "fields", &sel.Fields)
	}
	if d.HasArg("prefix") {
		d.ScanArgs(t, "prefix", &sel.Prefix)
	}
	if d.HasArg("key") {
		d.ScanArgs(t, "key", &sel.Key)
	}
	tr := judge.Trail[string]{Policy: policy(t, d)}
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		switch words[0] {
		case "state":
			tr.ExpectState()
		case "list":
			tr.List(listOf(t, words[1:]))
		case "restart", "relist":
			p, ok := tr.Position()
			if !ok {
				return "there is no position\n"
			}
			tr = judge.Trail[string]{Policy: tr.Policy}
			if list := listOf(t, words[1:]); words[0] == "relist" {
				tr.Resume(nil, p)
				tr.List(list)
			} else {
				tr.Resume(list, p)
			}
		default:
			for _, number := range words[1:] {
				step(t, &tr, words[0], number)
			}
		}
	}
	tr.End()
	expected := judge.Expect(slices.Values([]judge.Selection{sel}), l)
	v := tr.Judge(expected, sel)
	verdict := "fine"
	if v.Failure != nil {
		verdict = v.Failure.Error()
	}
	return fmt.Sprintf("had to see %v\nlost %d; %s\n", expected.Revisions(sel), v.Lost, verdict)
}

// policy reads the policy of a consumer's watches.
func policy(t *testing.T, d *datadriven.TestData) (p engine.Policy) {
	if d.HasArg("policy") {
		var name string
		d.ScanArgs(t, "policy", &name)
		require.NoError(t, p.UnmarshalText([]byte(name)))
	}
	return p
}

func listOf(t *testing.T, numbers []string) *engine.List[string] {
	list := &engine.List[string]{Revision: revision(t, numbers[0])}
	for _, number := range numbers[1:] {
		list.Items = append(list.Items, &engine.Object[string]{Revision: revision(t, number)})
	}
	return list
}

func revision(t *testing.T, number string) (rev engine.Revision) {
	if _, err := fmt.Sscan(number, &rev); err != nil {
		t.Fatal(number, err)
	}
	return rev
}

func step(t *testing.T, tr *judge.Trail[string], verb, number string) {
	rev := revision(t, number)
	ev := engine.Event[string]{Type: engine.Modified, Revision: rev}
	switch verb {
	case "begin":
		tr.Begin(rev)
		return
	case "reach":
		tr.Reach(rev)
		return
	case "seen":
	case "initial":
		ev.Marks = engine.Initial
	case "bookmark":
		ev.Type = engine.Bookmark
	case "gap-bookmark":
		ev.Type, ev.Marks = engine.Bookmark, engine.AfterGap
	case "end":
		ev.Type, ev.Marks = engine.Bookmark, engine.InitialEnd
	case "conflated":
		ev.Marks = engine.Conflated
	case "gap":
		ev.Marks = engine.AfterGap
	case "synthetic":
		ev.Marks = engine.Synthetic
	default:
		t.Fatal(verb)
	}
	tr.Receive(&ev)
}

// An engine that still runs may list its storage again while a consumer is judged.
func TestTrail_IsJudgedWhileGapsAreNoted(t *testing.T) {
	var l judge.Ledger
	for rev := range store.Revision(100) {
		l.Note(judge.Entry{Revision: rev + 2, Key: "a"})
	}
	all := judge.Selection{}
	x := judge.Expect(slices.Values([]judge.Selection{all}), &l)
	var noting sync.WaitGroup
	noting.Go(func() {
		for rev := range store.Revision(100) {
			l.Gap(rev+1, rev+2)
		}
	})
	for range 100 {
		var trail judge.Trail[struct{}]
		trail.Begin(1)
		trail.Reach(101)
		trail.End()
		require.LessOrEqual(t, trail.Judge(x, all).Lost, uint64(100))
	}
	noting.Wait()
}

// The digest of a trail has revisions alone, so an event with a stale object would look like the one that
// was written.
func TestTrail_AnEventHasTheObjectOfItsRevision(t *testing.T) {
	var l judge.Ledger
	l.Note(judge.Entry{Revision: 2, Key: "a"})
	l.Note(judge.Entry{Revision: 3, Key: "a"})
	all := judge.Selection{}
	expected := judge.Expect(slices.Values([]judge.Selection{all}), &l)
	for _, last := range []engine.Revision{3, 2} {
		tr := judge.Trail[string]{Name: "w"}
		tr.Begin(1)
		tr.Receive(&engine.Event[string]{Type: engine.Added, Revision: 2, Object: &engine.Object[string]{Key: "a", Revision: 2}})
		tr.Receive(&engine.Event[string]{Type: engine.Modified, Revision: 3, Object: &engine.Object[string]{Key: "a", Revision: last}})
		tr.End()
		v := tr.Judge(expected, all)
		require.Zero(t, v.Lost)
		if last == 3 {
			require.Nil(t, v.Failure)
			continue
		}
		require.NotNil(t, v.Failure)
		require.EqualError(t, v.Failure, "atomic: w: it got MODIFIED at revision 3 with an object of revision 2")
	}
}
