package bolt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/window"
	"github.com/watchmill/watchmill/usercode"
)

// A clock that panics fails the write that reads it, which then changes nothing, and holds up
// no other. Once the clock works, the next write has all timers armed; and what was reported
// as written is in the file.
func TestClock_ThatPanicsLeavesStorageWhole(t *testing.T) {
	failures := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		failing := &clocktest.Failing{}
		f := newFixture(t, func(f *fixture) { failing.Clock, f.opts.Clock = f.clock, failing })
		heal := func() {
			failing.Fail(clocktest.Now, 0, 0)
			failing.Fail(clocktest.AfterFunc, 0, 0)
		}
		want, texts := store.Revision(1), map[string]string{}
		for n := range 60 {
			if rng.IntN(3) == 0 {
				failing.Fail([]clocktest.Call{clocktest.Now, clocktest.AfterFunc}[rng.IntN(2)], rng.IntN(3), 1+rng.IntN(3))
			}
			key, text := fmt.Sprint("item-", rng.IntN(5)), fmt.Sprint(n)
			old, _ := f.Get(f.ctx, key)
			var err error
			switch rng.IntN(6) {
			case 0:
				f.clock.Advance(time.Duration(rng.IntN(400)) * time.Second)
				continue
			case 1:
				if old == nil {
					continue
				}
				if _, err = f.Remove(f.ctx, old); err == nil {
					delete(texts, key)
				}
			case 2:
				_, err = f.Emit(f.ctx, draft(key, text))
			case 3:
				_, err = f.Put(f.ctx, draft("passing", text), nil, backend.PutOptions{TTL: time.Second})
				if errors.Is(err, store.ErrExists) {
					continue
				}
			default:
				if _, err = f.Put(f.ctx, draft(key, text), old, backend.PutOptions{}); err == nil {
					texts[key] = text
				}
			}
			if err != nil {
				require.ErrorIs(t, err, usercode.ErrPanic)
				failures++
				continue
			}
			want++
		}
		heal()
		f.put("last", "last")
		texts["last"] = "last"
		f.clock.Advance(time.Hour)
		for range 2 { // before a restart and after it
			list, err := f.List(f.ctx, backend.ListOptions{})
			require.NoError(t, err)
			got := map[string]string{}
			for _, o := range list.Items {
				got[o.Key] = textOf(o)
			}
			require.Equal(t, texts, got, "seed %d", seed)
			require.GreaterOrEqual(t, list.Revision, want+1)
			f.reopen(time.Second)
		}
	}
	require.Positive(t, failures)
}

// New reads the clock twice before it reads anything else.
func TestNew_ContainsAPanicOfTheClock(t *testing.T) {
	failing := &clocktest.Failing{}
	f := newFixture(t, func(f *fixture) { failing.Clock, f.opts.Clock = f.clock, failing })
	for after := range 2 {
		failing.Fail(clocktest.Now, after, 1)
		require.NotPanics(t, func() {
			_, err := bolt.New(f.file, "more", f.cfg)
			require.ErrorIs(t, err, usercode.ErrPanic)
		})
	}
	_, err := bolt.New(f.file, "more", f.cfg)
	require.NoError(t, err)
}

// A clock that jumps ahead and back keeps history longer, never beyond the most events, and then
// ages it again.
func TestClock_ThatJumpsKeepsHistoryForAWhile(t *testing.T) {
	f := newFixture(t, func(f *fixture) {
		f.cfg.Retain = window.Limits{MinEvents: 400, MaxEvents: 1000, MinAge: time.Minute}
	})
	f.clock.Jump(time.Hour)
	f.put("a", "ahead")
	f.clock.Jump(-time.Hour)
	before := f.flicker("a", 600).Revision
	for range 10 {
		f.clock.Advance(2 * time.Minute)
		f.file.Settle()
	}
	require.Zero(t, f.compacted(), "the clock is not yet where it was")
	require.Len(t, f.watch(1, "").read(before, 300), 601)

	f.flicker("a", 1200)
	f.file.Settle()
	require.GreaterOrEqual(t, f.compacted(), f.revision()-1000*5/4-256)
	f.clock.Advance(time.Hour)
	f.file.Settle()
	require.GreaterOrEqual(t, f.compacted(), f.revision()-400-256)
	require.LessOrEqual(t, f.compacted(), f.revision()-400)
}

