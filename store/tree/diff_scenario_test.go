package tree_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
)

// TestDiff_Scenarios runs testdata. Its one command is
//
//	diff after=R through=R     with the lines "old: …" and "new: …", each a list
//	                           of key@revision, or key@revision/created if the
//	                           object was not created at revision 1; prints the
//	                           events. That they lead from old to new is checked
//	                           each time.
func TestDiff_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			require.Equal(t, "diff", d.Cmd, "unknown command")
			old, is := tree.New(), tree.New()
			for line := range strings.SplitSeq(d.Input, "\n") {
				if objects, ok := strings.CutPrefix(line, "old:"); ok {
					storetest.Fill(t, old, objects)
				} else if objects, ok := strings.CutPrefix(line, "new:"); ok {
					storetest.Fill(t, is, objects)
				} else {
					t.Fatalf("%s: unknown line %q", d.Pos, line)
				}
			}
			events := tree.Diff(storetest.Things, old.View(), is.View(), storetest.RevisionArg(t, d, "after"), storetest.RevisionArg(t, d, "through"), time.Time{})
			requireLeadsTo(t, old, is, events)
			return storetest.PrintEvents(events)
		})
	})
}

// requireLeadsTo checks that the events turn old into is, and say the truth
// about the state before each.
func requireLeadsTo(t require.TestingT, old, is *tree.Tree, events []store.Event) {
	state := tree.From(old.View())
	for _, ev := range events {
		before := state.Get(ev.Key())
		require.Same(t, before, ev.Prev, "Prev of %v", ev)
		switch ev.Type {
		case store.Deleted:
			require.NotNil(t, before, "%v of what is not there", ev)
			require.Equal(t, ev.Revision, ev.Object.Revision, "%v", ev)
			state.Delete(ev.Key())
		case store.Added:
			require.Nil(t, before, "%v of what is there", ev)
			state.Put(ev.Object)
		case store.Modified:
			require.NotNil(t, before, "%v of what is not there", ev)
			state.Put(ev.Object)
		default:
			t.Errorf("%v", ev)
		}
	}
	require.Equal(t, storetest.KeysAndRevisions(is.View()), storetest.KeysAndRevisions(state.View()))
}
