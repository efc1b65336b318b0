package informer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/internal/askedwatch"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

func TestWaitForRevision_ReadsYourWrites(t *testing.T) {
	r := newFixture(t, nil)
	rev := r.write(pod{Name: "a"})
	require.NoError(t, r.WaitForRevision(t.Context(), rev))
	require.Equal(t, rev, r.Get("a").Revision)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.WaitForRevision(ctx, rev+1)
	require.ErrorIs(t, err, context.Canceled)
}

// That the caller has given up does not matter if there is nothing to wait for.
func TestWaitForRevision_ThatCanBeReadIsNoError(t *testing.T) {
	s, source := busy(t, nil)
	rev, err := source.Add(pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), rev))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		require.NoError(t, s.WaitForRevision(ctx, rev))
	}
}

// A registration is nil if the handler was refused, whose error the caller may have ignored.
func TestWaitFor_RefusesNothingToWaitFor(t *testing.T) {
	r := newFixture(t, nil)
	refused, err := r.AddEventHandler(nil, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrNilHandler)
	for _, syncers := range [][]informer.Syncer{{nil}, {refused}, {r.SharedInformer, nil}, {r.SharedInformer, refused}} {
		err := informer.WaitFor(t.Context(), syncers...)
		require.ErrorIs(t, err, informer.ErrConfig)
		require.ErrorContains(t, err, fmt.Sprintf("syncers[%d] is nil", len(syncers)-1))
	}
}

// A source that can be listed but not watched ends as soon as its list has arrived.
func TestSource_ThatListsAndEndsHasBeenRead(t *testing.T) {
	for seed := range uint64(100) {
		var r *fixture
		var synced []bool // when it is known to have ended
		r = newSeededFixture(t, seed, func(cfg *informer.Config[pod]) {
			cfg.OnError = func(err error) {
				if failure, ok := errors.AsType[*informer.SourceError](err); ok && failure.Final {
					synced = append(synced, r.HasSynced())
				}
			}
		})
		r.source.FailWatch(1, store.ErrUnsupported)
		rev := r.write(pod{Name: "a"})
		require.NoError(t, r.WaitForRevision(t.Context(), rev), "seed %d", seed)
		require.NoError(t, r.WaitSynced(t.Context()))
		require.ErrorIs(t, r.Err(), store.ErrUnsupported)
		require.Equal(t, []bool{true}, synced)
	}
}

func TestSynced_SaysWhyTheSourceDoesNotSync(t *testing.T) {
	r := newFixture(t, nil)
	r.source.FailList(1000, errBad)
	r.pass(10 * time.Second)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGaveUp)
	err := r.WaitSynced(ctx)
	require.ErrorIs(t, err, informer.ErrNotSynced)
	require.ErrorIs(t, err, errGaveUp)
	require.ErrorIs(t, err, errBad, "the last error of the source")
	err = r.WaitForRevision(ctx, 1)
	require.ErrorIs(t, err, errGaveUp)
	require.ErrorIs(t, err, errBad)
	_, handle := r.subscribe()
	require.ErrorIs(t, handle.WaitSynced(ctx), errBad, "a handler waits for the same list")
}

var errGaveUp = errors.New("gave up")

// A watch ends and is resumed, and nothing changes in the source. Later it fails indeed.
func TestSynced_NamesNoErrorThatIsNotWhyItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := enginetest.NewSource(podConfig())
		_, err := source.Add(pod{Name: "a"})
		require.NoError(t, err)
		s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source)})
		require.NoError(t, err)
		stuck := newGate()
		handle, err := s.Subscribe(stuck.handle, informer.HandlerOptions{})
		require.NoError(t, err)
		<-stuck.entered
		synctest.Wait() // for the watch
		over, cancel := context.WithCancelCause(t.Context())
		cancel(errGaveUp)

		require.Equal(t, 1, source.ResetWatches(store.ErrClosed))
		time.Sleep(time.Minute)
		require.Equal(t, uint64(1), s.Stats().Source.Errors)
		for _, err := range []error{handle.WaitSynced(over), s.WaitForRevision(over, 100)} {
			require.ErrorIs(t, err, errGaveUp)
			require.NotErrorIs(t, err, informer.ErrSource)
		}
		source.FailWatch(1000, errBad)
		source.ResetWatches(nil)
		time.Sleep(time.Minute)
		require.ErrorIs(t, s.WaitForRevision(over, 100), errBad)
		require.NotErrorIs(t, handle.WaitSynced(over), informer.ErrSource, "it waits for the handler")

		close(stuck.open)
		require.NoError(t, s.Close())
		require.NoError(t, source.Close())
	})
}

