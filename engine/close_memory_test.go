package engine_test

import (
	"context"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// A context that goes on, as that of a process, keeps nothing of the engines and topics whose
// watches it would have ended.
func TestClose_ContextsOfItsWatchesKeepNothing(t *testing.T) {
	for name, noCache := range map[string]bool{"with a cache": false, "without a cache": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			object := closedWith(t, ctx, noCache)
			for object.Value() != nil {
				collect()
			}
		})
	}
}

// closedWith returns an object of an engine that had a watch of ctx and is closed.
func closedWith(t *testing.T, ctx context.Context, noCache bool) weak.Pointer[engine.Object[pod]] {
	c := cfg()
	c.NoCache = noCache
	e, err := engine.New(c)
	require.NoError(t, err)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	o, err := e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	_, err = w.Next(ctx)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	return weak.Make(o)
}
