package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// A call that is in progress when the engine closes fails with ErrEngineClosed, even if it
// finds the storage closed.
func TestClose_DuringACallThatNeedsStorage(t *testing.T) {
	type things = *engine.Engine[thing]
	const (
		cached   = 1
		uncached = 2
		either   = cached | uncached
	)
	for _, test := range []struct {
		name string
		when int
		call func(context.Context, things) error
	}{
		{"Create", either, func(ctx context.Context, e things) error { return errorOf(e.Create(ctx, thing{Key: "b"})) }},
		{"Put", either, func(ctx context.Context, e things) error { return errorOf(e.Put(ctx, thing{Key: "a"})) }},
		{"Delete", either, func(ctx context.Context, e things) error { return errorOf(e.Delete(ctx, "a", engine.DeleteOptions{})) }},
		{"Emit", either, func(ctx context.Context, e things) error { return errorOf(e.Emit(ctx, thing{Key: "a"})) }},
		{"Get", either, func(ctx context.Context, e things) error { return errorOf(e.Get(ctx, "a", engine.GetOptions{})) }},
		{"List", either, func(ctx context.Context, e things) error { return errorOf(e.List(ctx, engine.ListOptions{})) }},
		{"ByIndex", uncached, func(ctx context.Context, e things) error { return errorOf(e.ByIndex(ctx, "app", "web")) }},
		{"Watch", either, func(ctx context.Context, e things) error {
			return errorOf(e.Watch(ctx, engine.WatchOptions{Linearizable: true}))
		}},
		{"Compact", either, func(ctx context.Context, e things) error { return e.Compact(ctx, 2) }},
		{"Verify", cached, func(ctx context.Context, e things) error { return e.Verify(ctx) }},
		{"Source", cached, func(ctx context.Context, e things) error { return errorOf(e.Source().List(ctx, backend.ListOptions{})) }},
		{"WriterOf", either, func(ctx context.Context, e things) error { return errorOf(engine.WriterOf(e).Get(ctx, "a")) }},
	} {
		for _, cache := range []int{cached, uncached} {
			if test.when&cache == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/NoCache=%t", test.name, cache == uncached), func(t *testing.T) {
				f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) {
					c.NoCache, c.IndexLabels = cache == uncached, []string{"app"}
				})
				f.put("a")
				f.fault(1, faulty.Before(func(context.Context, *faulty.Call) {
					require.NoError(t, f.engine.Close())
					require.NoError(t, f.storage.Close())
				}))
				require.ErrorIs(t, test.call(t.Context(), f.engine), engine.ErrEngineClosed)
			})
		}
	}
}

// errorOf returns the error of a call alone.
func errorOf[V any](_ V, err error) error { return err }
