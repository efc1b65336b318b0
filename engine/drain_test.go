package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// What was published before is handled before Drain returns, by handlers that run
// on threads of their own as well as on the pool.
func TestDrain_TopicDeliversAllThatWasPublished(t *testing.T) {
	for _, onPool := range []bool{false, true} {
		t.Run(fmt.Sprint("pool=", onPool), func(t *testing.T) {
			topic := engine.NewTopic[int]()
			var handled atomic.Int64
			s, err := topic.SubscribeWith(t.Context(), engine.SubscribeOptions{OnPool: onPool, Buffer: 1}, func(int) { handled.Add(1) })
			require.NoError(t, err)
			publish(t, topic, 0, 5000)
			require.NoError(t, topic.Drain(t.Context()))
			require.EqualValues(t, 5000, handled.Load())
			require.ErrorIs(t, s.Err(), engine.ErrEngineClosed)
			_, err = topic.Publish(t.Context(), 1)
			require.ErrorIs(t, err, engine.ErrEngineClosed)
			require.Empty(t, topic.Stats().Undelivered)
		})
	}
}

// Writers write as fast as they can while the engine is drained. Every watch, of
// every kind, is given all that they were told was written.
func TestDrain_DeliversAllThatWasAcknowledged(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		for round := range 20 {
			t.Run(fmt.Sprintf("noCache=%t/%d", noCache, round), func(t *testing.T) { drainBesideWriters(t, noCache) })
		}
	}
}

func drainBesideWriters(t *testing.T, noCache bool) {
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache = noCache })
	var c countingConsumers
	c.handle(t, ctx, e)
	c.pull(t, ctx, e)
	c.receive(t, ctx, e)
	watchWhatNeverComes(t, ctx, e)

	acknowledged := drainWhileWriting(t, ctx, e)
	c.running.Wait()
	for i := range c.counts {
		// A write that was told that watches may not be told of it may be delivered, if it
		// came in the middle.
		require.GreaterOrEqual(t, c.counts[i].Load(), acknowledged, "consumer %d", i)
		require.LessOrEqual(t, c.counts[i].Load(), acknowledged+2, "consumer %d", i)
	}
	require.Empty(t, e.Stats().Undelivered)
}

// A loop that was left in the middle of a batch has the rest of it still to come.
func TestDrain_WaitsForALoopThatWasLeft(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{Name: "left"})
	for _, key := range []string{"a", "b", "c"} {
		f.put(key)
	}
	for ev, err := range w.Events() {
		require.NoError(t, err)
		require.Equal(t, "a", ev.Key())
		break
	}
	var late *engine.UndeliveredError
	require.ErrorAs(t, f.engine.Drain(t.Context()), &late)
	require.Equal(t, []engine.Undelivered{{Name: "left", Events: 2, Revision: 2}}, late.Watches)
}

// A loop that is in the middle of a batch has the rest of it still to come, even if that has
// left the window.
func TestDrain_WaitsForALoopWhoseEventsHaveLeftTheWindow(t *testing.T) {
	for _, left := range []bool{false, true} {
		t.Run(fmt.Sprint("left before=", left), func(t *testing.T) {
			f := newReadFixture(t, func(c *engine.Config[pod]) { c.Window.MinAge = time.Second })
			w, err := f.Watch(t.Context(), engine.WatchOptions{Name: "in the middle"})
			require.NoError(t, err)
			for _, name := range []string{"a", "b", "c", "d"} {
				f.put(name, "web", 1)
			}
			for range w.Events() {
				if left {
					f.pass(3 * time.Second)
				}
				break
			}
			for ev, err := range w.Events() {
				require.NoError(t, err)
				require.Equal(t, "b", ev.Key())
				f.pass(3 * time.Second)
				require.Zero(t, f.Stats().WindowEvents)
				require.EqualValues(t, 2, w.Lag())
				require.Positive(t, w.Behind())
				var late *engine.UndeliveredError
				require.ErrorAs(t, f.Drain(t.Context()), &late)
				require.Equal(t, []engine.Undelivered{{Name: "in the middle", Events: 2, Revision: 3}}, late.Watches)
				break
			}
			require.Equal(t, uint64(2), f.Stats().Undelivered[0].Events)
		})
	}
}

// countingConsumers are consumers of every kind, which count the events they are given:
// two handlers, a watch that is pulled, and one that is received from a channel.
type countingConsumers struct {
	counts  [4]atomic.Int64
	running sync.WaitGroup // those with a goroutine of the test's own
}

func (c *countingConsumers) handle(t *testing.T, ctx context.Context, e *engine.Engine[pod]) {
	for i, labels := range []string{"", "app=web"} {
		_, err := e.Handle(ctx, engine.WatchOptions{Labels: labels}, func(engine.Event[pod]) { c.counts[i].Add(1) })
		require.NoError(t, err)
	}
}

func (c *countingConsumers) pull(t *testing.T, ctx context.Context, e *engine.Engine[pod]) {
	w, err := e.Watch(ctx, engine.WatchOptions{Labels: "app=web"})
	require.NoError(t, err)
	c.running.Go(func() {
		for _, err := range w.Events() {
			if err == nil {
				c.counts[2].Add(1)
			}
		}
	})
}

func (c *countingConsumers) receive(t *testing.T, ctx context.Context, e *engine.Engine[pod]) {
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	events := w.Chan()
	c.running.Go(func() {
		for range events {
			c.counts[3].Add(1)
		}
	})
}