// The list has succeeded at the second attempt, so its first error is not why the call waits.
func TestWaitForRevision_NamesNoErrorThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := enginetest.NewSourceWith(podConfig(), enginetest.SourceOptions{Blocks: true})
		source.FailList(1, errBad)
		s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](unwatched{source})})
		require.NoError(t, err)
		require.NoError(t, s.WaitSynced(t.Context()))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errGaveUp)
		defer cancel()
		err = s.WaitForRevision(ctx, 100)
		require.ErrorIs(t, err, errGaveUp)
		require.NotErrorIs(t, err, informer.ErrSource)
		require.NoError(t, s.Close())
		require.NoError(t, source.Close())
	})
}

// unwatched is a source whose watches do not begin.
type unwatched struct{ *enginetest.Source[pod] }

func (unwatched) Watch(ctx context.Context, _ backend.WatchOptions) (backend.Watcher, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// A call for a distant revision does not hold up one for a nearer revision, whichever came first.
func TestWaitForRevision_EndsAtItsOwnRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := enginetest.NewSource(podConfig())
		s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source)})
		require.NoError(t, err)
		require.NoError(t, s.WaitSynced(t.Context()))
		now := s.Revision()
		reached := make(chan store.Revision, 4)
		for _, ahead := range []store.Revision{2, 1, 4, 3} {
			go func() {
				if s.WaitForRevision(t.Context(), now+ahead) == nil {
					reached <- ahead
				}
			}()
			synctest.Wait()
		}
		for n := range 4 {
			require.Empty(t, reached)
			_, err := source.Add(pod{Name: fmt.Sprint(n)})
			require.NoError(t, err)
			synctest.Wait()
			require.EqualValues(t, n+1, <-reached)
		}
		require.NoError(t, s.Close())
		require.NoError(t, source.Close())
	})
}

func TestSynced_EndsIfTheSourceNeverWillSync(t *testing.T) {
	r := newFixture(t, nil)
	r.source.FailList(1000, store.ErrUnsupported)
	_, handle := r.subscribe()
	err := r.WaitSynced(t.Context())
	require.ErrorIs(t, err, informer.ErrNotSynced)
	require.ErrorIs(t, err, store.ErrUnsupported)
	var failure *informer.SourceError
	require.ErrorAs(t, r.Err(), &failure)
	require.True(t, failure.Final)
	require.False(t, handle.HasSynced())
	err = handle.WaitSynced(t.Context())
	require.ErrorIs(t, err, informer.ErrNotSynced)
	require.NotErrorIs(t, err, engine.ErrIdle, "it ends, too")
	<-handle.Done()
	require.ErrorIs(t, handle.Err(), informer.ErrClosed)
	require.ErrorIs(t, handle.Err(), store.ErrUnsupported)
	require.Zero(t, r.Stats().Handlers)
	_, err = r.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
	require.ErrorIs(t, err, informer.ErrClosed, "it would be told of nothing")
}

