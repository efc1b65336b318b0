package watcher_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// counterLog is a cache of one key that is written again and again, as the
// watchCache would publish it.
type counterLog struct {
	tree   *tree.Tree
	window *window.Window
	rev    store.Revision
}

func newCounterLog(events int) *counterLog {
	h := &counterLog{
		tree:   tree.New(),
		window: window.New(window.Limits{MaxEvents: events, ChunkSize: 1}, nil),
		rev:    1,
	}
	h.window.Reset(h.rev)
	return h
}

// write writes n times and returns the snapshot after that.
func (h *counterLog) write(n int) *window.Snapshot {
	at := time.Unix(0, 0)
	for range n {
		h.rev++
		o := state("x", h.rev)
		o.Created = 2
		ev := store.Event{Type: store.Modified, Revision: h.rev, Object: o, Prev: h.tree.Get("a")}
		if ev.Prev == nil {
			ev.Type = store.Added
		}
		h.window.Append(ev, at)
		h.tree.Put(o)
	}
	h.window.Trim(at)
	return &window.Snapshot{Revision: h.rev, Generation: 1, Base: h.tree.View(), Window: h.window.View(), At: at}
}

// follow returns a watch of everything that begins at the end of snap.
func follow(feed *watcher.Feed, snap *window.Snapshot, policy watcher.Policy) *watcher.Watch {
	w := watcher.New(feed, watcher.Options{Policy: policy, Buffer: 1})
	w.Member().Begin(watcher.NewStream(schema, nil, 0), watcher.Start{Next: snap.Window.Next(), After: snap.Revision})
	return w
}

// followStream returns a watch of one key that follows its stream from the end of snap on.
func followStream(t *testing.T, feed *watcher.Feed, snap *window.Snapshot, opts watcher.Options) (*watcher.Stream, *watcher.Watch) {
	t.Helper()
	filter, err := store.NewFilter(columns, store.FilterOptions{Key: "a"})
	require.NoError(t, err)
	stream := watcher.NewStream(schema, filter, snap.Window.Next())
	w := watcher.New(feed, opts)
	w.Member().Begin(stream, watcher.Start{Next: snap.Window.Next(), After: snap.Revision})
	idle, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.Next(idle)
	require.ErrorIs(t, err, context.Canceled, "it has caught up")
	return stream, w
}

// round writes n times and appends that to the stream, as a round of the dispatcher does.
func (h *counterLog) round(t *testing.T, stream *watcher.Stream, from *window.Snapshot, n int) *window.Snapshot {
	t.Helper()
	to := h.write(n)
	var all []store.Event
	for len(all) < n {
		events, ok := to.Window.Read(to.Window.Since(n - len(all)))
		require.True(t, ok)
		all = append(all, events...)
	}
	stream.Append(from.Window.Next(), to.Window.Next(), all)
	return to
}

func next(t *testing.T, w *watcher.Watch) []string {
	t.Helper()
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	var seen []string
	for _, ev := range events {
		seen = append(seen, ev.String())
	}
	return seen
}

// Between the moment in which the dispatcher tells a watch that the window is
// about to leave it behind and that in which the new window is published, the
// consumer goes on reading the old one.
func TestWindowMoved_WhileTheConsumerReads(t *testing.T) {
	h, feed := newCounterLog(4), &watcher.Feed{Registry: new(watcher.Registry)}
	start := h.write(1)
	feed.Publish(start)
	w := follow(feed, start, watcher.Conflate)

	old := h.write(3)
	feed.Publish(old)
	overrun := h.write(20)
	require.Equal(t, watcher.Reading, w.Member().WindowMoved(old, overrun))
	require.Equal(t, []string{"MODIFIED a@3"}, next(t, w), "what the buffer holds")
	require.Equal(t, []string{"MODIFIED a@5 conflated"}, next(t, w), "the old window's end")
	idle, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Next(idle)
	require.ErrorIs(t, err, context.Canceled, "there is nothing more yet")

	feed.Publish(overrun)
	require.Equal(t, []string{"MODIFIED a@25 conflated"}, next(t, w))
	feed.Publish(h.write(1))
	require.Equal(t, []string{"MODIFIED a@26"}, next(t, w), "from here on as always")
}

