package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// notifying is watches with a key each, none of which is written, and how often each has
// been notified.
type notifying struct {
	watches []*watcher.Watch
	times   []int
}

func (f *fixture) notifying(n int) *notifying {
	all := &notifying{times: make([]int, n)}
	for i := range n {
		filter, err := store.NewFilter(nil, store.FilterOptions{Key: fmt.Sprint("quiet", i)})
		require.NoError(f, err)
		w, snap := watcher.NewNotified(&f.feed, watcher.Options{}, func() { all.times[i]++ }), f.published.Load()
		f.admitThis(w, dispatcher.Register{Filter: filter, Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap})
		f.take(w, snap.Revision)
		all.watches, all.times[i] = append(all.watches, w), 0
	}
	return all
}

// progress commits that there is no change up to a revision.
func (f *fixture) progress(rev store.Revision) {
	f.window.Advance(rev)
	f.commit()
	f.executor.Run()
}

// Progress may be published between the request of a watch and its registration, after its
// consumer has asked in vain.
func TestNotified_LearnOfProgressBeforeTheirRegistration(t *testing.T) {
	for _, opts := range []store.FilterOptions{{Key: "quiet"}, {}} {
		f := newFixture(t)
		filter, err := store.NewFilter(nil, opts)
		require.NoError(t, err)
		told, snap := 0, f.published.Load()
		w := watcher.NewNotified(&f.feed, watcher.Options{}, func() { told++ })
		_, _, err = w.Take(1)
		require.NoError(t, err)
		f.progress(5)
		f.admitThis(w, dispatcher.Register{Filter: filter, Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap})
		f.pass(100 * time.Millisecond)
		require.Equal(t, 1, told)
		f.take(w, 5)
		f.pass(time.Second)
		require.Equal(t, 1, told, "there is no more")
	}
}

// A watch that is registered in the middle of a pass over the others takes the turn of none.
func TestNotified_LearnOfProgressThoughAnotherIsRegistered(t *testing.T) {
	f := newFixture(t)
	all := f.notifying(1)
	f.progress(5)
	later := f.notifying(1)
	f.pass(100 * time.Millisecond)
	require.Equal(t, []int{1}, all.times)
	require.Equal(t, []int{0}, later.times)
}

// There are few watches of everything, so they are notified at once.
func TestNotified_OfEverythingLearnOfProgressAtOnce(t *testing.T) {
	f := newFixture(t)
	told, snap := 0, f.published.Load()
	w := watcher.NewNotified(&f.feed, watcher.Options{}, func() { told++ })
	f.admitThis(w, dispatcher.Register{Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap})
	f.take(w, snap.Revision)
	told = 0
	f.progress(5)
	require.Equal(t, 1, told)
	f.take(w, 5)
	require.Zero(t, f.clock.Pending(), "none is left to be notified later")
}

// Those that go on are notified as before when others have ended.
func TestNotified_OfEverythingLearnOfProgressWhenOthersHaveEnded(t *testing.T) {
	f := newFixture(t)
	var all [3]*watcher.Watch
	var told [3]int
	snap := f.published.Load()
	for i := range all {
		all[i] = watcher.NewNotified(&f.feed, watcher.Options{}, func() { told[i]++ })
		f.admitThis(all[i], dispatcher.Register{Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap})
		f.take(all[i], snap.Revision)
	}
	all[0].Stop()
	f.executor.Run()
	told = [3]int{}
	for rev := store.Revision(5); rev <= 7; rev++ {
		f.progress(rev)
		f.take(all[1], rev)
		f.take(all[2], rev)
	}
	require.Equal(t, [3]int{0, 3, 3}, told)
	require.Zero(t, f.stats.Bookmarks.Load(), "they have asked for none")
}

func TestNotified_LearnOfProgressAtOnceAfterAnOutage(t *testing.T) {
	f := newFixture(t)
	all := f.notifying(3)
	f.progress(5)
	require.Equal(t, []int{0, 0, 0}, all.times)
	f.pass(100 * time.Millisecond)
	require.Equal(t, []int{1, 1, 1}, all.times)
	for _, w := range all.watches {
		f.take(w, 5)
	}
	f.generation++
	f.progress(6)
	require.Equal(t, []int{2, 2, 2}, all.times)
}

// A share of the watches is notified at a time. One that ends leaves its place to the last
// one, which may then be among those that were notified before.
func TestNotified_LearnOfProgressWhileOthersEnd(t *testing.T) {
	const watches = 1010 // more than a share
	f := newFixture(t)
	all := f.notifying(watches)
	f.progress(5)
	f.pass(100 * time.Millisecond)
	var late int
	for i, times := range all.times {
		if times == 0 {
			late++
		} else if i < 100 {
			all.watches[i].Stop() // which notifies it
		}
	}
	require.Positive(t, late)
	f.executor.Run()
	for range 3 {
		f.pass(100 * time.Millisecond)
	}
	require.NotContains(t, all.times, 0)
	require.Zero(t, f.clock.Pending(), "no timer runs once all have been notified")
}