// Handlers get what the informer has taken before the source ended for good, and end.
func TestSource_ThatEndsLeavesNothingPending(t *testing.T) {
	s, source := busy(t, func(c *informer.Config[pod]) { c.Backoff = quick })
	slow := newGate()
	handle, err := s.Subscribe(slow.handle, informer.HandlerOptions{})
	require.NoError(t, err)
	rev, err := source.Add(pod{Name: "a"})
	require.NoError(t, err)
	<-slow.entered
	for i := range 3 {
		rev, err = source.Modify(pod{Name: "a", N: i + 1})
		require.NoError(t, err)
	}
	require.NoError(t, s.WaitForRevision(t.Context(), rev))
	source.FailWatch(1, store.ErrUnsupported)
	source.ResetWatches(nil)
	for s.Err() == nil {
		runtime.Gosched()
	}
	close(slow.open)
	<-handle.Done()
	require.ErrorIs(t, handle.Err(), store.ErrUnsupported)
	require.Equal(t, rev, slow.seen.last["a"])
}

func TestWaitFor_NamesTheLaggards(t *testing.T) {
	well, ill := newFixture(t, nil), newFixture(t, func(cfg *informer.Config[pod]) { cfg.Name = "ill" })
	ill.source.FailList(1000, errBad)
	ill.pass(time.Second)
	_, handle := ill.subscribe(informer.HandlerOptions{Name: "its handler"})
	require.NoError(t, informer.WaitFor(t.Context(), well))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGaveUp)
	err := informer.WaitFor(ctx, well, ill, handle)
	var late *informer.NotSyncedError
	require.ErrorAs(t, err, &late)
	require.Equal(t, errGaveUp, late.Cause)
	require.Len(t, late.Laggards, 2)
	require.Equal(t, "ill", late.Laggards[0].Name)
	require.Equal(t, "its handler", late.Laggards[1].Name)
	require.ErrorIs(t, err, errBad)
	require.ErrorContains(t, err, "not synced: ill (")

	err = informer.WaitFor(t.Context(), well, ill)
	require.ErrorIs(t, err, engine.ErrIdle, "the deterministic host has nothing to run")
	require.ErrorIs(t, err, errBad)
}

// What never syncs does not hide, whatever the order, that another will not sync either.
func TestWaitFor_EndsWithTheFirstThatEnds(t *testing.T) {
	failing := func(n int, err error) *informer.SharedInformer[pod] {
		s, _ := busy(t, func(cfg *informer.Config[pod]) {
			cfg.Source.ListerWatcher.(*enginetest.Source[pod]).FailList(n, err)
		})
		return s
	}
	trying, ended := failing(1<<30, errBad), failing(1, store.ErrUnsupported)
	handle, err := trying.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, order := range [][]informer.Syncer{{trying, handle, ended}, {ended, handle, trying}} {
		err := informer.WaitFor(ctx, order...)
		var late *informer.NotSyncedError
		require.ErrorAs(t, err, &late)
		require.NoError(t, late.Cause, "no wait was given up")
		require.Len(t, late.Laggards, 3)
		require.ErrorIs(t, err, store.ErrUnsupported)
	}
}

// lateSyncer has synced just when it was given up.
type lateSyncer struct{}

func (lateSyncer) Name() string                         { return "late" }
func (lateSyncer) HasSynced() bool                      { return true }
func (lateSyncer) WaitSynced(ctx context.Context) error { return context.Cause(ctx) }

// laterSyncer has synced after it was asked whether it has.
type laterSyncer struct{ lateSyncer }

func (laterSyncer) HasSynced() bool { return false }
func (laterSyncer) WaitSynced(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errGaveUp) {
		return errGaveUp
	}
	return nil
}

func TestWaitFor_HasNoErrorIfAllHaveSyncedAtLast(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGaveUp)
	require.NoError(t, informer.WaitFor(ctx, lateSyncer{}))
	require.NoError(t, informer.WaitFor(ctx, laterSyncer{}))
}

// exitingSyncer ends the goroutine that waits for it.
type exitingSyncer struct{ lateSyncer }

func (exitingSyncer) HasSynced() bool { return false }
func (exitingSyncer) WaitSynced(ctx context.Context) error {
	if ctx.Err() == nil {
		runtime.Goexit()
	}
	return context.Cause(ctx)
}

