package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// newSeededFixture makes a fixture whose turns the seed draws.
// Time passes while calls wait.
func newSeededFixture(t *testing.T, seed uint64) *fixture {
	executor := &advancing{Seeded: actors.NewSeeded(seed), seconds: 60}
	f := newFixture(t, func(host *engine.HostConfig, _ *engine.Config[thing]) {
		executor.clock = host.Clock.(*clock.Virtual)
		host.Executor = executor
	})
	f.executor = executor.Seeded
	t.Cleanup(func() { executor.seconds = 0 })
	f.executor.Run()
	return f
}

// atEachTurn has the test begin at each turn of an engine whose storage has two
// creations and a deletion, at 6, that its cache learns by a list.
func atEachTurn(t *testing.T, test func(t *testing.T, f *fixture)) {
	for turns := range 20 {
		for seed := range uint64(25) {
			t.Run(fmt.Sprintf("turns=%d/seed=%d", turns, seed), func(t *testing.T) {
				f := newSeededFixture(t, seed)
				f.put("a")
				f.put("b")
				f.fault(0, faulty.Hang(), faulty.OpNext)
				f.write("c")
				f.write("d")
				_, err := f.engine.Delete(t.Context(), "a", engine.DeleteOptions{})
				require.NoError(t, err)
				f.heal()
				f.storage.ExpireWatches()
				f.executor.RunN(turns)
				test(t, f)
			})
		}
	}
}

// A list overtakes what happened up to revision 6 while a watch from 5 is on its
// way, wherever it is by then. What happened behind 5 is not known any more, so
// the watch either has seen it or expires.
func TestWatch_FromTheFutureExpiresIfAListOvertakesIt(t *testing.T) {
	expired := 0
	atEachTurn(t, func(t *testing.T, f *fixture) {
		w, err := f.engine.Watch(t.Context(), engine.WatchOptions{From: 5})
		if err == nil {
			f.pass(time.Second)
			var seen []string
			if seen, err = f.read(w); err == nil {
				require.Equal(t, []string{"DELETED a@6"}, seen)
				return
			}
		}
		require.ErrorIs(t, err, engine.ErrExpired)
		expired++
	})
	require.Positive(t, expired)
}

// A watch from now on begins behind what was acknowledged before, and is never
// refused or ended because a list comes at that moment.
func TestWatch_FromNowOnOutlivesAListThatOvertakesIt(t *testing.T) {
	for _, linearizable := range []bool{false, true} {
		t.Run(fmt.Sprint("linearizable=", linearizable), func(t *testing.T) {
			atEachTurn(t, func(t *testing.T, f *fixture) {
				w := f.watch(engine.WatchOptions{Linearizable: linearizable})
				f.write("e") // which the list may have, too
				f.pass(time.Second)
				seen, end := f.read(w)
				require.NoError(t, end)
				require.Len(t, seen, 1)
				require.Contains(t, seen[0], "ADDED e@7")
			})
		})
	}
}

func TestWatch_FromNowOnShowsNothingOfThePast(t *testing.T) {
	f := newFixture(t, nil)
	for range 20 {
		f.write("a") // of which the cache has not heard
		w := f.watch(engine.WatchOptions{})
		rev := f.write("b")
		seen, end := f.read(w)
		require.NoError(t, end)
		require.Len(t, seen, 1)
		require.Contains(t, seen[0], fmt.Sprintf("b@%d", rev))
	}
}

func TestTopic_SubscriptionFromNowOnShowsNothingOfThePast(t *testing.T) {
	topic := topicOn(t, engine.TopicOptions{})
	for n := range 300 {
		publish(t, topic, 2*n, 2*n+1)
		in := newInbox(1)
		s, err := topic.SubscribeWith(t.Context(), engine.SubscribeOptions{}, in.handle)
		require.NoError(t, err)
		publish(t, topic, 2*n+1, 2*n+2)
		require.Equal(t, []int{2*n + 1}, in.messages(t))
		s.Stop()
	}
}

// A watch lags from the moment that a write has returned.
func TestWatch_LagsBehindAWriteThatHasReturned(t *testing.T) {
	f := newFixture(t, nil)
	all, web := f.watch(engine.WatchOptions{}), f.watch(engine.WatchOptions{Labels: "app=web"})
	for n := range uint64(10) {
		f.write("a")
		require.Equal(t, [2]uint64{n + 1, n + 1}, [2]uint64{all.Lag(), web.Lag()})
	}
	_, _ = f.read(all)
	require.Zero(t, all.Lag())
}

// atOneRevision has storage commit all that is written at once in one revision.
func atOneRevision(schema store.Schema) faulty.Action {
	return faulty.After(func(_ context.Context, c *faulty.Call) {
		c.Batch.Events = slices.Clone(c.Batch.Events)
		for i, ev := range c.Batch.Events {
			o := schema.Clone(ev.Object)
			o.Revision = c.Batch.Through
			c.Batch.Events[i].Object, c.Batch.Events[i].Revision = o, c.Batch.Through
		}
	})
}

