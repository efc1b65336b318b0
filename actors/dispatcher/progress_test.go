package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
)

// progressing has the dispatcher take in a watch from the newest snapshot on that is told of
// progress.
func (f *fixture) progressing(opts store.FilterOptions) *watcher.Watch {
	filter, err := store.NewFilter(nil, opts)
	require.NoError(f, err)
	snap := f.published.Load()
	return f.admit(watcher.Options{Bookmarks: true, Progress: true}, dispatcher.Register{
		Filter: filter, Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap,
	})
}

func TestProgress_IsOneBookmarkSoonAfterRevisionsWithoutEvents(t *testing.T) {
	for _, opts := range []store.FilterOptions{{Key: "quiet"}, {}} {
		f := newFixture(t)
		w, other := f.progressing(opts), f.watch(watcher.Options{Bookmarks: true})
		f.has(w)
		f.has(other)
		f.pass(time.Second)
		f.has(w)
		f.progress(5)
		f.pass(99 * time.Millisecond)
		f.has(w)
		f.pass(time.Millisecond)
		f.has(w, -5)
		f.pass(time.Second)
		f.has(w)
		f.progress(6)
		f.progress(7)
		f.pass(100 * time.Millisecond)
		f.has(w, -7)
		f.pass(time.Second)
		f.has(w)
		f.has(other)
		require.EqualValues(t, 2, f.stats.Bookmarks.Load())
	}
}

func TestProgress_NeedsNoBookmarkAfterAnEvent(t *testing.T) {
	f := newFixture(t)
	w := f.progressing(store.FilterOptions{Key: "a"})
	f.has(w)
	for rev := range store.Revision(5) {
		f.write(2 + rev)
		f.has(w, int(2+rev))
		f.pass(time.Second)
		f.has(w)
	}
	require.Zero(t, f.stats.Bookmarks.Load())
}

// A watch that reads goes past revisions without an event, for which it then waits no more. Its consumer
// does not know so.
func TestProgress_IsToldOfWhatTheWatchHasPassedInSilence(t *testing.T) {
	for name, passes := range map[string]func(f *fixture, w *watcher.Watch){
		"behind an event": func(f *fixture, w *watcher.Watch) {
			f.write(2)
			f.progress(3)
			f.has(w, 2)
		},
		"before its first read": func(f *fixture, w *watcher.Watch) {
			f.progress(3)
			f.has(w)
		},
		"for its revision": func(f *fixture, w *watcher.Watch) {
			f.has(w)
			f.progress(3)
			require.EqualValues(f, 3, w.Revision())
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.progressing(store.FilterOptions{Key: "a"})
			passes(f, w)
			f.pass(100 * time.Millisecond)
			f.has(w, -3)
			f.pass(time.Second)
			f.has(w)
		})
	}
}

// A consumer that does not read is told when it does, once.
func TestProgress_WaitsForItsConsumer(t *testing.T) {
	f := newFixture(t)
	w := f.progressing(store.FilterOptions{Key: "a"})
	for rev := store.Revision(2); rev < 10; rev += 2 {
		f.write(rev)
		f.progress(rev + 1)
		f.pass(time.Second)
	}
	f.has(w, 2, 4, 6, 8, -9)
	f.pass(time.Second)
	f.has(w)
}

func TestProgress_IsToldAShareOfTheWatchesAtATime(t *testing.T) {
	f := newFixture(t)
	all := make([]*watcher.Watch, 2500)
	for i := range all {
		all[i] = f.progressing(store.FilterOptions{Key: fmt.Sprint("quiet", i)})
		f.has(all[i])
	}
	f.progress(5)
	told := make(map[*watcher.Watch]bool)
	for _, want := range []int{0, 1000, 2000, 2500} {
		for _, w := range all {
			if got, end := f.read(w); len(got) > 0 {
				require.NoError(t, end)
				require.Equal(t, []int{-5}, got)
				require.False(t, told[w])
				told[w] = true
			}
		}
		require.Len(t, told, want)
		f.pass(100 * time.Millisecond)
	}
}

func TestProgress_IsToldAtOnceAfterAnOutage(t *testing.T) {
	f := newFixture(t)
	w := f.progressing(store.FilterOptions{Key: "quiet"})
	f.has(w)
	f.generation++
	f.progress(6)
	f.has(w, -6)
	f.pass(time.Second)
	f.has(w)
}

func TestProgress_IsToldToAHandler(t *testing.T) {
	f := newFixture(t)
	var got []string
	w := watcher.NewHandled(&f.feed, watcher.Options{OnPool: true, Bookmarks: true, Progress: true}, func(d *watcher.Delivery) {
		for i, ev := range d.Events() {
			require.True(t, d.Begin(i))
			got = append(got, fmt.Sprint(ev.Type, " ", ev.Revision))
		}
	})
	filter, err := store.NewFilter(nil, store.FilterOptions{Key: "a"})
	require.NoError(t, err)
	snap := f.published.Load()
	f.admitThis(w, dispatcher.Register{Filter: filter, Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap})
	f.write(2)
	f.pass(time.Second)
	f.progress(3)
	f.pass(100 * time.Millisecond)
	require.Equal(t, []string{"ADDED 2", "BOOKMARK 3"}, got)
}

// The initial state ends in a bookmark of its own.
func TestProgress_IsToldAfterTheInitialState(t *testing.T) {
	f := newFixture(t)
	f.state = tree.New()
	f.write(2)
	snap := f.published.Load()
	w := f.admit(watcher.Options{Bookmarks: true, Progress: true}, dispatcher.Register{
		Start: watcher.Start{Next: snap.Window.Next(), After: 2, State: snap.State(), InitialEnd: true}, Snapshot: snap,
	})
	f.has(w, 2, -2)
	f.pass(time.Second)
	f.has(w)
	f.progress(3)
	f.pass(100 * time.Millisecond)
	f.has(w, -3)
}
