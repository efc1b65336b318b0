package informer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine/informer"
)

func TestClientRow123_HandlersStartWithTheStateAndGoOn(t *testing.T) {
	r := newRig(t, nil)
	early, _ := r.subscribe()
	r.write(pod{Name: "a"})
	r.write(pod{Name: "b"})
	r.executor.Run()
	require.Equal(t, []string{"ADDED a@2 initial", "ADDED b@3 initial"}, early.told())

	r.put(pod{Name: "a", N: 1})
	require.Equal(t, []string{"MODIFIED a@2→4 change"}, early.told())

	late, handle := r.subscribe()
	require.False(t, handle.HasSynced())
	require.NoError(t, handle.Synced(t.Context()))
	require.True(t, handle.HasSynced())
	require.Equal(t, []string{"ADDED a@4 replay", "ADDED b@3 replay"}, late.told())

	r.remove("b")
	require.Equal(t, []string{"DELETED b@5 change"}, late.told())
	require.Equal(t, []string{"DELETED b@5 change"}, early.told())
	require.Empty(t, r.reported())
}

func TestClientRow140_RelistIsUpdateAndAddAndNotInitial(t *testing.T) {
	r := newRig(t, nil)
	l, _ := r.subscribe()
	for _, name := range []string{"a", "b", "c"} {
		r.put(pod{Name: name})
	}
	l.told()
	r.relist(func() error {
		r.write(pod{Name: "b", N: 1})
		_, err := r.source.Delete("c")
		r.write(pod{Name: "d"})
		return err
	})
	require.Equal(t, []string{"DELETED c@7 relist stale", "MODIFIED b@3→5 relist", "ADDED d@7 relist"}, l.told())
}

func TestPain_ReadYourWrites(t *testing.T) {
	r := newRig(t, nil)
	rev := r.write(pod{Name: "a"})
	require.NoError(t, r.WaitForRevision(t.Context(), rev))
	require.Equal(t, rev, r.Get("a").Revision)

	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	cancel()
	err := r.WaitForRevision(ctx, rev+1)
	require.ErrorIs(t, err, context.Canceled)
}

func TestStats(t *testing.T) {
	r := newRig(t, nil)
	require.Zero(t, r.Stats())
	r.put(pod{Name: "a"})
	_, handle := r.subscribe()
	last := r.put(pod{Name: "b"})
	stats := r.Stats()
	require.Equal(t, 1, stats.Handlers)
	require.Equal(t, uint64(1), stats.Notifications, "a was in the first list")
	require.Equal(t, 2, stats.Objects)
	require.Equal(t, last, stats.Revision)
	require.Equal(t, uint64(1), stats.Source.Lists)
	require.NoError(t, handle.Remove(t.Context(), informer.Drain))
	require.Zero(t, r.Stats().Handlers)
}
