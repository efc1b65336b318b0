package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// A call whose context is done says why, be it served by the cache or by storage.
func TestCalls_FailWithTheCauseOfTheirContext(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache = noCache })
		first, err := e.Create(ctx, pod{Name: "a"})
		require.NoError(t, err)
		last, err := e.Put(ctx, pod{Name: "a", N: 1})
		require.NoError(t, err)
		require.NoError(t, e.WaitForRevision(ctx, last.Revision))

		enough := errors.New("enough")
		done, cancel := context.WithCancelCause(ctx)
		cancel(enough)
		list := func(r engine.Read) error {
			_, err := e.List(done, engine.ListOptions{Read: r})
			return err
		}
		for name, err := range map[string]error{
			"Create":     errorOf(e.Create(done, pod{Name: "b"})),
			"CreateWith": errorOf(e.CreateWith(done, pod{Name: "b"}, engine.CreateOptions{TTL: time.Minute})),
			"Put":        errorOf(e.Put(done, pod{Name: "a"})),
			"Update": errorOf(e.Update(done, "a", func(p pod) (pod, error) {
				p.N++
				return p, nil
			}, engine.UpdateOptions{})),
			"Delete":             errorOf(e.Delete(done, "a", engine.DeleteOptions{})),
			"Emit":               errorOf(e.Emit(done, pod{Name: "b"})),
			"Compact":            e.Compact(done, last.Revision),
			"Get Latest":         errorOf(e.Get(done, "a", engine.GetOptions{Read: engine.Latest()})),
			"Get Exactly":        errorOf(e.Get(done, "a", engine.GetOptions{Read: engine.Exactly(first.Revision)})),
			"List Latest":        list(engine.Latest()),
			"List Exactly":       list(engine.Exactly(first.Revision)),
			"List NotOlderThan":  list(engine.NotOlderThan(last.Revision + 1)),
			"Watch":              errorOf(e.Watch(done, engine.WatchOptions{})),
			"Watch Linearizable": errorOf(e.Watch(done, engine.WatchOptions{Linearizable: true})),
		} {
			require.ErrorIs(t, err, enough, fmt.Sprint(name, ", without a cache: ", noCache))
		}
	}
}
