package storetest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// Fill puts things written as "key@revision" or "key@revision/created" into
// the tree. Without created, that is revision 1.
func Fill(t *testing.T, state *tree.Tree, objects string) {
	for word := range strings.FieldsSeq(objects) {
		state.Put(ParseWritten(t, word))
	}
}

// ParseWritten returns the thing that is written like that.
func ParseWritten(t *testing.T, word string) *store.Object {
	key, revs, ok := strings.Cut(word, "@")
	require.True(t, ok, "%q is not key@revision", word)
	rev, created, ok := strings.Cut(revs, "/")
	if !ok {
		created = "1"
	}
	return NewThing(store.Object{Key: key, Revision: ParseRevision(t, rev), Created: ParseRevision(t, created)})
}

// ParseRevision returns the revision with that decimal number.
func ParseRevision(t *testing.T, s string) store.Revision {
	n, err := strconv.ParseUint(s, 10, 64)
	require.NoError(t, err)
	return store.Revision(n)
}

// RevisionArg returns an argument of a command, a revision.
func RevisionArg(t *testing.T, d *datadriven.TestData, name string) store.Revision {
	var n uint64
	d.ScanArgs(t, name, &n)
	return store.Revision(n)
}

// PrintEvents prints one event to a line.
func PrintEvents(events []store.Event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintln(&b, ev)
	}
	if len(events) == 0 {
		return "nothing"
	}
	return b.String()
}
