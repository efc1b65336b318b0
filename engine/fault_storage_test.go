package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

func TestFault_StorageWatchBreaks(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	f.put("a")
	f.storage.BreakWatches(errOutage)
	f.put("a")
	f.pass(time.Second)
	f.requireReads(w, "ADDED a@2", "MODIFIED a@3")
	s := f.engine.Stats()
	require.Equal(t, [2]uint64{1, 0}, [2]uint64{s.Source.Outages, s.Relists}, "nothing was lost, so there is no need to list")
	require.ErrorIs(t, s.Source.LastError, errOutage)
}

func TestFault_StorageListFailsForAWhile(t *testing.T) {
	var told []error
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) {
		c.OnError = func(err error) { told = append(told, err) }
	})
	w := f.watch(engine.WatchOptions{})
	f.put("a")
	f.fault(5, faulty.Fail(errOutage), faulty.OpList)
	f.storage.ExpireWatches()
	f.put("a")
	f.pass(200 * time.Millisecond)
	_, err := f.engine.Watch(t.Context(), engine.WatchOptions{})
	require.ErrorIs(t, err, engine.ErrIdle, "it waits for the cache, and time stands still")
	require.False(t, f.engine.Stats().Ready)
	f.pass(20 * time.Second)
	require.True(t, f.engine.Stats().Ready)
	f.requireReads(w, "ADDED a@2", "MODIFIED a@3 synthetic")
	f.put("a")
	f.requireReads(w, "MODIFIED a@4")
	outages := 0
	for _, err := range told {
		if errors.Is(err, errOutage) {
			outages++
		}
	}
	require.Equal(t, 5, outages, "every failure was told: %v", told)
}

func TestFault_StorageCannotBeListed(t *testing.T) {
	var executor *advancing
	f := newFixture(t, func(host *engine.HostConfig, _ *engine.Config[thing]) {
		executor = &advancing{Seeded: host.Executor.(singleStepping).Seeded, clock: host.Clock.(*clock.Virtual)}
		host.Executor = executor
	})
	f.fault(0, faulty.Fail(errOutage), faulty.OpList)
	f.storage.ExpireWatches()
	f.pass(time.Second)
	executor.seconds = 60
	_, err := f.engine.Watch(t.Context(), engine.WatchOptions{})
	var notReady *engine.NotReadyError
	require.ErrorAs(t, err, &notReady)
	require.ErrorIs(t, err, errOutage, "it says why")
	require.Positive(t, notReady.RetryAfter)
	require.GreaterOrEqual(t, executor.seconds, 60-4, "it gave up after FreshnessTimeout")
	executor.seconds = 0
}

// "closed" alone says neither what is closed nor of which engine.
func TestFault_StorageIsClosedUnderTheEngine(t *testing.T) {
	var told []error
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) {
		c.Name, c.OnError = "things", func(err error) { told = append(told, err) }
	})
	f.put("z")
	w := f.watch(engine.WatchOptions{})
	require.NoError(t, f.storage.Close())
	f.pass(time.Second)
	_, create := f.engine.Create(t.Context(), thing{Key: "a"})
	_, get := f.engine.Get(t.Context(), "a", engine.GetOptions{})
	_, list := f.engine.List(t.Context(), engine.ListOptions{})
	_, remove := f.engine.Delete(t.Context(), "a", engine.DeleteOptions{})
	for _, err := range append(told, create, get, list, remove) {
		require.ErrorIs(t, err, store.ErrClosed)
		require.NotErrorIs(t, err, engine.ErrEngineClosed)
		require.EqualError(t, err, "the backend of engine things is closed")
	}
	require.NotEmpty(t, told)
	require.True(t, f.engine.Stats().Ended)
	require.EqualError(t, w.Err(), w.Name()+": storage has ended for good: closed")
	cached, err := f.engine.List(t.Context(), engine.ListOptions{Read: engine.Cached()})
	require.NoError(t, err)
	require.Len(t, cached.Items, 1)
}

func TestFault_StorageLosesAChange(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	f.put("a")
	f.fault(1, faulty.LoseEvent(), faulty.OpNext)
	f.put("b") // lost
	f.put("c")
	f.pass(5 * time.Second)
	f.requireReads(w, "ADDED a@2", "ADDED b@3 synthetic", "ADDED c@4 synthetic")
	s := f.engine.Stats()
	require.Equal(t, [3]uint64{1, 1, 2}, [3]uint64{s.Source.Skipped, s.Relists, s.Synthetic})
	require.ErrorIs(t, s.Source.LastError, reflector.ErrLost)
}

