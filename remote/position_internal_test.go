package remote

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
)

// A server that sends events of one revision without end takes no more memory for their keys. What is not
// noted may come twice.
func TestPosition_KeysOfOneRevisionAreBounded(t *testing.T) {
	p := position{through: 5}
	send := func(n int) bool {
		return p.read(store.Event{Type: store.Deleted, Revision: 7, Object: &store.Object{Key: strconv.Itoa(n)}})
	}
	for n := range 2 * maxKeys {
		require.True(t, send(n))
	}
	require.Equal(t, maxKeys, len(p.keys))
	require.Equal(t, store.Revision(6), p.after(), "there may be more")
	p.connected()
	require.False(t, send(maxKeys-1))
	require.True(t, send(maxKeys))
	require.Equal(t, maxKeys, len(p.keys))
	require.True(t, p.read(store.Event{Type: store.Bookmark, Revision: 7}))
	require.Equal(t, store.Revision(7), p.after())
}
