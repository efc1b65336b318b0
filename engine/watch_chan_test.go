package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

// Whatever ends a watch closes its channel, behind what was received, and Err
// says what it was.
func TestChan_IsClosedWhenTheWatchEnds(t *testing.T) {
	clock := clock.NewVirtual(epoch)
	cause := errors.New("the client left")
	for name, test := range map[string]struct {
		opts engine.WatchOptions
		end  func(e *engine.Engine[pod], w *engine.Watch[pod], leave context.CancelCauseFunc)
		want error
	}{
		"stop":     {want: engine.ErrStopped, end: func(_ *engine.Engine[pod], w *engine.Watch[pod], _ context.CancelCauseFunc) { w.Stop() }},
		"context":  {want: cause, end: func(_ *engine.Engine[pod], _ *engine.Watch[pod], leave context.CancelCauseFunc) { leave(cause) }},
		"close":    {want: engine.ErrEngineClosed, end: func(e *engine.Engine[pod], _ *engine.Watch[pod], _ context.CancelCauseFunc) { _ = e.Close() }},
		"deadline": {want: engine.ErrDeadline, opts: engine.WatchOptions{Timeout: time.Minute}, end: func(*engine.Engine[pod], *engine.Watch[pod], context.CancelCauseFunc) { clock.Advance(time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			engines(t, func(t *testing.T, change func(*engine.Config[pod])) {
				host := hostFor(t, engine.HostConfig{Clock: clock})
				e, ctx := newEngine(t, func(c *engine.Config[pod]) { change(c); c.Host = host })
				of, leave := context.WithCancelCause(ctx)
				defer leave(nil)
				w, err := e.Watch(of, test.opts)
				require.NoError(t, err)
				events := w.Chan()
				for n := range 3 {
					_, err := e.Put(ctx, pod{Name: "a", N: n})
					require.NoError(t, err)
					require.Equal(t, n, (<-events).Object.Value.N)
				}
				test.end(e, w, leave)
				ev, open := <-events
				require.False(t, open, "%v", ev)
				require.ErrorIs(t, w.Err(), test.want)
				require.Equal(t, uint64(3), w.Delivered())
			})
		})
	}
}

func TestChan_OfAnEndedWatchIsClosed(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	w.Stop()
	_, open := <-w.Chan()
	require.False(t, open)
	require.ErrorIs(t, w.Err(), engine.ErrStopped)
}

// The first consumer keeps the watch, whatever kind the second is.
func TestChan_SecondConsumerIsRefused(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	first := w.Chan()
	_, open := <-w.Chan()
	require.False(t, open)
	_, err = w.Next(ctx)
	require.ErrorIs(t, err, engine.ErrConsumerConflict)
	for _, err := range w.Batches() {
		require.ErrorIs(t, err, engine.ErrConsumerConflict)
	}
	_, err = e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	require.Equal(t, "a", (<-first).Key())
}

// Events are shared by all consumers, and the typed façade copies none of them to
// the heap.
func TestWatch_DeliveryAllocatesNothingPerEvent(t *testing.T) {
	const writes = 1000
	f := newFixture(t, nil)
	for range writes {
		f.put("a")
	}
	for name, consume := range map[string]func(w *engine.Watch[thing]) (seen int){
		"next": func(w *engine.Watch[thing]) (seen int) {
			for seen < writes {
				events, err := w.Next(t.Context())
				require.NoError(t, err)
				seen += len(events)
			}
			return seen
		},
		"events": func(w *engine.Watch[thing]) (seen int) {
			for ev := range w.Events() {
				if seen++; ev.Object.Value.N == writes {
					break
				}
			}
			return seen
		},
		"batches": func(w *engine.Watch[thing]) (seen int) {
			for events := range w.Batches() {
				if seen += len(events); seen == writes {
					break
				}
			}
			return seen
		},
	} {
		t.Run(name, func(t *testing.T) {
			allocations := testing.AllocsPerRun(10, func() {
				w := f.watch(engine.WatchOptions{From: 1})
				require.Equal(t, writes, consume(w))
				w.Stop()
				f.executor.Run()
			})
			require.Less(t, allocations, float64(writes/10))
		})
	}
}
