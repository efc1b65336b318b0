package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// Only what initial states show is counted, per watch, and neither their bookmarks nor what
// comes after.
func TestStats_InitialEvents(t *testing.T) {
	for _, cached := range []bool{true, false} {
		t.Run(fmt.Sprintf("cached=%v", cached), func(t *testing.T) {
			e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache = !cached })
			for i := range 300 { // more than one batch
				_, err := e.Create(ctx, pod{Name: fmt.Sprint(i), App: []string{"web", "db", "db"}[i%3]})
				require.NoError(t, err)
			}
			all, err := e.Watch(ctx, engine.WatchOptions{InitialState: true, Linearizable: true, Bookmarks: true})
			require.NoError(t, err)
			web, err := e.Watch(ctx, engine.WatchOptions{InitialState: true, Linearizable: true, Labels: "app=web"})
			require.NoError(t, err)
			o, err := e.Create(ctx, pod{Name: "later", App: "web"})
			require.NoError(t, err)
			until(t, ctx, all, o.Revision)
			until(t, ctx, web, o.Revision)
			require.EqualValues(t, 400, e.Stats().InitialEvents)
		})
	}
}

// A watch from a revision is counted by whether the changes since were known.
func TestStats_Resumes(t *testing.T) {
	f := newReadFixture(t)
	first := f.put("a", "web", 1)
	second := f.put("a", "web", 2)
	for _, opts := range []engine.WatchOptions{{}, {InitialState: true}, {InitialState: true, From: second}, {Last: 1}} {
		_, err := f.Watch(t.Context(), opts)
		require.NoError(t, err)
	}
	require.Equal(t, [2]uint64{}, [2]uint64{f.Stats().Resumed, f.Stats().ResumesExpired})
	_, err := f.Watch(t.Context(), engine.WatchOptions{From: first})
	require.NoError(t, err)
	require.Equal(t, [2]uint64{1, 0}, [2]uint64{f.Stats().Resumed, f.Stats().ResumesExpired})
	require.NoError(t, f.Compact(t.Context(), second))
	_, err = f.Watch(t.Context(), engine.WatchOptions{From: first})
	require.ErrorIs(t, err, engine.ErrExpired)
	require.Equal(t, [2]uint64{1, 1}, [2]uint64{f.Stats().Resumed, f.Stats().ResumesExpired})
}
