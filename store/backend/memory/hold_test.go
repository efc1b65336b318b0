package memory_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/window"
)

// little is less history than the tests write.
var little = memory.Options{Retain: window.Limits{MaxEvents: 100, MinAge: time.Second}}

// listShared lists as a cache does, and returns the revision.
func (f *fixture) listShared(at store.Revision) store.Revision {
	f.Helper()
	list, err := f.List(f.ctx, backend.ListOptions{State: true, Revision: at})
	require.NoError(f, err)
	return list.Revision
}

func TestHold_ListWithStateKeepsTheHistoryForItsWatch(t *testing.T) {
	f := newFixture(t, little)
	f.flicker("hall", 1000)
	listed := f.listShared(0)
	f.flicker("hall", 5000)
	f.clock.Advance(9 * time.Second)
	f.flicker("hall", 5000)
	w := f.share(listed)
	require.Len(t, f.read(w), 10_000)
	f.flicker("hall", 1)
	require.LessOrEqual(t, f.History().Len(), 256, "what the watch has read is not held any more")
	w.Close()
}

func TestHold_ListOfThePastWithStateDoesSo(t *testing.T) {
	f := newFixture(t, little)
	f.flicker("hall", 150)
	f.listShared(0)
	past := f.listShared(100)
	f.flicker("hall", 5000)
	w := f.share(past)
	require.Len(t, f.read(w), 5051)
	f.flicker("hall", 1)
	require.LessOrEqual(t, f.History().Len(), 256, "the list of the newest state before it holds nothing any more")
	w.Close()
}

// A cache that never watches costs its history for some seconds, even if nothing more is
// written.
func TestHold_EndsIfNoWatchComes(t *testing.T) {
	f := newFixture(t, little)
	listed := f.listShared(0)
	f.flicker("hall", 5000)
	require.Equal(t, 5000, f.History().Len())
	f.clock.Advance(10 * time.Second)
	require.Zero(t, f.History().Len())
	f.clock.Advance(time.Second)
	require.Zero(t, f.clock.Pending(), "and the timer rests")
	_, err := f.Watch(f.ctx, backend.WatchOptions{From: listed, Notify: nothing, State: true})
	require.ErrorIs(t, err, store.ErrExpired)
}

// Lists without a watch are many where something only reads.
func TestHold_OnlyTheNewestListsHold(t *testing.T) {
	f := newFixture(t, little)
	first := f.listShared(0)
	for range 1000 {
		f.flicker("hall", 10)
		f.listShared(0)
	}
	require.Less(t, f.History().Len(), 1000)
	_, err := f.Watch(f.ctx, backend.WatchOptions{From: first, Notify: nothing, State: true})
	require.ErrorIs(t, err, store.ErrExpired)
}

// Several caches may list the same state.
func TestHold_ListsOfOneRevisionHoldAsOne(t *testing.T) {
	f := newFixture(t, little)
	first := f.listShared(0)
	f.flicker("hall", 1000)
	for range 100 {
		f.listShared(0)
	}
	f.flicker("hall", 1000)
	w := f.share(first)
	require.Len(t, f.read(w), 2000)
	w.Close()
}

// A list that fails holds nothing, and a compaction is stronger than a hold.
func TestHold_IsNoneForWhatIsGone(t *testing.T) {
	f := newFixture(t, little)
	last := f.flicker("hall", 1000)
	_, err := f.List(f.ctx, backend.ListOptions{State: true, Revision: 1})
	require.ErrorIs(t, err, store.ErrExpired)
	_, err = f.List(f.ctx, backend.ListOptions{State: true, Revision: last.Revision + 1})
	require.ErrorIs(t, err, store.ErrFuture)
	f.flicker("hall", 1000)
	require.LessOrEqual(t, f.History().Len(), 356)

	listed := f.listShared(0)
	last = f.flicker("hall", 1000)
	require.NoError(t, f.Compact(f.ctx, last.Revision))
	_, err = f.Watch(f.ctx, backend.WatchOptions{From: listed, Notify: nothing, State: true})
	require.ErrorIs(t, err, store.ErrExpired)
}

// Whatever is written and listed before it, a watch within the time follows its list.
func TestHold_PropertyAWatchInTimeMissesNothing(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := newFixture(t, little)
		f.flicker("hall", rng.IntN(600))
		listed := f.listShared(0)
		written := 0
		for range rng.IntN(6) {
			n := 1 + rng.IntN(700)
			f.flicker("hall", n)
			written += n
			switch rng.IntN(3) {
			case 0:
				f.clock.Advance(time.Duration(rng.IntN(1600)) * time.Millisecond)
			case 1: // another cache
				f.share(f.listShared(0)).Close()
			}
		}
		w := f.share(listed)
		require.Len(t, f.read(w), written, "seed %d", seed)
		w.Close()
	}
}
