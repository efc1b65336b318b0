package dispatcher_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// small is a window of two events.
var small = window.Limits{MaxEvents: 2, ChunkSize: 1}

// The window leaves behind a consumer that does not read: it is given as much as its
// buffer kept, and then told.
func TestWindowMoves_ParkedWatchExpiresBehindItsBuffer(t *testing.T) {
	f := newFixtureWith(t, small)
	w := f.watch(watcher.Options{Buffer: 1})
	for rev := store.Revision(2); rev <= 9; rev++ {
		f.write(rev)
	}
	got, end := f.read(w)
	require.ErrorIs(t, end, store.ErrExpired)
	require.Equal(t, []int{2}, got)
	require.EqualValues(t, 1, f.stats.Expired.Load())
	require.Zero(t, f.stats.Watches.Load())
}

func TestWindowMoves_ReaderInTimeGoesOn(t *testing.T) {
	f := newFixtureWith(t, small)
	w := f.watch(watcher.Options{Buffer: 1})
	for rev := store.Revision(2); rev <= 9; rev++ {
		f.write(rev)
		f.has(w, int(rev))
	}
	require.EqualValues(t, 1, f.stats.Watches.Load())
}

// Storage has gone back: whatever stood in the old history starts over.
func TestEpoch_EndsEveryWatchOfTheHistoryBefore(t *testing.T) {
	f := newFixture(t)
	w, future := f.watch(watcher.Options{Policy: watcher.Conflate}), f.watchFrom(watcher.Options{}, watcher.Start{Pending: 9})
	f.write(2)
	f.window.Reset(1)
	f.epoch++
	f.commit()
	f.executor.Run()
	for _, w := range []*watcher.Watch{w, future} {
		_, end := f.read(w)
		require.ErrorIs(t, end, store.ErrExpired)
	}
	require.Zero(t, f.stats.Watches.Load())
}

// A watch that the window has left behind is one that expired, even if storage then goes back.
func TestEpoch_CountsNoWatchTwice(t *testing.T) {
	f := newFixtureWith(t, small)
	f.watch(watcher.Options{Buffer: 1})
	f.write(2)
	f.write(3)
	f.write(4)
	f.write(5)
	require.EqualValues(t, 1, f.stats.Expired.Load())
	f.watch(watcher.Options{})
	f.window.Reset(1)
	f.epoch++
	f.commit()
	f.executor.Run()
	require.EqualValues(t, 2, f.stats.Expired.Load())
	require.Zero(t, f.stats.Watches.Load())
}

// A consumer that conflates and does not read is given the newest state of what has
// left the window, and goes on.
func TestWindowMoves_ConflatingWatchIsGivenTheNewestState(t *testing.T) {
	f := newFixtureWith(t, small)
	f.state = tree.New()
	conflating := f.watch(watcher.Options{Buffer: 1, Policy: watcher.Conflate})
	for rev := store.Revision(2); rev <= 9; rev++ {
		f.write(rev)
	}
	f.has(conflating, 2, 9) // the first is in its buffer
	f.write(10)
	f.has(conflating, 10)
	require.NoError(t, conflating.Err())
	require.Zero(t, f.stats.Expired.Load())
	require.EqualValues(t, 1, f.stats.Watches.Load())
}