// No list shows what was emitted, so the next one that is tells of it.
func TestFault_StorageLosesAnEmittedValue(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	emit := func() {
		_, err := f.engine.Emit(t.Context(), thing{Key: "x", App: "web"})
		require.NoError(t, err)
		f.executor.Run()
	}
	emit()
	f.fault(1, faulty.LoseEvent(), faulty.OpNext)
	emit() // lost
	f.put("a")
	f.pass(5 * time.Second)
	f.storage.ExpireWatches()
	f.pass(5 * time.Second) // a list that misses nothing
	emit()
	emit()
	f.requireReads(w, "EMITTED x@2", "ADDED a@4 synthetic", "EMITTED x@5 after-gap", "EMITTED x@6")
	s := f.engine.Stats()
	require.Equal(t, [2]uint64{2, 1}, [2]uint64{s.Relists, s.Unseen})
}

// Storage whose revisions are not all events may have emitted whenever a list skips some.
func TestFault_SparseStorageMayHaveLostAnEmittedValue(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) {
		c.Backend = faulty.New(c.Backend, faulty.Options{Sparse: true})
	})
	w := f.watch(engine.WatchOptions{})
	emit := func() {
		_, err := f.engine.Emit(t.Context(), thing{Key: "x", App: "web"})
		require.NoError(t, err)
	}
	f.storage.ExpireWatches()
	emit() // lost
	f.pass(5 * time.Second)
	emit()
	emit()
	f.executor.Run()
	f.requireReads(w, "EMITTED x@3 after-gap", "EMITTED x@4")
	require.Zero(t, f.engine.Stats().Unseen)
}

func TestFault_StorageRepeatsAChange(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	f.put("a")
	f.fault(1, faulty.RepeatEvent(), faulty.OpNext)
	f.put("b")
	f.pass(5 * time.Second)
	f.put("c")
	f.requireReads(w, "ADDED a@2", "ADDED b@3", "ADDED c@4")
	s := f.engine.Stats()
	require.Equal(t, [2]uint64{1, 1}, [2]uint64{s.Source.Repeated, s.Relists})
}

// A replica that lags serves an old list once; that is not believed.
func TestFault_StorageListsAnOldStateOnce(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	f.put("a")
	f.fault(0, func(_ context.Context, c *faulty.Call, _ func()) {
		c.Page = &backend.List{Revision: 1, Items: []*store.Object{}}
	}, faulty.OpList)
	f.storage.ExpireWatches()
	for f.engine.Stats().Source.Repeated == 0 {
		f.pass(100 * time.Millisecond)
	}
	f.heal()
	f.put("b")
	f.pass(5 * time.Second)
	f.requireReads(w, "ADDED a@2", "ADDED b@3 synthetic")
	require.Equal(t, engine.Revision(3), f.engine.Revision())
}

// Storage was restored from a backup: no revision means anything any more, and
// every watch ends with the reason.
func TestFault_StorageGoesBackInTime(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	conflating := f.watch(engine.WatchOptions{Policy: engine.Conflate, Labels: "app=web"})
	for range 5 {
		f.put("a")
	}
	f.requireReads(w, "ADDED a@2", "MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5", "MODIFIED a@6")
	require.NoError(t, f.storage.Replace(f.newMemory()).Close())
	f.pass(10 * time.Second)
	f.put("b")

	require.Equal(t, engine.Revision(2), f.engine.Revision())
	for _, w := range []*engine.Watch[thing]{w, conflating} {
		_, end := f.read(w)
		var expired *engine.ExpiredError
		require.ErrorAs(t, end, &expired)
	}
	l, err := f.engine.List(t.Context(), engine.ListOptions{})
	require.NoError(t, err)
	require.Len(t, l.Items, 1)
	again := f.watch(engine.WatchOptions{From: l.Revision})
	f.put("c")
	f.requireReads(again, "ADDED c@3")
	s := f.engine.Stats()
	require.Equal(t, [2]uint64{1, 2}, [2]uint64{s.Source.Relists[reflector.Future], s.Expired}, "storage itself said that the revision is to come")
}

