package remote_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store/backend"
)

// The largest numbers mean no limit, and do not overflow.
func TestConfig_LargestNumbersAreNoLimit(t *testing.T) {
	origin := newServer(t)
	origin.create("a", 1)
	b := backendAt(t, origin.url, func(cfg *remote.Config) {
		cfg.Buffer, cfg.MaxList = math.MaxInt, math.MaxInt
		cfg.WatchTimeout, cfg.RequestTimeout, cfg.MaxPause = math.MaxInt64, math.MaxInt64, math.MaxInt64
	})
	_, err := b.Get(t.Context(), "default/a")
	require.NoError(t, err)
	list, err := b.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	w, err := b.Watch(t.Context(), backend.WatchOptions{From: list.Revision, Notify: func() {}})
	require.NoError(t, err)
	w.Close()
}
