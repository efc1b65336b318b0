package load

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
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
//	                       reach n, seen n…, initial n, bookmark n, end n
//	                       (InitialEnd), conflated n, synthetic n
func TestTrailText(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		var l ledger
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "write":
				l = ledger{}
				for line := range strings.Lines(d.Input) {
					l.note(parseEntry(t, line))
				}
				return ""
			case "gap":
				var after, through uint64
				d.ScanArgs(t, "after", &after)
				d.ScanArgs(t, "through", &through)
				l.gap(store.Revision(after), store.Revision(through))
				return ""
			case "watch":
				return judged(t, d, &l)
			}
			d.Fatalf(t, "no command %q", d.Cmd)
			return ""
		})
	})
}

func parseEntry(t *testing.T, line string) entry {
	var e entry
	var node string
	if _, err := fmt.Sscan(line, &e.revision, &e.key, &node); err != nil {
		t.Fatal(line, err)
	}
	node, e.emitted = strings.CutPrefix(node, "!")
	if node != "-" {
		e.attrs = &attrs{fields: fields.Set{"node": node}}
	}
	return e
}

func judged(t *testing.T, d *datadriven.TestData, l *ledger) string {
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
	var tr trail
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		for _, number := range words[1:] {
			walk(t, &tr, words[0], number)
		}
	}
	tr.end()
	as := newAudiences()
	a := as.of(sel)
	as.judge(l)
	v := a.verdict(&tr, l.gaps)
	if v.broken == "" {
		v.broken = "nothing broken"
	}
	return fmt.Sprintf("had to see %v\nlost %d; %s\n", a.revisions, v.lost, v.broken)
}

func walk(t *testing.T, tr *trail, verb, number string) {
	var rev engine.Revision
	if _, err := fmt.Sscan(number, &rev); err != nil {
		t.Fatal(verb, number, err)
	}
	ev := engine.Event[item]{Type: engine.Modified, Revision: rev}
	switch verb {
	case "begin":
		tr.begin(rev)
		return
	case "reach":
		tr.reach(rev)
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
	tr.see(&ev)
}
