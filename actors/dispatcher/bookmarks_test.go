package dispatcher_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store/tree"
)

func TestBookmarks_ComeOnceAPeriodToWatchesWithTheOption(t *testing.T) {
	f := newFixture(t)
	asked, silent := f.watch(watcher.Options{Bookmarks: true}), f.watch(watcher.Options{})
	later := f.watchFrom(watcher.Options{Bookmarks: true}, watcher.Start{Pending: 9})
	f.write(2)
	f.has(asked, 2)
	f.pass(2 * dispatcher.DefaultBookmarkPeriod)
	f.has(asked, -2)
	f.has(silent, 2)
	f.has(later)
}

// Progress that was made while a consumer read its initial state is reported soon after, not a period later.
func TestBookmarks_ComeSoonAfterAnInitialStateThatTookLong(t *testing.T) {
	f := newFixture(t)
	f.state = tree.New()
	f.write(2)
	snap := f.published.Load()
	w := f.watchFrom(watcher.Options{Bookmarks: true}, watcher.Start{Next: snap.Window.Next(), After: 2, State: snap.State(), InitialEnd: true})
	f.progress(9)
	f.pass(2 * time.Second)
	f.has(w, 2, -2, -9)
}

// Time is counted only while there is a watch that wants bookmarks.
func TestBookmarks_TickEndsWithTheirLastWatch(t *testing.T) {
	f := newFixture(t)
	require.Zero(t, f.clock.Pending())
	w := f.watch(watcher.Options{Bookmarks: true})
	require.Equal(t, 1, f.clock.Pending())
	w.Stop()
	f.executor.Run()
	f.pass(2 * time.Second)
	require.Zero(t, f.clock.Pending())
}
