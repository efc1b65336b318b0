package memory_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/window"
)

func TestExpiry_IsInOrderOfTimeThenKey(t *testing.T) {
	f := newFixture(t, memory.Options{})
	for i, key := range []string{"late", "b", "a", "early"} {
		f.put(key, nil, backend.PutOptions{TTL: []time.Duration{3, 2, 2, 1}[i] * time.Second})
	}
	w := f.watch(5, nothing)
	f.clock.Advance(time.Minute)
	require.Equal(t, []string{"DELETED early@6", "DELETED a@7", "DELETED b@8", "DELETED late@9"}, f.read(w))
}

func TestExpiry_DeletionIsStampedWithItsTime(t *testing.T) {
	f := newFixture(t, memory.Options{})
	o := f.put("a", nil, backend.PutOptions{TTL: time.Second})
	w := f.watch(o.Revision, nothing)
	f.clock.Advance(time.Minute)
	batch, err := w.Next(1)
	require.NoError(t, err)
	require.Equal(t, o.Expires, batch.Events[0].Object.Written)
}

func TestExpiry_NeedsOneTimerForAnyNumber(t *testing.T) {
	f := newFixture(t, memory.Options{})
	f.put("permanent", nil, backend.PutOptions{})
	idle := f.clock.Pending() // for the history
	var last *store.Object
	for i := range 1000 {
		last = f.put(fmt.Sprint(i), nil, backend.PutOptions{TTL: time.Duration(1+i*7919%1000) * time.Second})
	}
	require.Equal(t, idle+1, f.clock.Pending())
	require.NotNil(t, last)
	f.clock.Advance(1000 * time.Second)
	list, err := f.List(f.ctx, backend.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1, "all but the permanent one have expired")
}

// Renewing a TTL over and over must not pile up what was to expire before.
func TestExpiry_RenewedAndRemovedObjectsLeaveNoTimer(t *testing.T) {
	f := newFixture(t, memory.Options{})
	o := f.put("a", nil, backend.PutOptions{TTL: time.Second})
	armed := f.clock.Pending()
	for range 100 {
		o = f.put("a", o, backend.PutOptions{TTL: time.Hour})
	}
	require.Equal(t, armed, f.clock.Pending())
	f.clock.Advance(time.Minute)
	_, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	_, err = f.Remove(f.ctx, o)
	require.NoError(t, err)
	require.Equal(t, armed-1, f.clock.Pending())
}

func TestExpiry_ThousandsAtOnce(t *testing.T) {
	f := newFixture(t, memory.Options{})
	const n = 2000
	for i := range n {
		f.put(fmt.Sprintf("k/%04d", i), nil, backend.PutOptions{TTL: time.Second})
	}
	w := f.watch(n+1, nothing)
	f.clock.Advance(time.Second)
	events := f.read(w)
	require.Len(t, events, n)
	require.Equal(t, "DELETED k/0000@2002", events[0])
	require.Equal(t, "DELETED k/1999@4001", events[n-1])
}

// The first of several runs of deletions notifies a watch whose reader ends the goroutine.
func TestExpiry_GoesOnWhenANotifyEndsTheGoroutine(t *testing.T) {
	f := newFixture(t, memory.Options{})
	const n = 2000
	for i := range n {
		f.put(fmt.Sprintf("k/%04d", i), nil, backend.PutOptions{TTL: time.Second})
	}
	f.read(f.watch(n+1, runtime.Goexit))
	returned := false
	var timer sync.WaitGroup
	timer.Go(func() {
		f.clock.Advance(time.Second)
		returned = true
	})
	timer.Wait()
	require.False(t, returned)
	f.clock.Advance(0)
	list, err := f.List(f.ctx, backend.ListOptions{})
	require.NoError(t, err)
	require.Zero(t, len(list.Items), "what the first run left")
}

