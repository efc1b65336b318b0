package reflector_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// blockingFixture is a Reflector of a source that blocks, on real executors, with a
// clock that the test advances.
type blockingFixture struct {
	source  *source
	mirror  *mirror
	clock   *clock.Virtual
	system  *actors.System
	errs    chan error
	entered chan struct{} // a call has begun
}

func newBlockingFixture(t *testing.T) *blockingFixture {
	r := &blockingFixture{source: newSource(), mirror: &mirror{}, errs: make(chan error, 100), entered: make(chan struct{}, 100)}
	r.source.traits.Blocks = true
	r.clock = clock.NewVirtual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	t.Cleanup(func() {
		require.Empty(t, r.mirror.broken, "guarantees of the Reflector")
		r.source.tidy(t)
	})
	r.system = newSystem(t, actors.SystemConfig{Clock: r.clock, Workers: 2})
	return r
}

func (r *blockingFixture) start(t *testing.T) *reflector.Ref {
	ref, err := reflector.Spawn(r.system, reflector.Config{
		Source: r.source, Sink: r.mirror, Rand: rand.New(rand.NewPCG(1, 2)),
		OnError: func(err error) { r.errs <- err },
		Backoff: reflector.Backoff{Jitter: reflector.NoJitter},
	})
	require.NoError(t, err)
	return ref
}

// block makes a call wait until its context ends.
func (r *blockingFixture) block(ctx context.Context) error {
	r.entered <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func TestStop_CancelsABlockedList(t *testing.T) {
	r := newBlockingFixture(t)
	r.source.onList = r.block
	ref := r.start(t)
	<-r.entered
	ref.Stop()
	require.NoError(t, r.system.Close(context.Background()))
}

func TestStop_CancelsABlockedWatch(t *testing.T) {
	r := newBlockingFixture(t)
	r.source.onWatch = r.block
	ref := r.start(t)
	<-r.entered
	ref.Stop()
	require.NoError(t, r.system.Close(context.Background()))
	require.Empty(t, r.errs, "stopping is not a failure")
}

// Closing the system also cancels the Reflector's call.
func TestClose_OfTheSystemCancelsABlockedList(t *testing.T) {
	r := newBlockingFixture(t)
	r.source.onList = r.block
	r.start(t)
	<-r.entered
	require.NoError(t, r.system.Close(context.Background()))
}

func TestCalls_ThatTakeTooLongAreCancelled(t *testing.T) {
	r := newBlockingFixture(t)
	r.source.onList = r.block
	r.start(t)
	<-r.entered
	r.clock.Advance(reflector.DefaultCallTimeout)
	err := <-r.errs
	require.ErrorIs(t, err, reflector.ErrTimeout)
	require.ErrorIs(t, err, context.Canceled, "what the source said is kept")
}

// A source that bounds its calls itself knows whether an answer still arrives.
func TestCalls_OfASourceThatBoundsThemMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBlockingFixture(t)
		r.source.traits.Bounded = true
		release := make(chan struct{})
		slow := func(ctx context.Context) error {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return ctx.Err()
		}
		r.source.onList, r.source.onWatch = slow, slow
		ref := r.start(t)
		for range 2 {
			synctest.Wait()
			r.clock.Advance(100 * reflector.DefaultCallTimeout)
			synctest.Wait()
			release <- struct{}{}
		}
		synctest.Wait()
		require.Equal(t, []string{`list "" limit=10000 continue=""`, `watch "" from=0`}, r.source.asked())
		require.Empty(t, r.errs)
		ref.Stop()
		require.NoError(t, r.system.Close(context.Background()))
	})
}

// The time of a call may be up when its answer has come, and is about to be followed by the next call.
func TestCalls_TheTimeOfOneIsNotThatOfTheNext(t *testing.T) {
	r := newFixture(t)
	r.source.traits.Blocks = true
	r.source.onWatch = func(ctx context.Context) error { return ctx.Err() }
	r.parent.Tell(func(ctx *actors.Context) {
		var err error
		r.ref, err = reflector.Spawn(ctx, r.config())
		require.NoError(t, err)
	})
	for len(r.source.asked()) == 0 {
		require.Equal(t, 1, r.exec.RunN(1))
	}
	r.clock.Advance(reflector.DefaultCallTimeout)
	r.settle()
	require.Empty(t, r.errs)
	r.synced()
}

// A watch that the source opens after Stop is closed unread.
func TestStop_ClosesAWatchThatOpensLater(t *testing.T) {
	r := newBlockingFixture(t)
	release := make(chan struct{})
	r.source.onWatch = func(context.Context) error { // heeds no context
		r.entered <- struct{}{}
		<-release
		return nil
	}
	r.source.explode("next")
	ref := r.start(t)
	<-r.entered
	ref.Stop()
	close(release)
	require.NoError(t, r.system.Close(context.Background()))
	require.Equal(t, []string{`list "" limit=10000 continue=""`, `watch "" from=0`}, r.source.asked())
	require.Empty(t, r.errs)
}

func TestCalls_ThatEndTheirGoroutineAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBlockingFixture(t)
		var once sync.Once
		r.source.onList = func(context.Context) error {
			once.Do(runtime.Goexit)
			r.entered <- struct{}{}
			return nil
		}
		r.start(t)
		synctest.Wait() // it has told the error, and then armed the delay
		require.ErrorIs(t, <-r.errs, reflector.ErrContract)
		r.clock.Advance(time.Minute)
		<-r.entered // it tries again
		require.NoError(t, r.system.Close(context.Background()))
	})
}

// The Reflector accepts requests while its source blocks.
func TestRelist_DuringABlockedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBlockingFixture(t)
		release := make(chan struct{})
		r.source.onWatch = func(context.Context) error { <-release; return nil }
		ref := r.start(t)
		synctest.Wait()
		ref.Relist(reflector.Distrusted)
		synctest.Wait()
		require.Equal(t, reflector.Opening, ref.Stats().Phase)
		require.Equal(t, uint64(1), ref.Stats().Relists[reflector.Distrusted])
		close(release)
		synctest.Wait()
		r.clock.Advance(seconds)
		synctest.Wait()
		require.Equal(t, []string{"Replace Started@0", "Replace Distrusted@0"}, r.mirror.told())
		require.NoError(t, r.system.Close(context.Background()))
	})
}

// Concurrent writers, a source with every fault, and a sink that is often full:
// in the end the sink's state equals the source's, and no guarantee was broken.
func TestReflector_ConvergesUnderConcurrentTrouble(t *testing.T) {
	for _, traits := range []backend.Traits{{}, {Blocks: true}, {Contiguous: true}, {Blocks: true, Contiguous: true}} {
		t.Run(fmt.Sprintf("%+v", traits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { convergeUnderTrouble(t, traits) })
		})
	}
}

func convergeUnderTrouble(t *testing.T, traits backend.Traits) {
	r := newBlockingFixture(t)
	r.source.traits = traits
	r.mirror.capacity = 3
	system := newSystem(t, actors.SystemConfig{Workers: 4}) // synctest's clock
	ref, err := reflector.Spawn(system, reflector.Config{
		Source: r.source, Sink: r.mirror, Rand: rand.New(rand.NewPCG(3, 4)), PageSize: 5, MaxBatch: 3,
		Backoff: reflector.Backoff{Initial: time.Millisecond, Max: 4 * time.Millisecond},
	})
	require.NoError(t, err)

	var trouble sync.WaitGroup
	for writer := range 3 {
		trouble.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(writer), 1))
			for i := range 300 {
				r.source.put(fmt.Sprint(writer, rng.IntN(6)), fmt.Sprint(i))
				time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			}
		})
	}
	trouble.Go(func() {
		rng := rand.New(rand.NewPCG(9, 9))
		for range 60 {
			misbehave(r.source, ref, rng)
			time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
		}
	})
	var over atomic.Bool
	consumer := make(chan struct{})
	go func() {
		defer close(consumer)
		for !over.Load() {
			r.mirror.drain()
			ref.Room()
			time.Sleep(3 * time.Millisecond)
		}
	}()
	trouble.Wait()
	time.Sleep(time.Minute)
	over.Store(true)
	<-consumer
	synctest.Wait()

	want := map[string]string{}
	for key, o := range r.source.objects {
		want[key] = value(o)
	}
	require.Equal(t, want, r.mirror.state)
	require.Equal(t, r.source.rev, r.mirror.rev)
	require.NoError(t, system.Close(context.Background()))
	require.NoError(t, r.system.Close(context.Background()))
}

// misbehave does one of the things that sources do.
func misbehave(s *source, ref *reflector.Ref, rng *rand.Rand) {
	switch rng.IntN(9) {
	case 0:
		s.disturb(errReset)
	case 1:
		s.disturb(store.ErrClosed)
	case 2:
		s.compact()
	case 3:
		s.fail("list", errReset)
	case 4:
		s.fail("watch", errReset)
	case 5:
		s.explode("next")
	case 6:
		s.lose()
	case 7:
		ref.Relist(reflector.Distrusted)
	case 8:
		s.fail("list", nil, &store.ExpiredError{})
	}
}

// exitingSource has watches whose first request for progress ends its goroutine, as
// t.FailNow in a fake source does.
type exitingSource struct {
	*source
	requests atomic.Int64
}

func (s *exitingSource) Watch(ctx context.Context, o backend.WatchOptions) (backend.Watcher, error) {
	w, err := s.source.Watch(ctx, o)
	return exitingWatcher{w, s}, err
}

type exitingWatcher struct {
	backend.Watcher
	source *exitingSource
}

func (w exitingWatcher) RequestProgress(context.Context) error {
	if w.source.requests.Add(1) == 1 {
		runtime.Goexit()
	}
	return nil
}

