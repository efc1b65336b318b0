package watcher_test

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// consumed is a watch, where it started, and what it has given so far.
type consumed struct {
	watch *watcher.Watch
	// takes: its consumer is notified and takes, others call Next.
	takes bool
	after store.Revision
	// state is what its consumer holds, if it goes by state: from the start, and
	// applying everything.
	state  map[string]*store.Object
	policy watcher.Policy
	events []store.Event
	// stood is the largest revision that it said could be resumed from.
	stood store.Revision
	ended error
}

// For any interleaving of writes, rounds (also failed ones), trims and reads,
// with several keys in a revision: a watch delivers exactly what its filter shows
// of the history after its start, each once, in order, up to where it is; or it
// has ended with ErrExpired, after an unbroken beginning of that; if the window
// has ever gone past the dispatcher itself, perhaps because nothing could tell.
// Where it says that it can be resumed from, everything before has been
// delivered. Under Conflate, what is not marked is part of the history, and all
// together leads to the right state; emitted values that were left out are
// counted, and the next one says so. Bookmarks never pass an event.
func TestCursor_AnyInterleavingDeliversTheProjection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		selector := rapid.SampledFrom([]string{"", "a=1", "a!=1"}).Draw(t, "selector")
		filter, err := store.NewFilter(columns, store.FilterOptions{Labels: selector})
		require.NoError(t, err)
		limits := window.Limits{
			MaxEvents: rapid.IntRange(2, 12).Draw(t, "events"), ChunkSize: rapid.IntRange(1, 2).Draw(t, "chunk"),
		}
		w := newWorld(t, filter, limits)
		var watches []*consumed
		some := func(t *rapid.T) *consumed {
			if len(watches) == 0 {
				t.Skip("there is no watch")
			}
			return rapid.SampledFrom(watches).Draw(t, "watch")
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				for range rapid.IntRange(1, 3).Draw(t, "revisions") {
					drawRevision(t, w)
				}
			},
			"round": func(*rapid.T) { w.round() },
			"readDuringRound": func(t *rapid.T) {
				w.roundDuring(func() {
					if len(watches) > 0 {
						some(t).read(t, rapid.IntRange(1, 3).Draw(t, "batches"))
					}
				})
			},
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
			"bookmark": func(t *rapid.T) { some(t).watch.Member().RequestBookmark() },
		})
		w.round()
		for _, c := range watches {
			c.read(t, 1<<20)
			c.judge(t, w)
		}
	})
}

// drawRevision writes one revision, of one to three keys.
func drawRevision(t *rapid.T, w *world) {
	keys := rapid.Permutation([]string{"x", "y", "z"}).Draw(t, "keys")[:rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "writes")]
	for i, key := range keys {
		line := drawWrite(t, w, key)
		if i > 0 {
			line = "with " + line
		}
		w.write(line)
	}
}

func drawWrite(t *rapid.T, w *world, key string) string {
	value, what := rapid.IntRange(1, 2).Draw(t, "a"), rapid.IntRange(0, 5).Draw(t, "what")
	switch {
	case what == 0:
		return fmt.Sprintf("emit %s a=%d", key, value)
	case w.tree.Get(key) == nil:
		return fmt.Sprintf("create %s a=%d", key, value)
	case what <= 2:
		return "delete " + key
	}
	return fmt.Sprintf("update %s a=%d", key, value)
}