// Writes that were acknowledged before storage went back are no longer to come.
func TestFault_StorageThatWentBackLeavesNoWatchBehind(t *testing.T) {
	f := newFixture(t, nil)
	for range 5 {
		f.put("a")
	}
	require.NoError(t, f.storage.Replace(f.newMemory()).Close())
	f.pass(10 * time.Second)
	w := f.watch(engine.WatchOptions{})
	require.Zero(t, w.Lag())
	f.put("b")
	require.EqualValues(t, 1, w.Lag())
}

// Writes made while the cache does not watch storage, which may go back unnoticed then, are no
// longer to come, either.
func TestFault_StorageThatWentBackUnwatchedLeavesNoWatchBehind(t *testing.T) {
	f := newReadFixture(t, func(c *engine.Config[pod]) { c.Backend = sameStorage{c.Backend.(*faulty.Backend)} })
	f.put("a", "web", 1)
	unwatched := f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpWatch}, Do: faulty.Fail(errDown)})
	f.storage.BreakWatches(errDown)
	f.settle()
	require.False(t, f.Stats().Ready)
	for n := range 5 {
		f.put("b", "web", n)
	}
	f.goBack()
	f.put("a", "web", 1)
	f.put("c", "web", 1)
	unwatched.Remove()
	require.NoError(t, f.within(time.Minute).WaitReady(t.Context()))
	require.Equal(t, engine.Revision(3), f.Revision())
	require.Zero(t, f.Stats().Relists)
	w, err := f.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	require.Zero(t, w.Lag())
	w.Stop()
	f.settle()
}

// A write to storage that is replaced before the write returns was lost with it.
func TestFault_AWriteThatIsAnsweredAfterStorageWentBackLeavesNoWatchBehind(t *testing.T) {
	f := newFixture(t, nil)
	for range 5 {
		f.put("a")
	}
	written, answer := make(chan struct{}), make(chan struct{})
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpPut}, Times: 1, Do: func(_ context.Context, _ *faulty.Call, proceed func()) {
		proceed()
		close(written)
		<-answer
	}})
	answered := make(chan engine.Revision)
	go func() {
		o, err := f.engine.Put(context.Background(), thing{Key: "lost"})
		if err != nil {
			t.Error(err)
			close(answered)
			return
		}
		answered <- o.Revision
	}()
	<-written
	require.NoError(t, f.storage.Replace(f.newMemory()).Close())
	f.pass(10 * time.Second)
	close(answer)
	require.EqualValues(t, 7, <-answered)
	w := f.watch(engine.WatchOptions{})
	require.Zero(t, w.Lag())
	f.put("b")
	require.EqualValues(t, 1, w.Lag())
}

// A revision that a consumer has of storage that was replaced is not a resume point in the storage
// that has come to the same revision since, if the checkpoint is of the watch's timeline.
func TestFault_CheckpointOfATimelineIsOfTheStorageBefore(t *testing.T) {
	f := newFixture(t, nil)
	timeline, err := f.engine.Timeline(t.Context())
	require.NoError(t, err)
	w := f.watch(engine.WatchOptions{From: 1, Timeline: timeline})
	f.put("a")
	f.requireReads(w, "ADDED a@2")
	saved := engine.Checkpoint{Store: timeline.Store(), Revision: w.Revision()}
	from, err := f.engine.RevisionOf(t.Context(), saved)
	require.NoError(t, err)
	require.EqualValues(t, 2, from)

	require.NoError(t, f.storage.Replace(f.newMemory()).Close())
	f.pass(10 * time.Second)
	f.put("b")
	f.put("c")
	_, err = f.engine.RevisionOf(t.Context(), saved)
	require.ErrorIs(t, err, engine.ErrForeignCheckpoint)
}

// nameless is storage that does not tell its identity.
type nameless struct{ backend.Backend }

func (n nameless) Traits() backend.Traits {
	t := n.Backend.Traits()
	t.Identifies = false
	return t
}

func (n nameless) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	l, err := n.Backend.List(ctx, opts)
	if l != nil {
		l.StoreID = ""
	}
	return l, err
}

