package objectcache

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// The cache closes while the supervisor, which has found that the entry needs a Reflector, is about
// to start one.
func TestEntry_StaysClosedWhateverArrives(t *testing.T) {
	e := newEntry("a")
	e.acquire()
	needed, _ := e.review(0, NeverIdle)
	require.True(t, needed)
	e.close()
	late := &sink{entry: e}
	e.follow(late)
	object := store.Header(&engine.Object[string]{Key: "a", Revision: 1})
	goOn, _ := e.take(late, object, false, 0)
	require.False(t, goOn, "the Reflector is told to end")
	require.Equal(t, closed, e.view.Load().phase)
	require.ErrorIs(t, e.view.Load().err, ErrClosed)
}