// The consumer works on the last of its initial state: what leaves the window meanwhile is kept.
func TestWindowMoved_BehindTheInitialState(t *testing.T) {
	for _, policy := range []watcher.Policy{watcher.Park, watcher.Conflate} {
		h, feed := newCounterLog(4), &watcher.Feed{Registry: new(watcher.Registry)}
		prev := h.write(1)
		feed.Publish(prev)
		w := watcher.New(feed, watcher.Options{Policy: policy})
		w.Member().Begin(watcher.NewStream(schema, nil, 0), watcher.Start{Next: prev.Window.Next(), After: 2, State: prev.State()})
		require.Len(t, next(t, w), 1)
		for range 6 {
			overrun := h.write(1)
			if overrun.Window.First() > prev.Window.First() {
				require.Equal(t, watcher.Reading, w.Member().WindowMoved(prev, overrun))
			}
			feed.Publish(overrun)
			prev = overrun
		}
		var seen []string
		for len(seen) < 6 {
			seen = append(seen, next(t, w)...)
		}
		require.Equal(t, []string{"MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5", "MODIFIED a@6", "MODIFIED a@7", "MODIFIED a@8"}, seen, policy)
	}
}

// inInitialState returns a watch whose consumer has all of its initial state but one object, and
// the snapshot after which it began. Its buffer has three events.
func inInitialState(t *testing.T, h *counterLog, feed *watcher.Feed, policy watcher.Policy) (*watcher.Watch, *window.Snapshot) {
	t.Helper()
	for i := range 256 {
		o := state("x", 1)
		o.Key = fmt.Sprintf("b%03d", i)
		h.tree.Put(o)
	}
	start := h.write(1)
	feed.Publish(start)
	w := watcher.New(feed, watcher.Options{Policy: policy, Buffer: 3})
	w.Member().Begin(watcher.NewStream(schema, nil, 0), watcher.Start{Next: start.Window.Next(), After: start.Revision, State: start.State()})
	require.Len(t, next(t, w), 256)
	return w, start
}

// The consumer works on the first part of its initial state. What leaves the window meanwhile is kept
// if the buffer has room for it, and comes after the rest of the state.
func TestWindowMoved_InTheMiddleOfTheInitialState(t *testing.T) {
	for policy, seen := range map[watcher.Policy][]string{
		watcher.Park:      {"MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5", "MODIFIED a@6"},
		watcher.Terminate: {"MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5", "MODIFIED a@6"},
		watcher.Conflate:  {"MODIFIED a@6 conflated"},
	} {
		h, feed := newCounterLog(1), &watcher.Feed{Registry: new(watcher.Registry)}
		w, prev := inInitialState(t, h, feed, policy)
		for range 4 {
			now := h.write(1)
			require.Equal(t, watcher.Reading, w.Member().WindowMoved(prev, now), policy)
			feed.Publish(now)
			prev = now
		}
		require.Equal(t, []string{"ADDED b255@1 initial"}, next(t, w), policy)
		require.Zero(t, w.Revision(), "the consumer may have the state in hand")
		var got []string
		for len(got) < len(seen) {
			got = append(got, next(t, w)...)
		}
		require.Equal(t, seen, got, policy)
		require.Zero(t, w.Lag(), policy)
	}
}

// More than the buffer has room for: the rest of the state is useless.
func TestWindowMoved_TooFarInTheMiddleOfTheInitialState(t *testing.T) {
	h, feed := newCounterLog(1), &watcher.Feed{Registry: new(watcher.Registry)}
	w, prev := inInitialState(t, h, feed, watcher.Park)
	for left := 4; left >= 0; left-- {
		now, want := h.write(1), watcher.Reading
		if left == 0 {
			want = watcher.Expired
		}
		require.Equal(t, want, w.Member().WindowMoved(prev, now))
		feed.Publish(now)
		prev = now
	}
	_, err := w.Next(t.Context())
	var expired *store.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, store.Revision(2), expired.Requested, "that of the state")
	require.Zero(t, w.Revision())
}