// WaitSynced may be the user's, and call runtime.Goexit.
func TestWaitFor_EndsWithASyncerThatEndsTheGoroutine(t *testing.T) {
	s, _ := busy(t, nil)
	err := informer.WaitFor(t.Context(), s, exitingSyncer{})
	require.ErrorIs(t, err, usercode.ErrGoexit)
	require.ErrorIs(t, err, informer.ErrNotSynced)
}

// alone is an informer that only one goroutine at a time may wait for.
type alone struct {
	*informer.SharedInformer[pod]
	*testing.T
	waits *atomic.Int64
}

func (a alone) Name() string { return a.SharedInformer.Name() }

func (a alone) WaitSynced(ctx context.Context) error {
	defer a.waits.Add(-1)
	if a.waits.Add(1) > 1 {
		a.Error("two goroutines wait")
	}
	time.Sleep(time.Second) // of virtual time, in which another could begin
	return a.SharedInformer.WaitSynced(ctx)
}

// Only one goroutine may run a deterministic host.
func TestWaitFor_RunsADeterministicHostItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, nil)
		each := alone{r.SharedInformer, t, new(atomic.Int64)}
		require.NoError(t, informer.WaitFor(t.Context(), each, each))
	})
}

func TestSynced_OfAHandlerWaitsForItsReturn(t *testing.T) {
	s, source := busy(t, nil)
	rev, err := source.Add(pod{Name: "a"})
	require.NoError(t, err)
	require.NoError(t, s.WaitForRevision(t.Context(), rev))
	stuck := newGate()
	handle, err := s.Subscribe(stuck.handle, informer.HandlerOptions{})
	require.NoError(t, err)
	<-stuck.entered
	require.True(t, s.HasSynced())
	require.False(t, handle.HasSynced(), "the handler has not returned")
	close(stuck.open)
	require.NoError(t, handle.WaitSynced(t.Context()))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, handle.WaitSynced(over), "it has synced")
	require.NoError(t, s.WaitSynced(over))

	empty, err := s.Subscribe(func(informer.Notification[pod]) {}, informer.HandlerOptions{})
	require.NoError(t, err)
	require.NoError(t, informer.WaitFor(t.Context(), s, handle, empty))
}

func TestSynced_OfAHandlerThatPanics(t *testing.T) {
	r := newFixture(t, nil)
	r.write(pod{Name: "a"})
	handle := r.subscribeRecorder(&recorder{before: func(informer.Notification[pod]) { panic("always") }})
	require.NoError(t, handle.WaitSynced(t.Context()))
	require.ErrorIs(t, handle.Err(), informer.ErrHandlerPanic)
}

// A revision without an event is reached when the source says so, which it does when asked. A
// request may be lost.
func TestWaitForRevision_AsksTheSourceForProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		source := &shySource{Source: enginetest.NewSourceWith(podConfig(), enginetest.SourceOptions{Sparse: true})}
		source.lost.Store(2)
		s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source), Prefix: "a"})
		require.NoError(t, err)
		require.NoError(t, s.WaitSynced(ctx))
		rev, err := source.Add(pod{Name: "b"})
		require.NoError(t, err)
		require.NoError(t, s.WaitForRevision(ctx, rev))

		gaveUp, giveUp := context.WithTimeout(t.Context(), time.Second)
		defer giveUp()
		require.ErrorIs(t, s.WaitForRevision(gaveUp, rev+1), context.DeadlineExceeded)
		time.Sleep(time.Minute) // of virtual time, in which a request under way ends
		asked := source.lost.Load()
		time.Sleep(time.Hour)
		require.Equal(t, asked, source.lost.Load(), "no call waits")
		require.NoError(t, s.Close())
		require.NoError(t, source.Close())
	})
}

// shySource is storage whose watches do not say how far they are unless they are asked, of
// which the first requests are lost.
type shySource struct {
	*enginetest.Source[pod]
	lost atomic.Int32
}

func (s *shySource) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := s.Source.Watch(ctx, opts)
	return askedwatch.New(w, opts, &s.lost), err
}
