package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// A watch of a quiet object is told soon, and once, that storage has gone on.
func TestWatch_ProgressIsToldSoon(t *testing.T) {
	for name, noCache := range map[string]bool{"cache": false, "no cache": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cfg()
				c.NoCache = noCache
				e, err := engine.New(c)
				require.NoError(t, err)
				defer func() { require.NoError(t, e.Close()) }()
				w, err := e.Watch(t.Context(), engine.WatchOptions{Key: "quiet", Bookmarks: true, Progress: true})
				require.NoError(t, err)
				defer w.Stop()
				next := func() []string {
					began := time.Now()
					events, err := w.Next(t.Context())
					require.NoError(t, err)
					require.Less(t, time.Since(began), time.Second, "of virtual time")
					return names(events)
				}
				for _, name := range []string{"a", "b"} {
					_, err = e.Create(t.Context(), pod{Name: name})
					require.NoError(t, err)
				}
				require.Equal(t, []string{"BOOKMARK@3"}, next())
				_, err = e.Create(t.Context(), pod{Name: "quiet"})
				require.NoError(t, err)
				require.Equal(t, []string{"ADDED quiet@4"}, next())
				began := time.Now()
				events, err := w.Next(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{"BOOKMARK@4"}, names(events))
				require.Greater(t, time.Since(began), 30*time.Second, "of virtual time: it is that of each minute")
			})
		})
	}
}
