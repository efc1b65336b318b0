package store_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
)

// TestDiff_Scenarios runs testdata/diff. Its one command is
//
//	diff after=R through=R     with the lines "old: …" and "new: …", each a list
//	                           of key@revision, or key@revision/created if the
//	                           object was not created at revision 1; prints the
//	                           events. That they lead from old to new is checked
//	                           each time.
func TestDiff_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/diff", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			require.Equal(t, "diff", d.Cmd, "unknown command")
			old, is := store.NewTree(), store.NewTree()
			for line := range strings.SplitSeq(d.Input, "\n") {
				if objects, ok := strings.CutPrefix(line, "old:"); ok {
					fill(t, old, objects)
				} else if objects, ok := strings.CutPrefix(line, "new:"); ok {
					fill(t, is, objects)
				} else {
					t.Fatalf("%s: unknown line %q", d.Pos, line)
				}
			}
			events := store.Diff(things, old.View(), is.View(), revisionArg(t, d, "after"), revisionArg(t, d, "through"), time.Time{})
			requireLeadsTo(t, old, is, events)
			return printEvents(events)
		})
	})
}

// fill puts objects written as "key@revision" or "key@revision/created" into
// the tree.
func fill(t *testing.T, tree *store.Tree, objects string) {
	for word := range strings.FieldsSeq(objects) {
		tree.Put(parseWritten(t, word))
	}
}

func parseWritten(t *testing.T, word string) *store.Object {
	key, revs, ok := strings.Cut(word, "@")
	require.True(t, ok, "%q is not key@revision", word)
	rev, created, ok := strings.Cut(revs, "/")
	if !ok {
		created = "1"
	}
	return newThing(store.Object{Key: key, Revision: parseRevision(t, rev), Created: parseRevision(t, created)})
}

func parseRevision(t *testing.T, s string) store.Revision {
	n, err := strconv.ParseUint(s, 10, 64)
	require.NoError(t, err)
	return store.Revision(n)
}

func revisionArg(t *testing.T, d *datadriven.TestData, name string) store.Revision {
	var n uint64
	d.ScanArgs(t, name, &n)
	return store.Revision(n)
}

// printEvents prints one event to a line.
func printEvents(events []store.Event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintln(&b, ev)
	}
	if len(events) == 0 {
		return "nothing"
	}
	return b.String()
}

// requireLeadsTo checks that the events turn old into is, and say the truth
// about the state before each.
func requireLeadsTo(t require.TestingT, old, is *store.Tree, events []store.Event) {
	state := store.TreeOf(old.View())
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
	require.Equal(t, keysAndRevisions(is.View()), keysAndRevisions(state.View()))
}

// keysAndRevisions returns a state as text, "a@1 b@2".
func keysAndRevisions(v *store.TreeView) string {
	var words []string
	for o := range v.All("", "") {
		words = append(words, o.Key+"@"+o.Revision.String())
	}
	return strings.Join(words, " ")
}