// What came and went between two windows no watch could ever see.
func TestWindowMoved_BurstLargerThanTheWindowIsNotTakenForNothing(t *testing.T) {
	for policy, seen := range map[watcher.Policy]watcher.WindowStatus{
		watcher.Park: watcher.Expired, watcher.Terminate: watcher.Expired, watcher.Conflate: watcher.Reading,
	} {
		h, feed := newCounterLog(4), &watcher.Feed{Registry: new(watcher.Registry)}
		start := h.write(1)
		feed.Publish(start)
		w := follow(feed, start, policy)
		overrun := h.write(20)
		require.Equal(t, seen, w.Member().WindowMoved(start, overrun), policy)
		feed.Publish(overrun)
		if policy == watcher.Conflate {
			require.Equal(t, []string{"MODIFIED a@22 conflated"}, next(t, w))
			continue
		}
		_, err := w.Next(t.Context())
		require.ErrorIs(t, err, watcher.ErrExpired)
	}
}

// The stream already has the events of the round that is under way. They do not
// fit into the backlog of a watch that the round leaves behind, but they are in
// the window that comes with it: they must come once.
func TestWindowMoved_BacklogEndsWhereTheRoundBegins(t *testing.T) {
	h, feed := newCounterLog(4), &watcher.Feed{Registry: new(watcher.Registry)}
	start := h.write(1)
	feed.Publish(start)
	stream, w := followStream(t, feed, start, watcher.Options{Policy: watcher.Conflate, Buffer: 3})

	old := h.round(t, stream, start, 2)
	feed.Publish(old)
	overrun := h.round(t, stream, old, 3)
	require.Equal(t, watcher.Reading, w.Member().WindowMoved(old, overrun))
	feed.Publish(overrun)
	var seen []string
	for len(seen) < 5 {
		seen = append(seen, next(t, w)...)
	}
	require.Equal(t, []string{"MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5", "MODIFIED a@6", "MODIFIED a@7"}, seen)
}

// A watch that has been conflated is left behind once more, by a burst, before
// its consumer has read what it was conflated to, and the consumer reads that
// before the new window is published: it must not take the old one's end for the
// end.
func TestWindowMoved_TwiceWhileTheConsumerReads(t *testing.T) {
	h, feed := newCounterLog(4), &watcher.Feed{Registry: new(watcher.Registry)}
	start := h.write(1)
	feed.Publish(start)
	w := follow(feed, start, watcher.Conflate)

	first := h.write(20)
	require.Equal(t, watcher.Reading, w.Member().WindowMoved(start, first))
	feed.Publish(first)
	second := h.write(20)
	require.Equal(t, watcher.Reading, w.Member().WindowMoved(first, second))
	require.Equal(t, []string{"MODIFIED a@22 conflated"}, next(t, w))

	third := h.write(20)
	require.Equal(t, watcher.Reading, w.Member().WindowMoved(second, third))
	idle, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Next(idle)
	require.ErrorIs(t, err, context.Canceled, "the window that it is conflated to is still to come")
	feed.Publish(third)
	require.Equal(t, []string{"MODIFIED a@62 conflated"}, next(t, w))
}

// A round may have more events than the buffer of a watch, of which only the first have left the window. The
// others are still there.
func TestWindowMoved_WatchGoesOnAfterThePartOfARoundThatHasLeft(t *testing.T) {
	h, feed := newCounterLog(4), &watcher.Feed{Registry: new(watcher.Registry)}
	start := h.write(1)
	feed.Publish(start)
	stream, w := followStream(t, feed, start, watcher.Options{Buffer: 1})

	old := h.round(t, stream, start, 4)
	feed.Publish(old)
	moved := h.round(t, stream, old, 1)
	require.Equal(t, watcher.Reading, w.Member().WindowMoved(old, moved))
	feed.Publish(moved)
	var seen []string
	for len(seen) < 5 {
		seen = append(seen, next(t, w)...)
	}
	require.Equal(t, []string{"MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5", "MODIFIED a@6", "MODIFIED a@7"}, seen)
}
