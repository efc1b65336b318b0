package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
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

// A loop that is in the middle of a batch has the rest of it still to come, also if that has
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

// The last revision of storage that others write to may be no event of any watch.
func TestDrain_WithoutACacheAsksStorageHowFarItIs(t *testing.T) {
	l := newLasting(t)
	l.traits = func(t *backend.Traits) { t.Contiguous, t.Shared = false, true }
	l.watch = askedOnly
	host := newHost(t, engine.HostConfig{Clock: enginetest.NewVirtualClock(), Executor: engine.NewSeeded(1)})
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host, c.Backend, c.NoCache = host, l, true })
	var got []string
	_, err := e.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[pod]) { got = append(got, ev.Key()) })
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "mine"})
	require.NoError(t, err)
	require.ErrorIs(t, host.Await(ctx, nil), engine.ErrIdle)
	_, err = l.Emit(ctx, draftOf(cfg(), pod{Name: "other"}))
	require.NoError(t, err)
	require.NoError(t, e.Drain(ctx))
	require.Equal(t, []string{"mine"}, got)
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

// The context ends first: the error names the watches that had not had everything,
// and no others, and the engine is closed.
func TestDrain_NamesThoseThatWereNotGivenEverything(t *testing.T) {
	f := newFixture(t, nil)
	idle := f.watch(engine.WatchOptions{Name: "idle", Key: "other"})
	slow := f.watch(engine.WatchOptions{Name: "slow"})
	slower := f.watch(engine.WatchOptions{Name: "slower", InitialState: true})
	for range 100 {
		f.put("a")
	}
	for range slow.Events() {
		break
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	err := f.engine.Drain(ctx)
	var undelivered *engine.UndeliveredError
	require.ErrorAs(t, err, &undelivered)
	require.ErrorIs(t, err, engine.ErrUndelivered)
	require.ErrorIs(t, err, enough)
	require.Equal(t, []engine.Undelivered{
		{Name: "slower", Events: 100, Initial: true}, {Name: "slow", Events: 99, Revision: 2},
	}, undelivered.Watches)
	require.ErrorContains(t, err, "slow: 99 events behind, at revision 2")
	require.ErrorContains(t, err, "slower: 100 events behind, at revision 0, and the rest of its initial state")
	for _, w := range []*engine.Watch[thing]{idle, slow, slower} {
		require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
	}
	require.NoError(t, f.engine.Close())
}

// The cause of its context may be that another engine is closed.
func TestDrain_IsCutShortByTheEndOfAnotherEngine(t *testing.T) {
	f := newFixture(t, nil)
	f.watch(engine.WatchOptions{})
	f.put("a")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(engine.ErrEngineClosed)
	require.ErrorIs(t, f.engine.Drain(ctx), engine.ErrUndelivered)
}

// Also a Drain that waits for another one, or is cut short by Close, says what was dropped.
func TestDrain_EachSaysWhatWasDropped(t *testing.T) {
	for name, cutShort := range map[string]func(context.Context, *engine.Engine[pod]){
		"another Drain": func(ctx context.Context, e *engine.Engine[pod]) { _ = e.Drain(ctx) },
		"Close":         func(_ context.Context, e *engine.Engine[pod]) { _ = e.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := engine.New(cfg())
				require.NoError(t, err)
				_, err = e.Watch(t.Context(), engine.WatchOptions{Name: "unread"})
				require.NoError(t, err)
				_, err = e.Put(t.Context(), pod{Name: "a"})
				require.NoError(t, err)
				drained := make(chan error, 2)
				for range cap(drained) {
					go func() { drained <- e.Drain(t.Context()) }()
					synctest.Wait()
				}
				done, cancel := context.WithCancel(t.Context())
				cancel()
				cutShort(done, e)
				for range cap(drained) {
					var late *engine.UndeliveredError
					require.ErrorAs(t, <-drained, &late)
					require.Len(t, late.Watches, 1)
					require.ErrorIs(t, late, engine.ErrEngineClosed)
				}
				require.ErrorIs(t, e.Drain(t.Context()), engine.ErrUndelivered, "once more")
			})
		})
	}
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

// Storage that cannot be reached holds up Drain until its context ends.
func TestDrain_WaitsForStorage(t *testing.T) {
	f := newSeededFixture(t, 1)
	f.fault(0, faulty.Hang(), faulty.OpNext)
	w := f.watch(engine.WatchOptions{})
	f.write("a")
	err := f.engine.Drain(t.Context())
	var undelivered *engine.UndeliveredError
	require.ErrorAs(t, err, &undelivered)
	require.Len(t, undelivered.Watches, 1)
	require.EqualValues(t, 1, undelivered.Watches[0].Events)
	require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
}