// Storage with several keys at one revision: a watch, or a source's, never says
// that it can be resumed from a revision of which it has handed out a part.
func TestWatch_IsResumedBehindWholeRevisionsOnly(t *testing.T) {
	schema := thingConfig().Schema()
	beneath, err := memory.New(schema, memory.Options{FirstRevision: 1, Clock: clock.NewVirtual(epoch)})
	require.NoError(t, err)
	storage := faulty.New(beneath, faulty.Options{Sparse: true})
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.Backend = storage })
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: atOneRevision(schema)})
	pulled := f.watch(engine.WatchOptions{Buffer: 1000})
	source, err := f.engine.Source().Watch(t.Context(), backend.WatchOptions{From: 1, Notify: func() {}})
	require.NoError(t, err)
	defer source.Close()
	for n := range 300 {
		f.write(fmt.Sprint("thing-", n))
	}
	f.executor.Run()

	given := 0
	for _, err := range pulled.Events() {
		require.NoError(t, err)
		if given++; given == 3 {
			break
		}
	}
	require.Equal(t, engine.Revision(1), pulled.Revision(), "a part of a revision is not all of it")
	pulled.Stop()
	again := f.watch(engine.WatchOptions{From: pulled.Revision()})
	seen, end := f.read(again)
	require.NoError(t, end)
	require.Len(t, seen, 300)
	require.Equal(t, engine.Revision(301), again.Revision())

	for taken := 0; taken < 300; {
		batch, err := source.Next(3)
		require.NoError(t, err)
		taken += len(batch.Events)
		require.Equal(t, taken, int(batch.Through-1), "all of what it says to have handed out")
	}
}

// The window passes a watch whose rest fits into its buffer, and one for which
// nothing has come: neither has lost anything.
func TestWatch_DoesNotExpireWithoutNeed(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) {
		c.Window = engine.Window{MinAge: 1, MaxEvents: 16, ChunkSize: 4}
	})
	slow := f.watch(engine.WatchOptions{Buffer: 30})
	future := f.watch(engine.WatchOptions{From: 10, Fields: "node=n1"})
	beside := f.watch(engine.WatchOptions{Fields: "node=n1"}) // of the stream that future joins
	for range 28 {
		f.put("a")
	}
	seen, end := f.read(slow)
	require.NoError(t, end)
	require.Len(t, seen, 28)
	for range 100 {
		f.put("a")
	}
	o, err := f.engine.Put(t.Context(), thing{Key: "b", Node: "n1"})
	require.NoError(t, err)
	f.requireReads(future, fmt.Sprintf("ADDED b@%d", o.Revision))
	f.requireReads(beside, fmt.Sprintf("ADDED b@%d", o.Revision))
}

// newUncachedFixture makes a fixture without a cache, over storage whose history
// has a hundred events at most.
func newUncachedFixture(t *testing.T) *fixture {
	clock := clock.NewVirtual(epoch)
	storage, err := memory.New(thingConfig().Schema(), memory.Options{
		Clock: clock, FirstRevision: 1, Retain: engine.Window{MinAge: time.Hour, MaxEvents: 100, ChunkSize: 10},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	f := newFixture(t, func(host *engine.HostConfig, c *engine.Config[thing]) {
		host.Clock, c.Backend, c.NoCache = clock, storage, true
	})
	f.clock = clock
	return f
}

func TestNoCache_BookmarkComesBeforeTheTimeout(t *testing.T) {
	f := newUncachedFixture(t)
	w := f.watch(engine.WatchOptions{Bookmarks: true, Timeout: 30 * time.Second})
	f.put("a")
	f.requireReads(w, "ADDED a@2")
	f.pass(29 * time.Second)
	f.requireReads(w, "BOOKMARK@2")
	f.pass(2 * time.Second)
	require.ErrorIs(t, w.Err(), engine.ErrDeadline)
}

func TestNoCache_SlowConsumerIsHeldToItsPolicy(t *testing.T) {
	f := newUncachedFixture(t)
	parked := f.watch(engine.WatchOptions{Labels: "app=web", Buffer: 5})
	terminated := f.watch(engine.WatchOptions{Labels: "app=web", Buffer: 5, Policy: engine.Terminate})
	for range 20 {
		f.put("a")
	}
	require.Equal(t, [2]bool{true, true}, [2]bool{parked.Stalled(), terminated.Stalled()})
	require.GreaterOrEqual(t, parked.Lag(), uint64(6))
	f.pass(10 * time.Second)
	require.ErrorIs(t, terminated.Err(), engine.ErrSlowConsumer)
	seen, end := f.read(parked)
	require.NoError(t, end)
	require.Len(t, seen, 20)
}

func TestNoCache_QuietKeyOutlivesWhatOthersWrite(t *testing.T) {
	f := newUncachedFixture(t)
	w := f.watch(engine.WatchOptions{Key: "quiet"})
	for range 1000 {
		f.put("busy")
	}
	f.put("quiet")
	f.requireReads(w, "ADDED quiet@1002")
}