func TestRequestProgress_IsMadeAgainAfterOneThatEndedItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBlockingFixture(t)
		source := &exitingSource{source: r.source}
		ref, err := reflector.Spawn(r.system, reflector.Config{
			Source: source, Sink: r.mirror, Rand: rand.New(rand.NewPCG(1, 2)), OnError: func(err error) { r.errs <- err },
		})
		require.NoError(t, err)
		synctest.Wait()
		ref.RequestProgress()
		synctest.Wait()
		require.Equal(t, reflector.Watching, ref.Stats().Phase)
		require.Empty(t, r.errs, "no call to the source has failed")
		ref.RequestProgress()
		synctest.Wait()
		require.Equal(t, int64(2), source.requests.Load())
		require.NoError(t, r.system.Close(context.Background()))
	})
}

// A List in progress outlives the end of a request for progress of the watch before it.
func TestRequestProgress_ThatEndsItsGoroutineFailsNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBlockingFixture(t)
		source := &lateSource{source: r.source, release: make(chan struct{})}
		ref, err := reflector.Spawn(r.system, reflector.Config{
			Source: source, Sink: r.mirror, OnError: func(err error) { r.errs <- err },
			Backoff: reflector.Backoff{Jitter: reflector.NoJitter},
		})
		require.NoError(t, err)
		synctest.Wait()
		ref.RequestProgress()
		synctest.Wait()
		listed := make(chan struct{})
		r.source.onList = func(context.Context) error { <-listed; return nil }
		ref.Relist(reflector.Requested)
		synctest.Wait()
		r.clock.Advance(reflector.DefaultInitial)
		synctest.Wait()
		require.Equal(t, reflector.Listing, ref.Stats().Phase)
		close(source.release)
		synctest.Wait()
		require.Empty(t, r.errs)
		require.Equal(t, reflector.Listing, ref.Stats().Phase)
		close(listed)
		synctest.Wait()
		require.Equal(t, []string{"Replace Started@0", "Replace Requested@0"}, r.mirror.told())
		require.NoError(t, r.system.Close(context.Background()))
	})
}

// lateSource has watches whose requests for progress end their goroutines after release.
type lateSource struct {
	*source
	release chan struct{}
}

func (s *lateSource) Watch(ctx context.Context, o backend.WatchOptions) (backend.Watcher, error) {
	w, err := s.source.Watch(ctx, o)
	return lateWatcher{w, s.release}, err
}

type lateWatcher struct {
	backend.Watcher
	release chan struct{}
}

func (w lateWatcher) RequestProgress(context.Context) error {
	<-w.release
	runtime.Goexit()
	return nil
}

// unidentified is a source that ends the goroutine which asks a watch for its storage, once.
type unidentified struct {
	*source
	exit sync.Once
}

func (s *unidentified) StoreID(context.Context) (string, error) {
	if s.open() > 0 {
		s.exit.Do(runtime.Goexit)
	}
	return "storage", nil
}

func TestCalls_ThatEndTheirGoroutineLeaveNoWatchOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBlockingFixture(t)
		_, err := reflector.Spawn(r.system, reflector.Config{
			Source: &unidentified{source: r.source}, Sink: r.mirror, Rand: rand.New(rand.NewPCG(1, 2)),
			OnError: func(err error) { r.errs <- err },
		})
		require.NoError(t, err)
		synctest.Wait()
		require.ErrorIs(t, <-r.errs, reflector.ErrContract)
		require.Zero(t, r.source.open())
		r.clock.Advance(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, r.source.open(), "it has tried again")
		require.NoError(t, r.system.Close(context.Background()))
		r.source.tidy(t)
	})
}

// lateClock is a clock whose timers of calls run out at the moment when they are stopped.
type lateClock struct{ clock.Clock }

func (c lateClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	timer := c.Clock.AfterFunc(d, f)
	if d == reflector.DefaultCallTimeout {
		return lateTimer{timer, f}
	}
	return timer
}

type lateTimer struct {
	clock.Timer
	f func()
}

func (t lateTimer) Stop() bool {
	if t.Timer.Stop() {
		t.f()
	}
	return false
}

// The timeout of a call that has just been answered ends neither the next call nor the watch.
func TestCalls_OutlastTheTimeoutsOfEarlierOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBlockingFixture(t)
		failures := make(chan actors.Failure, 1)
		r.system = newSystem(t, actors.SystemConfig{
			Clock: lateClock{r.clock}, Workers: 2, OnFailure: func(failed actors.Failure) { failures <- failed },
		})
		release := make(chan struct{})
		r.source.onWatch = func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-release:
			}
			return ctx.Err()
		}
		ref := r.start(t)
		synctest.Wait() // the list's timeout is over, and the watch is being opened
		close(release)
		synctest.Wait() // the watch's timeout is over, too
		ref.Stop()
		require.NoError(t, r.system.Close(context.Background()))
		require.Empty(t, r.errs)
		require.Empty(t, failures)
		require.Equal(t, []string{`list "" limit=10000 continue=""`, `watch "" from=0`}, r.source.asked())
	})
}