// watchWhatNeverComes opens watches that are never read and have nothing to read: two
// that never begin, and one that selects nothing that is written.
func watchWhatNeverComes(t *testing.T, ctx context.Context, e *engine.Engine[pod]) {
	for _, opts := range []engine.WatchOptions{
		{From: 1 << 60}, {Labels: "app=none", From: 1 << 60}, {Labels: "app=none"},
	} {
		_, err := e.Watch(ctx, opts)
		require.NoError(t, err)
	}
}

// drainWhileWriting drains the engine while two writers create pods, and returns how
// many creations were acknowledged.
func drainWhileWriting(t *testing.T, ctx context.Context, e *engine.Engine[pod]) int64 {
	var acknowledged atomic.Int64
	var writers sync.WaitGroup
	begun := make(chan struct{}, 2)
	for g := range cap(begun) {
		writers.Go(func() {
			for n := range 1 << 30 {
				if _, err := e.Create(ctx, pod{Name: fmt.Sprintf("pod-%d-%d", g, n), App: "web"}); err != nil {
					if !errors.Is(err, engine.ErrEngineClosed) && !errors.Is(err, store.ErrClosed) {
						t.Error(err)
					}
					return
				}
				acknowledged.Add(1)
				if n == 100 {
					begun <- struct{}{}
				}
			}
		})
	}
	<-begun
	require.NoError(t, e.Drain(ctx))
	writers.Wait()
	return acknowledged.Load()
}

func TestDrain_RefusesWhatIsNew(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	f.put("a")
	err := f.engine.Drain(t.Context()) // which nothing reads: it is idle
	require.ErrorIs(t, err, engine.ErrUndelivered)
	require.ErrorIs(t, err, engine.ErrIdle)
	require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)

	e, ctx := newEngine(t, nil)
	held, release := make(chan struct{}), make(chan struct{})
	_, err = e.Handle(ctx, engine.WatchOptions{}, func(engine.Event[pod]) {
		close(held)
		<-release
	})
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	<-held
	var drained sync.WaitGroup
	drained.Go(func() {
		if err := e.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
	eventually(t, ctx, func() bool {
		_, err = e.Watch(ctx, engine.WatchOptions{})
		return errors.Is(err, engine.ErrDraining)
	})
	_, err = e.Put(ctx, pod{Name: "b"})
	require.ErrorIs(t, err, engine.ErrDraining)
	_, err = e.Get(ctx, "a", engine.GetOptions{})
	require.NoError(t, err, "reads go on")
	close(release)
	drained.Wait()
	require.NoError(t, e.Drain(ctx), "once more")
}

// As from two signals: the second waits, too, and cuts nothing short.
func TestDrain_ASecondOneWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(cfg())
		require.NoError(t, err)
		release, handled := make(chan struct{}), 0
		_, err = e.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {
			<-release
			handled++
		})
		require.NoError(t, err)
		for _, name := range []string{"a", "b"} {
			_, err = e.Put(t.Context(), pod{Name: name})
			require.NoError(t, err)
		}
		drained := make(chan error, 2)
		for range cap(drained) {
			go func() { drained <- e.Drain(t.Context()) }()
			synctest.Wait()
		}
		close(release)
		require.NoError(t, <-drained)
		require.NoError(t, <-drained)
		require.Equal(t, 2, handled)
		require.Empty(t, e.Stats().Undelivered)
	})
}

// A write that is on its way when Drain begins is delivered, or its caller learns
// that it was not.
func TestDrain_WriteOnItsWayIsDeliveredOrRefused(t *testing.T) {
	f := newFixture(t, nil)
	var drained error
	f.storage.Add(faulty.Rule{Ops: faulty.Writes, Times: 1, Do: faulty.Before(func(context.Context, *faulty.Call) {
		drained = f.engine.Drain(t.Context())
	})})
	_, err := f.engine.Create(t.Context(), thing{Key: "a"})
	require.NoError(t, drained)
	require.ErrorIs(t, err, engine.ErrDraining)
	require.ErrorIs(t, err, backend.ErrUncertain, "other errors say that nothing was written")
	require.ErrorContains(t, err, "took effect at revision 2")
}

// A write may be acknowledged while Drain waits for what was written before. It is waited for, too.
func TestDrain_WaitsForAWriteThatReturnsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(cfg().Schema(), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(inner, faulty.Options{})
		e, err := engine.New(cfgOver(storage))
		require.NoError(t, err)
		var handled []string
		_, err = e.Handle(t.Context(), engine.WatchOptions{}, func(ev engine.Event[pod]) { handled = append(handled, ev.Key()) })
		require.NoError(t, err)
		synctest.Wait()
		held := storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
		_, err = e.Create(t.Context(), pod{Name: "before"})
		require.NoError(t, err)

		written, write, drained := make(chan error, 1), make(chan struct{}), make(chan error, 1)
		storage.Add(faulty.Rule{Ops: faulty.Writes, Times: 1, Do: faulty.Before(func(context.Context, *faulty.Call) { <-write })})
		go func() { written <- errorOf(e.Create(t.Context(), pod{Name: "meanwhile"})) }()
		synctest.Wait()
		go func() { drained <- e.Drain(t.Context()) }()
		synctest.Wait()
		close(write)
		require.NoError(t, <-written)

		storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Times: 1, Do: batchesOf(1)})
		rest := storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Skip: 1, Do: faulty.Hang()})
		held.Remove()
		synctest.Wait()
		require.Equal(t, []string{"before"}, handled)
		rest.Remove()
		require.NoError(t, <-drained)
		require.Equal(t, []string{"before", "meanwhile"}, handled)
		require.NoError(t, storage.Close())
	})
}