// A compaction was of the history before: in the new one its revision means nothing.
func TestFault_StorageGoesBackBehindACompaction(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.Backend = nameless{c.Backend} })
	for range 5 {
		f.put("a")
	}
	require.NoError(t, f.engine.Compact(t.Context(), 6))
	require.NoError(t, f.storage.Replace(f.newMemory()).Close())
	f.pass(10 * time.Second)
	f.put("b")
	f.put("c")
	f.requireReads(f.watch(engine.WatchOptions{From: 2}), "ADDED c@3")
}

// requireFinal demands the end of a watch whose storage has ended for good.
func requireFinal(t *testing.T, end error) {
	t.Helper()
	require.ErrorIs(t, end, engine.ErrNotReady)
	require.ErrorIs(t, end, store.ErrClosed)
	notReady, _ := errors.AsType[*engine.NotReadyError](end)
	require.True(t, notReady.Final)
}

func TestFault_StorageIsClosedForGood(t *testing.T) {
	f := newFixture(t, nil)
	idle, handled, behind := f.watch(engine.WatchOptions{}), []string{}, f.watch(engine.WatchOptions{})
	handler, err := f.engine.Handle(t.Context(), engine.WatchOptions{}, func(ev engine.Event[thing]) { handled = append(handled, ev.String()) })
	require.NoError(t, err)
	future := f.watch(engine.WatchOptions{From: 9})
	f.put("a")
	f.requireReads(idle, "ADDED a@2")
	require.NoError(t, f.storage.Close())
	f.pass(10 * time.Second)
	for w, events := range map[*engine.Watch[thing]][]string{idle: nil, behind: {"ADDED a@2"}, future: nil} {
		seen, end := f.read(w)
		require.Equal(t, events, seen, "it gets what there is")
		requireFinal(t, end)
	}
	requireFinal(t, handler.Err())
	require.Equal(t, []string{"ADDED a@2"}, handled)
	s := f.engine.Stats()
	require.False(t, s.Ready)
	require.Equal(t, reflector.Ended, s.Source.Phase, "there is nothing to come back to")
	require.ErrorIs(t, s.Source.LastError, store.ErrClosed)
	_, err = f.engine.Put(t.Context(), thing{Key: "a"})
	require.ErrorIs(t, err, store.ErrClosed)
	l, err := f.engine.List(t.Context(), engine.ListOptions{Read: engine.Cached()})
	require.NoError(t, err, "what was cached is still there")
	require.Len(t, l.Items, 1)
}

// Storage was restored and has gone on to the revision that it had before: only its
// identity says that each revision may have other content now.
func TestFault_StorageComesBackAtTheSameRevisionWithOtherContent(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	pending := f.watch(engine.WatchOptions{From: 9})
	for _, key := range []string{"a", "b", "c"} {
		f.put(key)
	}
	f.requireReads(w, "ADDED a@2", "ADDED b@3", "ADDED c@4")
	require.NoError(t, f.storage.Replace(f.newMemory()).Close())
	for _, key := range []string{"a", "x", "c"} {
		f.put(key)
	}
	f.pass(10 * time.Second)

	require.Equal(t, uint64(1), f.engine.Stats().Source.Relists[reflector.Restored])
	for _, ended := range []*engine.Watch[thing]{w, pending} {
		_, end := f.read(ended)
		require.ErrorIs(t, end, engine.ErrExpired)
	}
	l, err := f.engine.List(t.Context(), engine.ListOptions{Read: engine.Cached()})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "c", "x"}, []string{l.Items[0].Key, l.Items[1].Key, l.Items[2].Key})
	require.NoError(t, f.engine.Verify(t.Context()))
}

func TestFault_WhatFollowsTheEngineEndsWithItsStorage(t *testing.T) {
	f := newFixture(t, nil)
	var told []error
	followed, err := informer.New(informer.Config[thing]{
		Source: f.engine.Source(), Host: f.engine.Host(), OnError: func(err error) { told = append(told, err) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, followed.Close()) })
	f.put("a")
	f.pass(time.Second)
	require.NoError(t, f.storage.Close())
	f.pass(2 * time.Second)
	requireFinal(t, followed.Err())
	require.Len(t, told, 3, "the watch has ended, cannot be resumed, and never will be")
	require.NotNil(t, followed.Get("a"), "it has what there is")
	_, err = f.engine.Source().Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	requireFinal(t, err)
}
