package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/audit"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
)

// The scenarios in testdata tell what was written and what a watcher saw, and
// have it judged:
//
//	write                  a line per write: revision, key, node; "-" deletes,
//	                       a "!" in front of the node emits
//	gap after=n through=n  the engine did not see these revisions
//	watch [fields=…]       a line per thing that the watcher went through: begin n,
//	                       reach n, seen n…, initial n…, anew, bookmark n, end n
//	                       (InitialEnd), list n n… (a list at a revision, of objects
//	                       with these), conflated n, synthetic n
func TestTrailText(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		var l audit.Ledger
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "write":
				l = audit.Ledger{}
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

func parseEntry(t *testing.T, line string) audit.Entry {
	var e audit.Entry
	var node string
	if _, err := fmt.Sscan(line, &e.Revision, &e.Key, &node); err != nil {
		t.Fatal(line, err)
	}
	node, e.Emitted = strings.CutPrefix(node, "!")
	if node != "-" {
		e.Attrs = &content.Attributes{Fields: fields.Set{"node": node}}
	}
	return e
}

func judged(t *testing.T, d *datadriven.TestData, l *audit.Ledger) string {
	var sel scenario.Selection
	if d.HasArg("fields") {
		d.ScanArgs(t, "fields", &sel.Fields)
	}
	if d.HasArg("prefix") {
		d.ScanArgs(t, "prefix", &sel.Prefix)
	}
	if d.HasArg("key") {
		d.ScanArgs(t, "key", &sel.Key)
	}
	var tr audit.Trail
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		switch words[0] {
		case "anew":
			tr.Anew()
		case "list":
			tr.Listed(listOf(t, words[1:]))
		default:
			for _, number := range words[1:] {
				walk(t, &tr, words[0], number)
			}
		}
	}
	tr.End()
	expected := audit.Expect(slices.Values([]scenario.Selection{sel}), l)
	v := expected.Verdict(sel, &tr)
	if v.Broken == "" {
		v.Broken = "nothing broken"
	}
	return fmt.Sprintf("had to see %v\nlost %d; %s\n", expected.Revisions(sel), v.Lost, v.Broken)
}

func listOf(t *testing.T, numbers []string) *engine.List[content.Item] {
	list := &engine.List[content.Item]{Revision: revision(t, numbers[0])}
	for _, number := range numbers[1:] {
		list.Items = append(list.Items, &engine.Object[content.Item]{Revision: revision(t, number)})
	}
	return list
}

func revision(t *testing.T, number string) (rev engine.Revision) {
	if _, err := fmt.Sscan(number, &rev); err != nil {
		t.Fatal(number, err)
	}
	return rev
}

func walk(t *testing.T, tr *audit.Trail, verb, number string) {
	rev := revision(t, number)
	ev := engine.Event[content.Item]{Type: engine.Modified, Revision: rev}
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
	case "end":
		ev.Type, ev.Marks = engine.Bookmark, engine.InitialEnd
	case "conflated":
		ev.Marks = engine.Conflated
	case "synthetic":
		ev.Marks = engine.Synthetic
	default:
		t.Fatal(verb)
	}
	tr.See(&ev)
}
