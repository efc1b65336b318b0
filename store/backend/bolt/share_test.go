package bolt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
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
	defer bolt.SetHotLimits(store.WindowLimits{MaxEvents: 40, ChunkSize: 10})()
	for _, reopened := range []bool{false, true} {
		if reopened {
			f.reopen(0)
		}
		w := &follower{fixture: f, notified: make(chan struct{}, 1)}
		var err error
		w.Watcher, err = f.Watch(f.ctx, backend.WatchOptions{From: 1, State: true, Notify: func() {
			select {
			case w.notified <- struct{}{}:
			default:
			}
		}})
		require.NoError(t, err)
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
