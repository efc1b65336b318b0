package memory_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// A clock that panics fails the call that reads it, which then changes nothing, and holds up
// no other: each revision has its event, watches see all, and once the clock works, the
// next write has all timers armed.
func TestClock_ThatPanicsLeavesStorageWhole(t *testing.T) {
	failures := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		virtual := clock.NewVirtual(began)
		failing := &clocktest.Failing{Clock: virtual}
		b, err := memory.New(lamps, memory.Options{Clock: failing, FirstRevision: 1, Retain: window.Limits{MinEvents: 1000}})
		require.NoError(t, err)
		ctx := t.Context()
		w, err := b.Watch(ctx, backend.WatchOptions{From: 1, Notify: nothing})
		require.NoError(t, err)
		want := map[string]store.Revision{}
		for range 100 {
			if rng.IntN(3) == 0 {
				failing.Fail([]clocktest.Call{clocktest.Now, clocktest.AfterFunc}[rng.IntN(2)], rng.IntN(3), 1+rng.IntN(3))
			}
			key := fmt.Sprint("lamp-", rng.IntN(5))
			old, _ := b.Get(ctx, key)
			var err error
			switch rng.IntN(5) {
			case 0:
				virtual.Advance(time.Duration(rng.IntN(3000)) * time.Millisecond)
			case 1:
				if old != nil {
					_, err = b.Remove(ctx, old)
				}
			case 2:
				_, err = b.Emit(ctx, newLamp(key, true))
			case 3:
				_, err = b.List(ctx, backend.ListOptions{State: true})
			default:
				_, err = b.Put(ctx, newLamp(key, false), old, backend.PutOptions{TTL: time.Duration(rng.IntN(3)) * time.Second})
			}
			if err != nil {
				require.ErrorIs(t, err, usercode.ErrPanic)
				failures++
			}
		}
		failing.Fail(clocktest.Now, 0, 0)
		failing.Fail(clocktest.AfterFunc, 0, 0)
		_, err = b.Put(ctx, newLamp("last", false), nil, backend.PutOptions{})
		require.NoError(t, err)
		virtual.Advance(time.Hour)

		last := store.Revision(1)
		for more := true; more; {
			batch, err := w.Next(100)
			require.NoError(t, err)
			for _, ev := range batch.Events {
				require.Equal(t, last+1, ev.Revision, "seed %d", seed)
				last = ev.Revision
				switch ev.Type {
				case store.Added, store.Modified:
					want[ev.Key()] = ev.Revision
				case store.Deleted:
					delete(want, ev.Key())
				}
			}
			more = len(batch.Events) > 0
		}
		list, err := b.List(ctx, backend.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, last, list.Revision)
		got := map[string]store.Revision{}
		for _, o := range list.Items {
			require.Zero(t, o.Expires, "seed %d: %s has not expired", seed, o.Key)
			got[o.Key] = o.Revision
		}
		require.Equal(t, want, got, "seed %d", seed)
		w.Close()
		require.NoError(t, b.Close())
		require.Zero(t, virtual.Pending())
	}
	require.Positive(t, failures)
}

// New reads the clock for the first revision, and again for what has expired.
func TestNew_ContainsAPanicOfTheClock(t *testing.T) {
	failing := &clocktest.Failing{Clock: clock.NewVirtual(began)}
	for after := range 2 {
		failing.Fail(clocktest.Now, after, 1)
		require.NotPanics(t, func() {
			_, err := memory.New(lamps, memory.Options{Clock: failing})
			require.ErrorIs(t, err, usercode.ErrPanic)
		})
	}
	b, err := memory.New(lamps, memory.Options{Clock: failing})
	require.NoError(t, err)
	require.NoError(t, b.Close())
}

// A timer that the clock fails to stop may fire after Close.
func TestClock_MayRingAfterClose(t *testing.T) {
	virtual := clock.NewVirtual(began)
	failing := &clocktest.Failing{Clock: virtual}
	b, err := memory.New(lamps, memory.Options{Clock: failing, FirstRevision: 1})
	require.NoError(t, err)
	_, err = b.Put(t.Context(), newLamp("hall", false), nil, backend.PutOptions{TTL: time.Second})
	require.NoError(t, err)
	failing.Fail(clocktest.Stop, 0, 2)
	require.NoError(t, b.Close())
	require.Equal(t, 2, virtual.Pending(), "one for expiry and one for history")
	require.NotPanics(t, func() { virtual.Advance(time.Hour) })
	require.Zero(t, virtual.Pending())
}

// After an error a draft is the caller's again, and its value as it was.
func TestClock_ThatPanicsLeavesADraftAsItWas(t *testing.T) {
	failing := &clocktest.Failing{Clock: clock.NewVirtual(began)}
	b, err := memory.New(backendtest.Schema(), memory.Options{Clock: failing})
	require.NoError(t, err)
	defer b.Close()
	for what, write := range map[string]func(*store.Object) error{
		"Put":  func(o *store.Object) error { _, err := b.Put(t.Context(), o, nil, backend.PutOptions{}); return err },
		"Emit": func(o *store.Object) error { _, err := b.Emit(t.Context(), o); return err },
	} {
		given := backendtest.Draft(backendtest.Value{Key: "a", Stamped: true, Revision: 7})
		was := *store.As[backendtest.Item](given)
		failing.Fail(clocktest.Now, 0, 1)
		require.ErrorIs(t, write(given), usercode.ErrPanic, what)
		require.Equal(t, was, *store.As[backendtest.Item](given), what)
	}
}
