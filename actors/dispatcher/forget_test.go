package dispatcher_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// A consumer may keep a watch that has ended, to ask it for its error or revision.
func TestForget_AWatchThatHasEndedKeepsNoEvents(t *testing.T) {
	f := newFixtureWith(t, small)
	w := f.selecting(store.FilterOptions{Key: "a"})
	f.has(w) // and follows its stream from here
	f.write(2)
	object := f.nextObject(w)
	w.Stop()
	f.executor.Run()
	f.write(3, 4, 5, 6)
	for object.Value() != nil {
		runtime.GC()
	}
	require.EqualValues(t, 2, w.Revision())
	require.Zero(t, w.Lag())
	require.ErrorIs(t, w.Err(), watcher.ErrStopped)
	runtime.KeepAlive(f)
}

// A loop may end in the middle of a batch, whose rest the watch drops.
func TestForget_AWatchThatEndsInALoopKeepsNoEvents(t *testing.T) {
	f := newFixtureWith(t, window.Limits{MaxEvents: 4, ChunkSize: 2})
	w := f.watch(watcher.Options{})
	f.write(2, 3)
	var object weak.Pointer[store.Object]
	for ev, err := range w.Events() {
		require.NoError(t, err)
		object = weak.Make(ev.Object)
		break
	}
	require.EqualValues(t, 1, w.Lag())
	w.Stop()
	f.executor.Run()
	for rev := store.Revision(4); rev <= 11; rev++ {
		f.write(rev)
	}
	for object.Value() != nil {
		runtime.GC()
	}
	require.EqualValues(t, 2, w.Revision())
	runtime.KeepAlive(f)
	runtime.KeepAlive(w)
}

// Watches come and go for as long as an engine runs: neither they nor their streams may stay.
func TestForget_KeepsNothingOfAWatchThatHasEnded(t *testing.T) {
	key, err := store.NewFilter(nil, store.FilterOptions{Key: "a"})
	require.NoError(t, err)
	from := func(f *fixture) dispatcher.Register {
		snap := f.published.Load()
		return dispatcher.Register{Filter: key, Start: watcher.Start{Next: snap.Window.Next(), After: snap.Revision}, Snapshot: snap}
	}
	for name, begin := range map[string]func(*fixture) *watcher.Watch{
		"selecting": func(f *fixture) *watcher.Watch { return f.admit(watcher.Options{}, from(f)) },
		"from the future": func(f *fixture) *watcher.Watch {
			return f.admit(watcher.Options{}, dispatcher.Register{Filter: key, Start: watcher.Start{Pending: 100}, Snapshot: f.published.Load()})
		},
		"with bookmarks": func(f *fixture) *watcher.Watch { return f.admit(watcher.Options{Bookmarks: true}, from(f)) },
		"with progress": func(f *fixture) *watcher.Watch {
			return f.admit(watcher.Options{Bookmarks: true, Progress: true}, from(f))
		},
		"with a deadline": func(f *fixture) *watcher.Watch {
			m := from(f)
			m.Deadline.At = f.clock.Now().Add(time.Hour)
			return f.admit(watcher.Options{}, m)
		},
		"notified": func(f *fixture) *watcher.Watch {
			w := watcher.NewNotified(&f.feed, watcher.Options{}, func() {})
			f.admitThis(w, from(f))
			return w
		},
		"notified of everything": func(f *fixture) *watcher.Watch {
			w, m := watcher.NewNotified(&f.feed, watcher.Options{}, func() {}), from(f)
			m.Filter = nil
			f.admitThis(w, m)
			return w
		},
		"handled": func(f *fixture) *watcher.Watch { return f.admitHandler(key, func(store.Revision) {}) },
		"ended by its handler": func(f *fixture) (w *watcher.Watch) {
			w = f.admitHandler(key, func(store.Revision) { w.Stop() })
			f.write(2)
			return w
		},
		"stalled": func(f *fixture) *watcher.Watch {
			w := f.admit(watcher.Options{Buffer: 1, Policy: watcher.Terminate}, from(f))
			f.write(2, 3, 4)
			require.True(f, w.Stalled())
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			watch, stream := func() (weak.Pointer[watcher.Watch], weak.Pointer[watcher.Stream]) {
				w := begin(f)
				defer w.Stop()
				return weak.Make(w), weak.Make(w.Member().Stream())
			}()
			f.executor.Run()
			require.Zero(t, f.stats.Watches.Load())
			runtime.GC()
			require.Nil(t, watch.Value())
			if name != "notified of everything" { // whose stream is the dispatcher's own
				require.Nil(t, stream.Value())
			}
			runtime.KeepAlive(f)
		})
	}
}