// So does storage that cannot say how far it is: what the cache has is delivered meanwhile.
func TestDrain_AsksStorageUntilItAnswers(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		t.Run(fmt.Sprint("noCache=", noCache), func(t *testing.T) {
			f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = noCache })
			got := 0
			_, err := f.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) { got++ })
			require.NoError(t, err)
			_, err = f.Put(t.Context(), pod{Name: "a"})
			require.NoError(t, err)
			f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpRevision}, Times: 20, Do: faulty.Fail(errDown)})
			require.NoError(t, f.within(time.Minute).Drain(t.Context()))
			require.Equal(t, 1, got)
		})
	}
}

// Storage that is closed, or whose engine is, never answers.
func TestDrain_AsksNoMoreOnceNothingCanAnswer(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	require.NoError(t, f.storage.Close())
	require.ErrorIs(t, f.within(time.Minute).Drain(t.Context()), store.ErrClosed)

	f = newReadFixture(t)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpRevision}, Do: faulty.Fail(errDown)})
	f.clock.AfterFunc(time.Second, func() { require.NoError(t, f.Close()) })
	err := f.within(time.Hour).Drain(t.Context())
	require.ErrorIs(t, err, engine.ErrUndelivered)
	require.ErrorIs(t, err, engine.ErrEngineClosed)
}

func TestDrain_WithoutWatchesSaysThatNoneIsBehind(t *testing.T) {
	f := newSeededFixture(t, 1)
	f.fault(0, faulty.Hang(), faulty.OpNext)
	f.write("a")
	err := f.engine.Drain(t.Context())
	require.ErrorIs(t, err, engine.ErrUndelivered)
	require.ErrorContains(t, err, "not known whether everything was delivered: ")
	require.ErrorContains(t, err, "; no watch is behind what has arrived from storage")
}

// A cache that does not reach what was written is asked once, however short the wait of
// reads is.
func TestDrain_WaitsOnceWithoutATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cfg()
		inner, err := memory.New(c.Schema(), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(inner, faulty.Options{})
		c.Backend, c.FreshnessTimeout = storage, time.Nanosecond
		storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
		e, err := engine.New(c)
		require.NoError(t, err)
		synctest.Wait()
		_, err = e.Create(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		waits := e.Stats().Waits
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, e.Drain(ctx), context.DeadlineExceeded)
		require.Equal(t, waits+1, e.Stats().Waits)
		require.NoError(t, storage.Close())
	})
}

// Close drops what is not delivered, and names the watches.
func TestClose_NamesTheWatchesItCutsShort(t *testing.T) {
	host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch)})
	topic := engine.NewTopicWith[int](engine.TopicOptions{Host: host, FirstRevision: 1})
	_, err := topic.SubscribeWith(t.Context(), engine.SubscribeOptions{Name: "billing"}, func(int) {})
	require.NoError(t, err)
	publish(t, topic, 0, 100)
	require.NoError(t, topic.Close())
	require.Equal(t, []engine.Undelivered{{Name: "billing", Events: 100, Revision: 1}}, topic.Stats().Undelivered)
}

// The log has the number of all of them, of which a thousand are named.
func TestClose_CountsTheWatchesItCutsShort(t *testing.T) {
	var log bytes.Buffer
	host, err := engine.NewHost(engine.HostConfig{
		Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	topic := engine.NewTopicWith[int](engine.TopicOptions{Host: host})
	for range 1001 {
		_, err := topic.Subscribe(t.Context(), func(int) {})
		require.NoError(t, err)
	}
	publish(t, topic, 0, 1)
	require.NoError(t, topic.Close())
	late := &engine.UndeliveredError{Watches: topic.Stats().Undelivered, Cause: errDown}
	require.Len(t, late.Watches, 1000)
	require.Contains(t, log.String(), " watches=1001 ")
	require.ErrorContains(t, late, "; and at least 990 more")
}

func ExampleEngine_Drain() {
	ctx := context.Background()
	pods := newPods()
	handled := 0
	_, _ = pods.Handle(ctx, engine.WatchOptions{}, func(engine.Event[Pod]) { handled++ })
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		_, _ = pods.Create(ctx, Pod{Namespace: "default", Name: name})
	}
	fmt.Println(pods.Drain(ctx), handled)
	_, err := pods.Create(ctx, Pod{Namespace: "default", Name: "web-4"})
	fmt.Println(errors.Is(err, engine.ErrEngineClosed))
	// Output:
	// <nil> 3
	// true
}

func ExampleTopic_Drain() {
	ctx := context.Background()
	orders := engine.NewTopic[Order]()
	handled := 0
	_, _ = orders.Subscribe(ctx, func(Order) { handled++ })
	for n := range 100 {
		_, _ = orders.Publish(ctx, Order{ID: n})
	}
	fmt.Println(orders.Drain(ctx), handled)
	// Output: <nil> 100
}