// The timer does not know that the wall clock was set. Looking for what has expired writes nothing.
func TestClock_ThatIsSetAheadExpiresObjectsSoon(t *testing.T) {
	f := newFixture(t)
	_, err := f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{TTL: 24 * time.Hour})
	require.NoError(t, err)
	for range 2 { // as it was written, and as it is read from the file
		f.clock.Advance(time.Hour)
		require.EqualValues(t, 2, f.revision())
		f.reopen(0)
	}
	f.clock.Jump(48 * time.Hour)
	f.clock.Advance(time.Minute)
	_, err = f.Get(f.ctx, "a")
	require.ErrorIs(t, err, store.ErrNotFound)
}

// ending is a clock that ends the goroutine of one call, as t.FailNow does.
type ending struct {
	clock.Clock
	left atomic.Int64 // that call is the one that makes it zero
}

func (c *ending) called() {
	if c.left.Load() > 0 && c.left.Add(-1) == 0 {
		runtime.Goexit()
	}
}

func (c *ending) Now() time.Time {
	c.called()
	return c.Clock.Now()
}

func (c *ending) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.called()
	return endingTimer{c.Clock.AfterFunc(d, f), c}
}

type endingTimer struct {
	clock.Timer
	clock *ending
}

func (t endingTimer) Stop() bool {
	defer t.clock.called()
	return t.Timer.Stop()
}

// A type is closed, its watches end and another can take its name, whichever call of the clock ends the
// goroutine of Close.
func TestClose_OfATypeThoughTheClockEndsTheGoroutine(t *testing.T) {
	for call := range int64(2) {
		ends := &ending{}
		f := newFixture(t, func(f *fixture) { ends.Clock, f.opts.Clock = f.clock, ends })
		_, err := f.Put(f.ctx, draft("a", "1"), nil, backend.PutOptions{TTL: time.Hour})
		require.NoError(t, err)
		w := f.watch(0, "")
		require.Empty(t, w.read(0, 1))
		ends.left.Store(call + 1)
		apart(func() { _ = f.Backend.Close() })
		require.Zero(t, ends.left.Load())
		require.ErrorIs(t, w.wait(), store.ErrClosed)
		_, err = f.Revision(f.ctx)
		require.ErrorIs(t, err, store.ErrClosed)
		require.Zero(t, f.clock.Pending())
		f.Backend, err = bolt.New(f.file, "items", f.cfg)
		require.NoError(t, err)
	}
}

// New gives up the name, whichever call of the clock ends its goroutine.
func TestNew_GivesUpTheNameIfTheClockEndsTheGoroutine(t *testing.T) {
	ends := &ending{}
	f := newFixture(t, func(f *fixture) { ends.Clock, f.opts.Clock = f.clock, ends })
	for call := int64(1); ; call++ {
		ends.left.Store(call)
		apart(func() { _, _ = bolt.New(f.file, "more", f.cfg) })
		if ends.left.Load() > 0 {
			require.Greater(t, call, int64(5))
			return // it makes no more calls
		}
		ends.left.Store(0)
	}
}

// History is discarded later if user code ends the goroutine that discards it: the Notify of a watch, which learns
// of that, or the clock.
func TestUpkeep_GoesOnThoughUserCodeEndsItsGoroutine(t *testing.T) {
	for name, begin := range map[string]func(f *fixture, ends *ending){
		"Notify": func(f *fixture, _ *ending) {
			w, err := f.Watch(f.ctx, backend.WatchOptions{Notify: runtime.Goexit})
			require.NoError(f, err)
			_, err = w.Next(1)
			require.NoError(f, err)
			f.clock.Advance(2 * time.Minute)
		},
		"clock": func(f *fixture, ends *ending) {
			ends.left.Store(1)
			require.NoError(f, f.Compact(f.ctx, f.revision()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ends := &ending{}
			f := newFixture(t, func(f *fixture) {
				ends.Clock, f.opts.Clock = f.clock, ends
				f.cfg.Retain = window.Limits{MinEvents: 1, MinAge: time.Minute, MaxBytes: 1600}
			})
			f.flicker("a", 10)
			f.file.Settle()
			begin(f, ends)
			f.file.Settle()
			require.Zero(t, ends.left.Load())
			f.flicker("a", 20)
			for range 3 {
				f.clock.Advance(2 * time.Minute)
				f.file.Settle()
			}
			require.GreaterOrEqual(t, f.compacted(), f.revision()-5)
		})
	}
}
