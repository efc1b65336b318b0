package watcher_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// consumed is a watch, where it started, and what it has given so far.
type consumed struct {
	watch *watcher.Watch
	after store.Revision
	// state is what its consumer holds, if it goes by state: from the start, and
	// applying everything.
	state  map[string]*store.Object
	policy watcher.Policy
	events []store.Event
	ended  error
}

// In any interleaving of writes, rounds (also failed ones), trims and reads, a
// watch delivers exactly what its filter shows of the history after its start,
// each once, in order, up to where it is; or it has ended with ErrExpired, after
// an unbroken beginning of that; if the window has ever gone past the dispatcher
// itself, perhaps because that could not be known. Under Conflate, what is not
// marked is part of it, and all together leads to the right state: what came and
// went is not mentioned. Bookmarks never pass an event.
func TestCursor_AnyInterleavingDeliversTheProjection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		selector := rapid.SampledFrom([]string{"", "a=1", "a!=1"}).Draw(t, "selector")
		filter, err := store.NewFilter(columns, store.FilterOptions{Labels: selector})
		require.NoError(t, err)
		limits := store.WindowLimits{
			MaxEvents: rapid.IntRange(2, 12).Draw(t, "events"), ChunkSize: rapid.IntRange(1, 2).Draw(t, "chunk"),
		}
		w := newWorld(t, filter, limits)
		var watches []*consumed
		some := func(t *rapid.T) *consumed {
			if len(watches) == 0 {
				t.Skip("nobody watches")
			}
			return rapid.SampledFrom(watches).Draw(t, "watch")
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				for range rapid.IntRange(1, 3).Draw(t, "times") {
					w.write(drawWrite(t, w))
				}
			},
			"round":     func(*rapid.T) { w.round() },
			"halfRound": func(*rapid.T) { w.halfRound() },
			"trim":      func(*rapid.T) { w.trim() },
			"watch": func(t *rapid.T) {
				if len(watches) < 6 {
					watches = append(watches, drawWatch(t, w))
				}
			},
			"read": func(t *rapid.T) {
				some(t).read(t, rapid.IntRange(1, 3).Draw(t, "batches"))
			},
			"bookmark": func(t *rapid.T) { some(t).watch.RequestBookmark() },
		})
		w.round()
		for _, c := range watches {
			c.read(t, 1<<20)
			c.judge(t, w)
		}
	})
}

func drawWrite(t *rapid.T, w *world) string {
	key, value := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "key"), rapid.IntRange(1, 2).Draw(t, "a")
	switch {
	case w.tree.Get(key) == nil:
		return fmt.Sprintf("create %s a=%d", key, value)
	case rapid.IntRange(0, 2).Draw(t, "delete") == 0:
		return "delete " + key
	}
	return fmt.Sprintf("update %s a=%d", key, value)
}

func drawWatch(t *rapid.T, w *world) *consumed {
	snap, start := w.feed.Load(), w.now()
	c := &consumed{policy: rapid.SampledFrom([]watcher.Policy{watcher.Park, watcher.Conflate}).Draw(t, "policy")}
	switch rapid.IntRange(0, 2).Draw(t, "start") {
	case 0:
		from := store.Revision(rapid.Uint64Range(uint64(snap.Window.Floor()), uint64(snap.Revision)).Draw(t, "from"))
		at, err := snap.Window.Seek(from)
		require.NoError(t, err)
		start.Next, start.After = at, from
	case 1:
		start.State, start.InitialEnd = snap.State, rapid.Bool().Draw(t, "bookmark")
	}
	c.after, c.state = start.After, map[string]*store.Object{}
	if start.State == nil {
		for _, ev := range w.log[:start.After] { // every event has a revision of its own
			for _, seen := range watcher.ConvertBatch(schema, w.stream.Filter(), []store.Event{ev}) {
				apply(c.state, seen)
			}
		}
	}
	c.watch = w.watch(watcher.Options{Policy: c.policy, Bookmarks: true, Buffer: rapid.IntRange(1, 4).Draw(t, "buffer")}, start)
	return c
}

func (c *consumed) read(t *rapid.T, batches int) {
	for ; batches > 0 && c.ended == nil; batches-- {
		events, err := c.watch.Next(t.Context())
		if errors.Is(err, errIdle) {
			return
		}
		c.events, c.ended = append(c.events, events...), err
		for _, ev := range events {
			apply(c.state, ev)
		}
	}
}

func apply(state map[string]*store.Object, ev store.Event) {
	switch ev.Type {
	case store.Added, store.Modified:
		state[ev.Key()] = ev.Object
	case store.Deleted:
		delete(state, ev.Key())
	}
}

// judge compares what the watch has given with the history.
func (c *consumed) judge(t *rapid.T, w *world) {
	want := watcher.ConvertBatch(schema, w.stream.Filter(), w.log[c.after:])
	var got []store.Event
	last, shown := c.after, fmt.Sprint(want)
	for _, ev := range c.events {
		switch {
		case ev.Is(store.Initial):
			continue
		case ev.Type == store.Bookmark:
			require.GreaterOrEqual(t, ev.Revision, last, "%v went back", ev)
			last = ev.Revision
			continue
		}
		require.Greater(t, ev.Revision, last, "%v is out of order", ev)
		last = ev.Revision
		got = append(got, ev)
		if !ev.Is(store.Conflated) {
			require.Contains(t, shown, ev.String(), "not what the filter shows")
		}
	}
	if c.ended != nil {
		require.ErrorIs(t, c.ended, store.ErrExpired)
		require.Equal(t, watcher.Park, c.policy)
		require.True(t, w.lapped || len(got) < len(want), "it ended though it had got everything")
		require.Equal(t, fmt.Sprint(want[:len(got)]), fmt.Sprint(got))
		return
	}
	if c.policy == watcher.Park {
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
	}
	selected := map[string]*store.Object{}
	for o := range store.Select(w.tree.View(), w.stream.Filter(), "") {
		selected[o.Key] = o
	}
	require.Equal(t, selected, c.state)
	require.Equal(t, w.written.Revision, c.watch.Revision())
}
