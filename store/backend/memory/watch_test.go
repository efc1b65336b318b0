package memory_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

func TestNotify_IsOnTheEdge(t *testing.T) {
	f := newFixture(t, memory.Options{})
	calls := 0
	w := f.watch(0, func() { calls++ })
	f.flicker("a", 3)
	require.Zero(t, calls, "the watch was not read yet")
	require.Len(t, f.read(w), 3)
	f.flicker("a", 5)
	require.Equal(t, 1, calls, "once, for any number of events")
	batch, err := w.Next(2)
	require.NoError(t, err)
	require.Len(t, batch.Events, 2)
	f.flicker("a", 5)
	require.Equal(t, 1, calls, "it has not come to the end")
	require.Len(t, f.read(w), 8)
	f.flicker("a", 1)
	require.Equal(t, 2, calls)
}

// If the lock were held, these would never return.
func TestNotify_RunsWithoutTheLock(t *testing.T) {
	f := newFixture(t, memory.Options{})
	var at store.Revision
	w := f.watch(0, func() { at, _ = f.Revision(f.ctx) })
	require.Empty(t, f.read(w))
	o := f.put("a", nil, backend.PutOptions{})
	require.Equal(t, o.Revision, at)
}

func TestNotify_PanicEndsThatWatchAlone(t *testing.T) {
	f := newFixture(t, memory.Options{})
	calls := 0
	bad := f.watch(0, func() { panic("no") })
	good := f.watch(0, func() { calls++ })
	require.Empty(t, f.read(bad))
	require.Empty(t, f.read(good))
	o := f.put("a", nil, backend.PutOptions{})
	require.Equal(t, 1, calls)
	require.Equal(t, []string{fmt.Sprint("ADDED a@", o.Revision)}, f.read(good))
	_, err := bad.Next(1)
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorContains(t, err, "WatchOptions.Notify")
}

func TestSize_PanicWritesNothing(t *testing.T) {
	schema := lamps
	broken := false
	schema.Size = func(*store.Object) int {
		if broken {
			panic("no")
		}
		return 1
	}
	f := newFixtureOf(t, schema, memory.Options{})
	o := f.put("a", nil, backend.PutOptions{})
	broken = true
	_, err := f.Put(f.ctx, newLamp("a", true), o, backend.PutOptions{})
	require.ErrorIs(t, err, usercode.ErrPanic)
	_, err = f.Remove(f.ctx, o)
	require.ErrorIs(t, err, usercode.ErrPanic)
	_, err = f.Emit(f.ctx, newLamp("a", true))
	require.ErrorIs(t, err, usercode.ErrPanic)
	got, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	require.Same(t, o, got)
}

// The object is measured without the lock, so another write may come first.
func TestRemove_OfAnObjectThatChangesWhileItIsMeasured(t *testing.T) {
	schema := lamps
	meanwhile := func() {}
	schema.Size = func(*store.Object) int {
		f := meanwhile
		meanwhile = func() {}
		f()
		return 1
	}
	f := newFixtureOf(t, schema, memory.Options{})
	o := f.put("a", nil, backend.PutOptions{})
	var changed *store.Object
	meanwhile = func() { changed = f.put("a", o, backend.PutOptions{}) }
	_, err := f.Remove(f.ctx, o)
	require.ErrorIs(t, err, store.ErrConflict)
	got, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	require.Same(t, changed, got)
	meanwhile = func() {
		_, err := f.Remove(f.ctx, changed)
		require.NoError(t, err)
	}
	_, err = f.Remove(f.ctx, changed)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestWatch_CloseWaitsForItsNotification(t *testing.T) {
	f := newFixture(t, memory.Options{})
	entered, leave := make(chan struct{}), make(chan struct{})
	var returned atomic.Bool
	w := f.watch(0, func() {
		close(entered)
		<-leave
		if returned.Load() {
			t.Error("Close returned while Notify was running")
		}
	})
	require.Empty(t, f.read(w))
	var wg sync.WaitGroup
	wg.Go(func() { f.put("a", nil, backend.PutOptions{}) })
	<-entered
	wg.Go(func() { w.Close(); returned.Store(true) })
	for range 100 {
		runtime.Gosched()
	}
	close(leave)
	wg.Wait()
	require.True(t, returned.Load())
}

// Watches that come and go while nothing is written must not pile up.
func TestWatch_IsFreedOnceClosed(t *testing.T) {
	f := newFixture(t, memory.Options{})
	held := new([1 << 10]byte)
	gone := weak.Make(held)
	func(held *[1 << 10]byte) {
		w := f.watch(0, func() { held[0]++ })
		require.Empty(t, f.read(w))
		w.Close()
	}(held)
	runtime.GC()
	require.Nil(t, gone.Value())
}

func TestWatch_NextOfZeroIsOfOne(t *testing.T) {
	f := newFixture(t, memory.Options{})
	w := f.watch(0, nothing)
	f.flicker("a", 3)
	batch, err := w.Next(0)
	require.NoError(t, err)
	require.Len(t, batch.Events, 1)
}

// The rarest interleavings of write, Next and Close, for the race detector and
// for lost wake-ups: a reader that is not woken never finishes.
func TestWatch_WatchersComeAndGoAmongWriters(t *testing.T) {
	f := newFixture(t, memory.Options{})
	const writers, each, readers = 3, 200, 8
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				key := fmt.Sprintf("%d/%d", i, n)
				o, err := f.Put(f.ctx, newLamp(key, false), nil, backend.PutOptions{})
				if err == nil && n%3 == 0 {
					_, err = f.Remove(f.ctx, o)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	// Every third object was removed again.
	const total = store.Revision(1 + writers*(each+(each+2)/3))
	for i := range readers {
		wg.Go(func() { readTo(f, total, []string{"", "0", "1/7"}[i%3]) })
		wg.Go(func() { comeAndGo(f, 50) })
	}
	wg.Wait()
}

// readTo follows prefix from the start through revision total.
func readTo(f *fixture, total store.Revision, prefix string) {
	notified := make(chan struct{}, 1)
	w, err := f.Watch(f.ctx, backend.WatchOptions{Prefix: prefix, From: 1, Notify: func() {
		select {
		case notified <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		f.Error(err)
		return
	}
	defer w.Close()
	through := store.Revision(1)
	for through < total {
		batch, err := w.Next(7)
		if err != nil || batch.After != through {
			f.Error("after", through, "came", batch.After, err)
			return
		}
		through = batch.Through
		if len(batch.Events) == 0 && through < total {
			<-notified
		}
	}
}

// comeAndGo opens and closes watches.
func comeAndGo(f *fixture, times int) {
	for range times {
		var closed atomic.Bool
		w, err := f.Watch(f.ctx, backend.WatchOptions{Notify: func() {
			if closed.Load() {
				f.Error("notified after Close")
			}
		}})
		if err != nil {
			f.Error(err)
			return
		}
		_, _ = w.Next(1)
		w.Close()
		closed.Store(true)
	}
}