func TestExpiry_IsDelayedByAClockSetBack(t *testing.T) {
	f := newFixture(t, memory.Options{})
	f.put("a", nil, backend.PutOptions{TTL: time.Minute})
	f.clock.Advance(-time.Hour)
	f.clock.Advance(time.Hour)
	_, err := f.Get(f.ctx, "a")
	require.NoError(t, err)
	f.clock.Advance(time.Minute)
	_, err = f.Get(f.ctx, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// The timer does not know that the wall clock was set.
func TestExpiry_FollowsAClockSetAhead(t *testing.T) {
	f := newFixture(t, memory.Options{})
	f.put("first", nil, backend.PutOptions{TTL: time.Hour})
	f.put("last", nil, backend.PutOptions{TTL: 24 * time.Hour})
	f.clock.Advance(30 * time.Second)
	f.clock.Jump(2 * time.Hour)
	f.clock.Advance(time.Minute)
	_, err := f.Get(f.ctx, "first")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = f.Get(f.ctx, "last")
	require.NoError(t, err)
	f.clock.Jump(22 * time.Hour)
	f.clock.Advance(time.Minute)
	_, err = f.Get(f.ctx, "last")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// leaving returns the schema of lamps whose SetRevision ends the goroutine for the key, while
// leave is set.
func leaving(key string, leave *bool) store.Schema {
	schema := lamps
	schema.SetRevision = func(o *store.Object, _ store.Revision) {
		if *leave && o.Key == key {
			runtime.Goexit()
		}
	}
	return schema
}

// inGoroutine calls f, which may end its goroutine.
func inGoroutine(f func()) {
	var done sync.WaitGroup
	done.Go(f)
	done.Wait()
}

func TestExpiry_SurvivesADeletionThatEndsItsGoroutine(t *testing.T) {
	leave := false
	f := newFixtureOf(t, leaving("a", &leave), memory.Options{})
	o := f.put("a", nil, backend.PutOptions{TTL: time.Minute})
	leave = true
	inGoroutine(func() { _, _ = f.Remove(f.ctx, o) })
	leave = false
	_, err := f.Get(f.ctx, "a")
	require.NoError(t, err, "it was not deleted")
	f.clock.Advance(time.Minute)
	_, err = f.Get(f.ctx, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// The next write sets the alarm, as after a failure of the clock.
func TestExpiry_GoesOnWhenADeletionEndsTheGoroutine(t *testing.T) {
	leave := false
	f := newFixtureOf(t, leaving("b", &leave), memory.Options{})
	for _, key := range []string{"a", "b", "c"} {
		f.put(key, nil, backend.PutOptions{TTL: time.Minute})
	}
	notified := 0
	w := f.watch(4, func() { notified++ })
	require.Empty(t, f.read(w))
	leave = true
	inGoroutine(func() { f.clock.Advance(time.Minute) })
	require.Equal(t, 1, notified)
	require.Equal(t, []string{"DELETED a@5"}, f.read(w))
	leave = false
	f.put("d", nil, backend.PutOptions{})
	f.clock.Advance(0)
	require.Equal(t, []string{"ADDED d@6", "DELETED b@7", "DELETED c@8"}, f.read(w))
}

// leavingClock ends the goroutine that arms a timer, while leave is set.
type leavingClock struct {
	*clock.Virtual
	leave bool
}

func (c *leavingClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	if c.leave {
		runtime.Goexit()
	}
	return leavingTimer{c, c.Virtual.AfterFunc(d, f)}
}

// leavingTimer ends the goroutine that stops it, while leave of its clock is set.
type leavingTimer struct {
	clock *leavingClock
	clock.Timer
}

func (t leavingTimer) Stop() bool {
	if t.clock.leave {
		runtime.Goexit()
	}
	return t.Timer.Stop()
}

func TestExpiry_AClockThatEndsTheGoroutineOfCloseHoldsUpNoOther(t *testing.T) {
	leaving := &leavingClock{Virtual: clock.NewVirtual(began)}
	b, err := memory.New(lamps, memory.Options{Clock: leaving, FirstRevision: 1})
	require.NoError(t, err)
	f := &fixture{T: t, Backend: b, ctx: t.Context(), clock: leaving.Virtual}
	f.put("a", nil, backend.PutOptions{TTL: time.Minute})
	notified := 0
	w := f.watch(1, func() { notified++ })
	require.Equal(t, []string{"ADDED a@2"}, f.read(w))
	leaving.leave = true
	inGoroutine(func() { _ = b.Close() })
	leaving.leave = false
	require.NotZero(t, notified)
	_, err = w.Next(1)
	require.ErrorIs(t, err, store.ErrClosed)
	require.NoError(t, b.Close())
	f.clock.Advance(24 * time.Hour) // a timer that was not stopped finds the storage closed
	require.Zero(t, f.clock.Pending())
}

// The write has been made, though its caller does not return. The next write sets the alarm, and notifies watches.
func TestExpiry_SurvivesAClockThatEndsTheGoroutineOfAWrite(t *testing.T) {
	leaving := &leavingClock{Virtual: clock.NewVirtual(began)}
	b, err := memory.New(lamps, memory.Options{Clock: leaving, FirstRevision: 1, Retain: window.Limits{MinAge: 24 * time.Hour}})
	require.NoError(t, err)
	f := &fixture{T: t, Backend: b, ctx: t.Context(), clock: leaving.Virtual}
	first := f.put("a", nil, backend.PutOptions{TTL: time.Minute})
	notified := 0
	w := f.watch(first.Revision, func() { notified++ })
	require.Empty(t, f.read(w))
	leaving.leave = true
	inGoroutine(func() { _, _ = f.Put(f.ctx, newLamp("a", true), first, backend.PutOptions{TTL: time.Hour}) })
	leaving.leave = false

	f.put("b", nil, backend.PutOptions{})
	require.Equal(t, 1, notified)
	require.Equal(t, []string{"MODIFIED a@3", "ADDED b@4"}, f.read(w))
	f.clock.Advance(time.Minute)
	o, err := f.Get(f.ctx, "a")
	require.NoError(t, err, "it expires when the last write says")
	require.Equal(t, store.Revision(3), o.Revision)
	f.clock.Advance(time.Hour)
	require.Equal(t, []string{"DELETED a@5"}, f.read(w))
	require.NoError(t, b.Close())
	require.Zero(t, f.clock.Pending())
}
