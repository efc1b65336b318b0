package informer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
)

// What is behind a handler that blocks for good is bounded by the objects that
// there are, however many came and went.
func TestPain_ConflationIsBoundedByLiveObjects(t *testing.T) {
	c := newConflation(func(a, b *Object[string]) bool { return a.Created == b.Created })
	lives := &Object[string]{Key: "lives", Revision: 1}
	c.fold([]Notification[string]{added(lives, Change)})
	for i := range store.Revision(10_000) {
		o := &Object[string]{Key: fmt.Sprint(i), Revision: i + 2}
		c.fold([]Notification[string]{added(o, Change)})
		c.fold([]Notification[string]{{Type: store.Deleted, Cause: Change, Old: o, Object: o.Gone(o.Revision, o.Written)}})
		require.LessOrEqual(t, len(c.order), minConflation+4)
	}
	require.Equal(t, 1, c.len())
	require.Equal(t, []Notification[string]{added(lives, Change)}, c.notifications())
}