func drawWatch(t *rapid.T, w *world) *consumed {
	snap, start := w.feed.Load(), w.now()
	c := &consumed{
		policy: rapid.SampledFrom([]watcher.Policy{watcher.Park, watcher.Conflate}).Draw(t, "policy"),
		takes:  rapid.Bool().Draw(t, "takes"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "start") {
	case 0:
		from := store.Revision(rapid.Uint64Range(uint64(snap.Window.Floor()), uint64(snap.Revision)).Draw(t, "from"))
		at, err := snap.Window.Seek(from)
		require.NoError(t, err)
		start.Next, start.After = at, from
	case 1:
		start.State, start.InitialEnd = snap.State(), rapid.Bool().Draw(t, "bookmark")
	}
	c.after, c.state = start.After, map[string]*store.Object{}
	if start.State == nil {
		for _, ev := range w.upTo(start.After) {
			for _, seen := range watcher.ConvertBatch(schema, w.stream.Filter(), []store.Event{ev}) {
				apply(c.state, seen)
			}
		}
	}
	options := watcher.Options{Policy: c.policy, Bookmarks: true, Buffer: rapid.IntRange(1, 4).Draw(t, "buffer")}
	c.watch = watcher.New(&w.feed, options)
	if c.takes {
		c.watch = watcher.NewNotified(&w.feed, options, func() {})
	}
	w.join(c.watch, start)
	return c
}

// upTo returns what was written up to a revision.
func (w *world) upTo(rev store.Revision) []store.Event { return upTo(w.log, rev) }

func (c *consumed) read(t *rapid.T, batches int) {
	for ; batches > 0 && c.ended == nil; batches-- {
		events, idle := c.next(t)
		for _, ev := range events {
			apply(c.state, ev)
			if !ev.Is(store.Initial) && ev.Type != store.Bookmark {
				require.Greater(t, ev.Revision, c.stood, "%v comes after it was said to have been delivered", ev)
			}
		}
		c.events = append(c.events, events...)
		c.stood = max(c.stood, c.watch.Revision())
		if idle {
			return
		}
	}
}

// next reads a batch. Idle reports whether there is nothing more now.
func (c *consumed) next(t *rapid.T) (events []store.Event, idle bool) {
	if !c.takes {
		events, err := c.watch.Next(t.Context())
		if errors.Is(err, errIdle) {
			return nil, true
		}
		c.ended = err
		return events, false
	}
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	events, through, err := c.watch.Take(limit)
	if n := len(events); n > limit {
		require.Equal(t, events[0].Revision, events[n-1].Revision, "only a revision may be longer")
	}
	c.ended = err
	require.Equal(t, through, c.watch.Revision())
	return events, len(events) == 0 && err == nil
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
	want := watcher.ConvertBatch(schema, w.stream.Filter(), w.log[len(w.upTo(c.after)):])
	got := c.changes(t)
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
	c.judgeLoss(t, want, got)
	selected := map[string]*store.Object{}
	for o := range tree.Select(w.tree.View(), w.stream.Filter(), "") {
		selected[o.Key] = o
	}
	require.Equal(t, selected, c.state)
	require.Equal(t, w.written.Revision, c.watch.Revision())
}

// changes returns the events beside the initial ones and bookmarks, and demands
// that they are in order.
func (c *consumed) changes(t *rapid.T) (changes []store.Event) {
	last, keys := c.after, map[string]bool{}
	for _, ev := range c.events {
		switch {
		case ev.Is(store.Initial):
			continue
		case ev.Type == store.Bookmark:
			require.GreaterOrEqual(t, ev.Revision, last, "%v went back", ev)
			last, keys = ev.Revision, map[string]bool{}
			continue
		case ev.Revision > last:
			last, keys = ev.Revision, map[string]bool{}
		}
		require.Equal(t, last, ev.Revision, "%v is out of order", ev)
		require.False(t, keys[ev.Key()] || last == c.after, "%v comes twice", ev)
		keys[ev.Key()] = true
		changes = append(changes, ev)
	}
	return changes
}

// judgeLoss demands that events which are not marked are the history's, and that
// what was left out is told.
func (c *consumed) judgeLoss(t *rapid.T, want, got []store.Event) {
	emitted, due := 0, 0 // due is the index of the next event, -1 after conflated ones
	for _, ev := range c.events {
		told := ev.Is(store.AfterGap)
		switch {
		case ev.Is(store.Initial):
			continue
		case ev.Is(store.Conflated):
			due = -1
			continue
		case ev.Type == store.Bookmark:
			next := len(upTo(want, ev.Revision))
			require.True(t, told || due < 0 || next == due, "%v comes after %d others, and nothing tells of %d of them", ev, next, next-due)
			due = next
			continue
		}
		ev.Marks &^= store.AfterGap
		at := slices.IndexFunc(want, func(w store.Event) bool { return w.String() == ev.String() })
		require.GreaterOrEqual(t, at, 0, "%v is not what the filter shows", ev)
		require.True(t, told || due < 0 || at == due, "%v comes after %d others, and nothing tells of %d of them", ev, at, at-due)
		due = at + 1
		if ev.Type == store.Emitted {
			missed := emittedIn(want[:at]) - emitted
			require.True(t, told || missed == 0, "%v does not tell of %d before it", ev, missed)
			emitted += missed + 1
		}
	}
	lost := emittedIn(want) - emittedIn(got)
	require.GreaterOrEqual(t, c.watch.Lost(), uint64(lost))
	if c.policy == watcher.Park {
		require.Zero(t, c.watch.Lost())
	}
}

// upTo returns the events with revisions of at most rev.
func upTo(events []store.Event, rev store.Revision) []store.Event {
	return events[:sort.Search(len(events), func(i int) bool { return events[i].Revision > rev })]
}

func emittedIn(events []store.Event) (n int) {
	for _, ev := range events {
		if ev.Type == store.Emitted {
			n++
		}
	}
	return n
}
