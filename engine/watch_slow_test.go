package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// Slow watches, started before and in the middle of concurrent writes, with
// every policy that keeps them and from every kind of start, never go back in
// time: what they are told after their initial state is newer each time, and so
// is where they say that they stand.
func TestWatch_SlowOnesNeverGoBackInTime(t *testing.T) {
	e, ctx := newEngine(t, nil)
	starts := []engine.WatchOptions{{}, {InitialState: true}, {InitialState: true, Linearizable: true}, {From: 1}, {Last: 20}}
	var consumers sync.WaitGroup
	start := func() {
		for i, opts := range starts {
			for _, policy := range []engine.Policy{engine.Park, engine.Conflate} {
				opts.Policy, opts.Buffer, opts.Bookmarks = policy, 1+i, i%2 == 0
				w, err := e.Watch(ctx, opts)
				require.NoError(t, err)
				consumers.Go(func() {
					if err := goesForward(ctx, w); err != nil {
						t.Errorf("%+v: %v", opts, err)
					}
				})
			}
		}
	}
	start()
	writers := churn(t, ctx, e, 3, 100)
	for n := range 5 {
		require.NoError(t, e.WaitForRevision(ctx, engine.Revision(50*(n+1))))
		start()
	}
	writers.Wait()
	_, err := e.Create(ctx, pod{Name: "end"})
	require.NoError(t, err)
	consumers.Wait()
	require.Positive(t, e.Stats().Stalls, "no watch was slow")
}

// goesForward reads slowly up to the object named end.
func goesForward(ctx context.Context, w *engine.Watch[pod]) error {
	defer w.Stop()
	last, stood := engine.Revision(0), engine.Revision(0)
	for ev, err := range w.Events() {
		switch {
		case err != nil:
			return err
		case ev.Is(engine.Initial):
			last = max(last, ev.Revision)
		case ev.Revision < last || ev.Revision == last && ev.Type != engine.Bookmark:
			return fmt.Errorf("%v after revision %d", ev, last)
		default:
			last = ev.Revision
		}
		if stands := w.Revision(); stands < stood {
			return fmt.Errorf("it stands at %d, and stood at %d", stands, stood)
		} else {
			stood = stands
		}
		if ev.Type != engine.Bookmark && ev.Key() == "end" {
			return nil
		}
		for range 20 {
			runtime.Gosched()
		}
	}
	return context.Cause(ctx)
}

// A reader stops reading while 200 objects of 100 KB are written, which another
// follows live. It is stalled, not ended; then it is given all of them, once
// and in order, and goes on live.
func TestWatch_SlowReaderSurvivesABurstOfLargeObjects(t *testing.T) {
	const writes, size = 200, 100 << 10
	e, ctx := newEngine(t, func(c *engine.Config[pod]) {
		c.Size = func(p pod) int { return len(p.App) }
		c.Labels = nil // the payload is not a label
	})
	slow, err := e.Watch(ctx, engine.WatchOptions{Buffer: 20})
	require.NoError(t, err)
	live, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	put := func(n int) engine.Revision {
		rev, err := revisionOf(e.Put(ctx, pod{Name: fmt.Sprint("pod-", n%10), App: strings.Repeat(string(rune('a'+n%26)), size), N: n}))
		require.NoError(t, err)
		return rev
	}
	first := put(0)
	require.Len(t, until(t, ctx, slow, first), 1)
	require.Len(t, until(t, ctx, live, first), 1)
	var last engine.Revision
	for n := 1; n <= writes; n++ {
		last = put(n)
		require.Len(t, until(t, ctx, live, last), 1, "a watch that keeps up is not delayed")
	}
	eventually(t, ctx, func() bool { return slow.Stalled() })
	require.NoError(t, slow.Err())
	require.GreaterOrEqual(t, e.Stats().WindowBytes, int64((writes-10)*size), "the window holds what it is behind, beside the ten newest states")

	for n := 1; n <= writes; {
		events, err := slow.Next(ctx)
		require.NoError(t, err)
		for _, ev := range events {
			require.Equal(t, n, ev.Object.Value.N)
			require.Len(t, ev.Object.Value.App, size)
			n++
		}
	}
	require.Equal(t, last, slow.Revision())
	require.Len(t, until(t, ctx, slow, put(0)), 1, "it is live again")
	s := e.Stats()
	require.Equal(t, [3]uint64{1, 0, 0}, [3]uint64{s.Stalls, s.Expired, s.Terminated})
}

// A consumer takes long over its initial state. The window moves on meanwhile, by less than the
// watch's buffer: the changes follow the state.
func TestWatch_SlowReaderOfTheInitialStateGetsTheChangesAfterIt(t *testing.T) {
	const objects, changes = 300, 50
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Window.MaxEvents = 10 })
	for n := range objects {
		_, err := e.Create(ctx, pod{Name: fmt.Sprintf("pod-%03d", n)})
		require.NoError(t, err)
	}
	slow, err := e.Watch(ctx, engine.WatchOptions{InitialState: true, Linearizable: true})
	require.NoError(t, err)
	seen, err := slow.Next(ctx)
	require.NoError(t, err)
	require.Less(t, len(seen), objects, "it is in the middle of the state")
	live, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	var last engine.Revision
	var changed []string
	for n := range changes {
		last, err = revisionOf(e.Put(ctx, pod{Name: "pod-000", N: n + 1}))
		require.NoError(t, err)
		changed = append(changed, until(t, ctx, live, last)...)
	}
	rest := until(t, ctx, slow, last)
	require.Len(t, rest, objects-len(seen)+changes)
	require.Equal(t, changed, rest[objects-len(seen):])
	require.Zero(t, e.Stats().Expired)
}

// A watch that once waited, and whose consumer has not come back since, is seen
// to lag like any other.
func TestWatch_ConsumerThatStoppedWaitingIsSeenToLag(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{Buffer: 5})
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = w.Next(gone)
	require.ErrorIs(t, err, context.Canceled)
	reader, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	for n := range 20 {
		rev, err := revisionOf(e.Put(ctx, pod{Name: "a", N: n + 1}))
		require.NoError(t, err)
		until(t, ctx, reader, rev)
	}
	require.True(t, w.Stalled())
	require.Equal(t, uint64(20), w.Lag())
	require.Len(t, until(t, ctx, w, 21), 20)
}

func TestWatch_ConsumerThatNeverReadsCostsOthersNothing(t *testing.T) {
	for _, policy := range []engine.Policy{engine.Park, engine.Terminate, engine.Conflate} {
		t.Run(policy.String(), func(t *testing.T) {
			f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.Window.MaxEvents = 100 })
			never := f.watch(engine.WatchOptions{Policy: policy, Buffer: 3})
			reader := f.watch(engine.WatchOptions{})
			for n := range 1000 {
				rev := f.put("a")
				seen, end := f.read(reader)
				require.NoError(t, end)
				require.Len(t, seen, 1, "write %d, revision %d", n, rev)
			}
			require.LessOrEqual(t, f.engine.Stats().WindowEvents, 100+25, "the one that never reads keeps nothing")
			require.Zero(t, never.Delivered())
		})
	}
}
