package bolt_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/window"
)

func TestShare_ListGivesTheStateItself(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.cfg.Indexes = []store.Attribute{store.LabelAttribute("text")} })
	a := f.put("a", "1")
	list, err := f.List(f.ctx, backend.ListOptions{State: true})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	require.Same(t, a, list.State.Get("a"))
	require.True(t, list.State.Indexed(store.LabelAttribute("text")))
	f.put("b", "2")
	require.Equal(t, 1, list.State.Len(), "what is written later does not show")
}

// The newest events come with the state at them, wherever they were read.
func TestShare_NewestEventsComeWithTheState(t *testing.T) {
	f := newFixture(t)
	f.story(1, 300)
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 40, ChunkSize: 10})()
	for _, reopened := range []bool{false, true} {
		if reopened {
			f.reopen(0)
		}
		w := f.watchBy(backend.WatchOptions{From: 1, State: true})
		for round := range 4 {
			f.requireShared(w)
			f.story(uint64(round+2), 7+40*(round%2))
		}
		w.Close()
	}
}

// requireShared reads w to its end: the state comes with the newest events, and
// with no others.
func (f *fixture) requireShared(w *follower) {
	f.Helper()
	for w.through < f.revision() {
		batch, err := w.Next(9)
		require.NoError(f, err)
		w.through = max(w.through, batch.Through)
		if len(batch.Events) == 0 {
			<-w.notified
			continue
		}
		require.Equal(f, batch.Through == f.revision(), batch.State != nil)
		if batch.State == nil {
			continue
		}
		var texts []string
		for o := range batch.State.All("", "") {
			texts = append(texts, describe(o))
		}
		require.Equal(f, f.list(backend.ListOptions{}), append([]string{}, texts...))
	}
}

// A consumer that knows the state before each event is spared the reading of previous
// objects, up to the events that come with the state.
func TestShare_NoPrevIsReadBeforeTheStateComes(t *testing.T) {
	f := newFixture(t)
	f.story(1, 300)
	defer bolt.SetHotLimits(window.Limits{MaxEvents: 40, ChunkSize: 10})()
	defer bolt.SetColdRun(16)()
	f.reopen(0)
	for limit := 1; limit <= 20; limit++ {
		w := f.watchBy(backend.WatchOptions{From: 1, State: true, NoPrev: true})
		require.Greater(t, f.requireSameEvents(w, limit), 150)
		w.Close()
	}
	w := f.watchBy(backend.WatchOptions{From: 1, State: true, NoPrev: true})
	defer w.Close()
	f.requireSameEvents(w, 10)
	for round := range uint64(3) { // out of memory again: it has no state but that
		f.story(round+2, 90)
		require.Zero(t, f.requireSameEvents(w, 10))
	}
}

// requireSameEvents reads w to its end, and compares what it gives with a watch that
// wants all previous objects. It returns how many were left out.
func (f *fixture) requireSameEvents(w *follower, limit int) (bare int) {
	f.Helper()
	full := f.watch(max(1, w.through), "")
	defer full.Close()
	want := full.events(f.revision(), 100)
	for w.through < f.revision() {
		batch, err := w.Next(limit)
		require.NoError(f, err)
		w.through = max(w.through, batch.Through)
		if len(batch.Events) == 0 {
			<-w.notified
		}
		for !bolt.ReadAhead(w.Watcher) {
			runtime.Gosched()
		}
		for i, ev := range batch.Events {
			if ev.Prev != nil || want[i].Prev == nil {
				require.Equal(f, tell(want[i]), tell(ev))
				continue
			}
			bare++
			require.Nil(f, batch.State, "what comes with a state is whole")
			require.Equal(f, want[i].String(), ev.String())
			if ev.Type != store.Deleted {
				require.Equal(f, describe(want[i].Object), describe(ev.Object))
			}
		}
		want = want[len(batch.Events):]
	}
	require.Empty(f, want)
	return bare
}
