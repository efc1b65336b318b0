package engine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// Each wait of a read is measured, also one in vain; what need not wait is not.
func TestMetrics_MeasureTheWaitsOfReads(t *testing.T) {
	var told ages
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.Metrics = &told })
	f.put("a", "web", 1)
	f.lists(listOf(engine.Latest()), "@2: a=1@2", "revision")
	require.Empty(t, told.waited(engine.WaitRead))

	f.within(time.Minute)
	require.ErrorIs(t, f.WaitForRevision(t.Context(), 9), engine.ErrFuture)
	require.Equal(t, []time.Duration{engine.DefaultFreshnessTimeout}, told.waited(engine.WaitRead))
	f.setHeld(true)
	f.put("a", "web", 2)
	f.clock.AfterFunc(time.Second, func() { f.setHeld(false) })
	f.lists(listOf(engine.Latest()), "@3: a=2@3", "revision")
	require.Equal(t, []time.Duration{engine.DefaultFreshnessTimeout, time.Second}, told.waited(engine.WaitRead))
	require.EqualValues(t, 2, f.Stats().Waits)
}

// The time until the cache is ready counts from the start, and from each loss of the
// source; the attempts that fail meanwhile are counted.
func TestMetrics_MeasureHowLongTheCacheIsNotReady(t *testing.T) {
	var told ages
	f := newStorageFixture(t)
	f.setDown(true)
	f.start(func(c *engine.Config[pod]) { c.Metrics = &told })
	f.pass(10 * time.Second)
	require.Empty(t, told.waited(engine.WaitReady))
	failed := f.Stats().Source.Failures
	require.Greater(t, failed, uint64(1), "each attempt of the outage")
	require.EqualValues(t, 1, f.Stats().Source.Outages)
	f.setDown(false)
	f.pass(time.Minute)
	require.Len(t, told.waited(engine.WaitReady), 1)
	require.GreaterOrEqual(t, told.waited(engine.WaitReady)[0], 10*time.Second)

	f.setDown(true)
	f.pass(20 * time.Second)
	require.Len(t, told.waited(engine.WaitReady), 1)
	f.setDown(false)
	f.pass(2 * time.Minute)
	waits := told.waited(engine.WaitReady)
	require.Len(t, waits, 2)
	require.EqualValues(t, len(waits), f.Stats().Generation)
	require.GreaterOrEqual(t, waits[1], 20*time.Second, "from when it ceased to be ready")
	require.Less(t, waits[1], 2*time.Minute)
	require.Greater(t, f.Stats().Source.Failures, failed)
}

// asking is metrics that look at the engine whenever they are told something.
type asking struct {
	engine.NoMetrics
	engine atomic.Pointer[engine.Engine[pod]]
	looks  atomic.Int64
}

func (a *asking) look() {
	if e := a.engine.Load(); e != nil {
		_, _ = e.Watches(), e.Stats()
		a.looks.Add(1)
	}
}

func (a *asking) Latency(string, engine.Stage, time.Duration) { a.look() }
func (a *asking) Ended(string, engine.WatchEnd)               { a.look() }
func (a *asking) Waited(string, engine.Wait, time.Duration)   { a.look() }

// No lock of the engine is held when metrics are told something: they may look at it.
func TestMetrics_MayLookAtTheEngine(t *testing.T) {
	for name, noCache := range map[string]bool{"with a cache": false, "without a cache": true} {
		t.Run(name, func(t *testing.T) {
			var metrics asking
			e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Metrics, c.NoCache = &metrics, noCache })
			metrics.engine.Store(e)
			pulled, err := e.Watch(ctx, engine.WatchOptions{})
			require.NoError(t, err)
			handled := make(chan struct{})
			ended, err := e.Handle(ctx, engine.WatchOptions{}, func(engine.Event[pod]) { close(handled) })
			require.NoError(t, err)
			o, err := e.Create(ctx, pod{Name: "a"})
			require.NoError(t, err)
			require.Equal(t, []string{"ADDED a@2"}, until(t, ctx, pulled, o.Revision))
			<-handled
			ended.Stop()
			require.NoError(t, ended.Wait(ctx))
			require.Positive(t, metrics.looks.Load())
		})
	}
}

// holding are metrics that hold the cache back when it becomes ready.
type holding struct {
	engine.NoMetrics
	held, leave chan struct{}
}

func (h holding) Waited(_ string, wait engine.Wait, _ time.Duration) {
	if wait == engine.WaitReady {
		close(h.held)
		<-h.leave
	}
}

// A cache that was held back, and has refused updates since, goes on with all of them.
func TestMetrics_ThatHoldTheCacheBackLoseItNothing(t *testing.T) {
	const writes = 200
	synctest.Test(t, func(t *testing.T) {
		metrics := holding{held: make(chan struct{}), leave: make(chan struct{})}
		c := cfg()
		c.Metrics = metrics
		e, err := engine.New(c)
		require.NoError(t, err)
		<-metrics.held
		for i := range writes {
			_, err := e.Create(t.Context(), pod{Name: fmt.Sprint(i)})
			require.NoError(t, err)
			synctest.Wait() // so each write is an update of its own
		}
		require.True(t, e.Stats().Source.Full)
		close(metrics.leave)
		synctest.Wait()
		list, err := e.List(t.Context(), engine.ListOptions{Read: engine.Cached()})
		require.NoError(t, err)
		require.Len(t, list.Items, writes)
		require.NoError(t, e.Close())
	})
}
