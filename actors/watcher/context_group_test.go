package watcher_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// tied returns n watches that end with ctx.
func tied(w *world, ctx context.Context, n int) []*watcher.Watch {
	watches := make([]*watcher.Watch, n)
	for i := range watches {
		watches[i] = w.watch(watcher.Options{}, w.now())
		watches[i].StopWith(ctx)
	}
	return watches
}

func TestStopWith_WatchesOfAContextEndWithItAndNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &store.Filter{}, window.Limits{})
		cause := errors.New("went home")
		ctx, cancel := context.WithCancelCause(t.Context())
		other, cancelOther := context.WithCancel(t.Context())
		defer cancelOther()
		leaving, staying := tied(w, ctx, 7), tied(w, other, 7)
		for _, i := range []int{6, 0, 5, 2} { // the last, the first, what was moved to its place, one between
			leaving[i].Stop()
			staying[i].Stop()
		}
		cancel(cause)
		synctest.Wait()
		for _, i := range []int{1, 3, 4} {
			require.ErrorIs(t, leaving[i].Err(), cause)
			require.ErrorIs(t, leaving[i].Err(), watcher.ErrStopped)
			require.NoError(t, staying[i].Err())
		}
		require.NotErrorIs(t, leaving[0].Err(), cause, "it had ended before")
	})
}

func TestStopWith_AContextWhoseWatchesHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &store.Filter{}, window.Limits{})
		ctx, cancel := context.WithCancel(t.Context())
		tied(w, ctx, 1)[0].Stop()
		again := tied(w, ctx, 2)
		cancel()
		synctest.Wait()
		late := tied(w, ctx, 1)
		synctest.Wait()
		for _, watch := range append(again, late...) {
			require.ErrorIs(t, watch.Err(), watcher.ErrStopped)
		}
	})
}

func TestStopWith_ANotifyFunctionThatEndsItsGoroutineLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &store.Filter{}, window.Limits{})
		ctx, cancel := context.WithCancel(t.Context())
		watches := make([]*watcher.Watch, 3)
		for i := range watches {
			watches[i] = watcher.NewNotified(&w.feed, watcher.Options{}, runtime.Goexit)
			watches[i].StopWith(ctx)
		}
		cancel()
		synctest.Wait()
		for _, watch := range watches {
			require.ErrorIs(t, watch.Err(), watcher.ErrStopped)
		}
		w.feed.Registry.LeaveContexts() // does not wait for ever
	})
}

// hooked is a context that says whether something is called at its end.
type hooked struct {
	context.Context
	hooks int
}

func (c *hooked) AfterFunc(f func()) (stop func() bool) {
	c.hooks++
	unhook := context.AfterFunc(c.Context, f)
	return func() bool { c.hooks--; return unhook() }
}

// A context whose watches have ended is kept only until those of another one have.
func TestStopWith_KeepsOneContextWithoutWatches(t *testing.T) {
	w := newWorld(t, &store.Filter{}, window.Limits{})
	var contexts []*hooked
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		contexts = append(contexts, &hooked{Context: ctx})
	}
	for range 2 {
		for _, ctx := range contexts {
			for range 3 {
				tied(w, ctx, 1)[0].Stop()
				require.Equal(t, 1, ctx.hooks, "watches that are started and stopped one by one share it")
			}
		}
		require.Zero(t, contexts[0].hooks+contexts[1].hooks)
	}
}

// A watch that has already ended is not kept for as long as the context lasts.
func TestStopWith_OfAWatchThatHasEndedLeavesNoHook(t *testing.T) {
	w := newWorld(t, &store.Filter{}, window.Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hook := &hooked{Context: ctx}
	watch := w.watch(watcher.Options{}, w.now())
	watch.Stop()
	watch.StopWith(hook)
	require.Zero(t, hook.hooks)
}

// The one that is kept would keep a closed engine alive.
func TestForgetContexts_LeavesNoHookInAny(t *testing.T) {
	w := newWorld(t, &store.Filter{}, window.Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hook := &hooked{Context: ctx}
	tied(w, hook, 1)[0].Stop()
	require.Equal(t, 1, hook.hooks)
	w.feed.Registry.ForgetContexts()
	require.Zero(t, hook.hooks)
	late := tied(w, hook, 1)[0]
	require.Zero(t, hook.hooks)
	cancel()
	require.NoError(t, late.Err())
}

// A context that ended just before may have begun to call what ends its watches.
func TestLeaveContexts_ContextsEndNoWatchAfterIt(t *testing.T) {
	w := newWorld(t, &store.Filter{}, window.Limits{})
	own := &ownEnd{Context: t.Context()}
	watch := tied(w, own, 1)[0]
	w.feed.Registry.LeaveContexts()
	require.Len(t, own.pending, 1)
	own.pending[0]()
	require.NoError(t, watch.Err())
}

// The caller is about to end all watches, and would not wait for the goroutine of a context.
func TestLeaveContexts_WaitsForTheWatchesThatAContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &store.Filter{}, window.Limits{})
		ctx, cancel := context.WithCancel(t.Context())
		ending, end := make(chan struct{}), make(chan struct{})
		watch := watcher.NewNotified(&w.feed, watcher.Options{}, func() { close(ending); <-end })
		watch.StopWith(ctx)
		cancel()
		<-ending
		left := make(chan struct{})
		go func() {
			defer close(left)
			w.feed.Registry.LeaveContexts()
		}()
		synctest.Wait()
		select {
		case <-left:
			require.Fail(t, "it has not waited")
		default:
		}
		close(end)
		<-left
	})
}

func TestStopWith_MayMeetStopAndCancel(t *testing.T) {
	w := newWorld(t, &store.Filter{}, window.Limits{})
	watches := make([]*watcher.Watch, 64)
	for i := range watches {
		watches[i] = w.watch(watcher.Options{}, w.now())
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i, watch := range watches {
		all.Go(func() {
			watch.StopWith(ctx)
			if i%2 == 0 {
				watch.Stop()
			}
		})
	}
	all.Go(cancel)
	all.Wait()
	for _, watch := range watches {
		<-watch.Done()
		require.ErrorIs(t, watch.Err(), watcher.ErrStopped)
	}
}

// ownEnd is a context that has what happens at its end called when it likes.
type ownEnd struct {
	context.Context
	pending []func()
}

func (c *ownEnd) AfterFunc(f func()) (stop func() bool) {
	c.pending = append(c.pending, f)
	return func() bool { return true }
}

// A deterministic run has no goroutine for the end of a context: one that can do it
// itself says when.
func TestStopWith_AContextWithItsOwnAfterFunc(t *testing.T) {
	w := newWorld(t, &store.Filter{}, window.Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	own := &ownEnd{Context: ctx}
	watch := tied(w, own, 1)[0]
	cancel()
	require.NoError(t, watch.Err())
	require.Len(t, own.pending, 1)
	own.pending[0]()
	require.ErrorIs(t, watch.Err(), context.Canceled)
}
