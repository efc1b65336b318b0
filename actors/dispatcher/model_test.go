package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// TestDispatcher_SignalsAndForgetsWatchesAsItMust has watches of all kinds begin, read and end
// at random, while the window moves, storage goes back in time and the clock fails.
func TestDispatcher_SignalsAndForgetsWatchesAsItMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(rapid.StateMachineActions(m))
		m.close(t)
	})
}

// model is a log of events with the watches of it. Its exported methods are what happens at
// random. The revision of an event is one more than its position.
type model struct {
	seeded    *actors.Seeded
	clock     *clock.Virtual
	faults    *clocktest.Failing
	system    *actors.System
	ref       *actors.Ref[dispatcher.Message]
	feed      watcher.Feed
	published window.Published
	window    *window.Window
	stats     dispatcher.Stats
	epoch     uint64
	keys      []string // of the log's events
	watches   []*modelWatch
	// unstopped is how many timers the clock may have failed to stop.
	unstopped int
}

// modelWatch is a watch, with what its consumer knows.
type modelWatch struct {
	*watcher.Watch
	filter *store.Filter
	policy watcher.Policy
	epoch  uint64
	// next is the first event of the log that the consumer has not been given, first where it
	// starts, if that was in the future.
	next, first int
	// handled: a handler gets the events. Else a consumer that is notified takes them: idle
	// means that it waits for that.
	handled, idle bool
	// uncertain: the window has dropped events that the dispatcher has not read.
	uncertain bool
}

func newModel(t *rapid.T) *model {
	m := &model{
		seeded: actors.NewSeeded(rapid.Uint64().Draw(t, "seed")), clock: clock.NewVirtual(time.Unix(0, 0)),
		window: window.New(window.Limits{ChunkSize: 2, MaxEvents: 8, MinEvents: 4}, nil),
	}
	m.faults = &clocktest.Failing{Clock: m.clock}
	m.feed.Registry = new(watcher.Registry)
	system, err := actors.NewSystem(actors.SystemConfig{Executor: m.seeded, Clock: m.faults, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	m.system = system
	m.window.Reset(0)
	actors.Spawn(system, "parent", func() actors.Behavior[struct{}] {
		return resumingAll{func(ctx *actors.Context) {
			m.ref = dispatcher.Spawn(ctx, dispatcher.Config{
				Schema: new(store.Schema), Source: &m.published, Feed: &m.feed,
				Rand: rand.New(rand.NewPCG(1, 1)), Stats: &m.stats,
			})
		}}
	}, actors.Options{})
	m.seeded.Run()
	m.commit()
	m.seeded.Run()
	return m
}

// resumingAll has its children go on after a failure.
type resumingAll struct{ spawn func(*actors.Context) }

func (r resumingAll) Started(ctx *actors.Context)     { r.spawn(ctx) }
func (resumingAll) Receive(*actors.Context, struct{}) {}
func (resumingAll) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Resume
}

func (m *model) commit() {
	view := m.window.View()
	m.published.Store(&window.Snapshot{Revision: view.Revision(), Generation: 1, Epoch: m.epoch, Window: view})
	m.ref.Tell(dispatcher.Committed{})
	for _, w := range m.watches {
		w.uncertain = w.uncertain || view.First() > m.feed.Load().Window.Next()
	}
}

// Write commits events.
func (m *model) Write(t *rapid.T) {
	for range rapid.IntRange(1, 6).Draw(t, "events") {
		key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
		m.keys = append(m.keys, key)
		rev := store.Revision(len(m.keys))
		m.window.Append(store.Event{Type: store.Added, Revision: rev, Object: &store.Object{Key: key, Revision: rev}}, m.clock.Now())
	}
	m.window.Trim(m.clock.Now())
	m.commit()
}

// GoBack begins another epoch, at the same revision, so that the log can go on.
func (m *model) GoBack(*rapid.T) {
	m.window.Reset(m.window.View().Revision())
	m.epoch++
	m.commit()
}

// Turns has the dispatcher and the handlers run for a while.
func (m *model) Turns(t *rapid.T) { m.seeded.RunN(rapid.IntRange(1, 5).Draw(t, "turns")) }

func (m *model) Pass(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.IntRange(1, 2000).Draw(t, "milliseconds")) * time.Millisecond)
}

// Fail has the clock fail soon.
func (m *model) Fail(t *rapid.T) {
	call := rapid.SampledFrom([]clocktest.Call{clocktest.Now, clocktest.AfterFunc, clocktest.Stop}).Draw(t, "call")
	m.faults.Fail(call, rapid.IntRange(0, 2).Draw(t, "after"), 1)
	m.unstopped += count(call == clocktest.Stop)
}

// Watch begins a watch after a revision, which may be in the future.
func (m *model) Watch(t *rapid.T) {
	opts := watcher.Options{
		Policy:    rapid.SampledFrom([]watcher.Policy{watcher.Park, watcher.Terminate}).Draw(t, "policy"),
		Buffer:    rapid.IntRange(1, 4).Draw(t, "buffer"),
		Bookmarks: rapid.Bool().Draw(t, "bookmarks"), OnPool: rapid.Bool().Draw(t, "on the pool"),
	}
	w := &modelWatch{policy: opts.Policy, epoch: m.epoch, handled: rapid.Bool().Draw(t, "handled")}
	if key := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "of key"); key != "" {
		filter, err := store.NewFilter(nil, store.FilterOptions{Key: key})
		require.NoError(t, err)
		w.filter = filter
	}
	if w.handled {
		w.Watch = watcher.NewHandled(&m.feed, opts, func(d *watcher.Delivery) {
			for i, ev := range d.Events() {
				require.True(t, d.Begin(i))
				m.given(t, w, ev)
			}
		})
	} else {
		w.Watch = watcher.NewNotified(&m.feed, opts, func() { w.idle = false })
	}
	snap := m.published.Load()
	floor, newest := snap.Window.Floor(), snap.Revision
	after := floor + store.Revision(rapid.IntRange(0, int(newest-floor)+2).Draw(t, "after"))
	r := dispatcher.Register{Watch: w.Member(), Filter: w.filter, Snapshot: snap}
	if w.next = int(after); after > newest {
		r.Start.Pending, w.first = after, w.next
	} else {
		at, err := snap.Window.Seek(after)
		require.NoError(t, err)
		r.Start = watcher.Start{Next: at, After: after}
	}
	if rapid.IntRange(0, 3).Draw(t, "deadline") == 0 {
		r.Deadline.At = m.clock.Now().Add(5 * time.Second)
	}
	reply := make(chan error, 2)
	r.Reply = reply
	m.ref.Tell(r)
	m.seeded.Run()
	require.Len(t, reply, 1)
	if err := <-reply; err != nil {
		require.Error(t, w.Err())
		require.True(t, errors.Is(err, dispatcher.ErrFailed) || errors.Is(w.Err(), store.ErrExpired), "%v", err)
	}
	m.watches = append(m.watches, w)
}

func (m *model) some(t *rapid.T) *modelWatch {
	if len(m.watches) == 0 {
		t.Skip("there is no watch")
	}
	return rapid.SampledFrom(m.watches).Draw(t, "watch")
}

// Take has the consumer of a watch take events, if it has one.
func (m *model) Take(t *rapid.T) {
	if w := m.some(t); !w.handled {
		m.take(t, w, rapid.IntRange(1, 3).Draw(t, "limit"))
	}
}

// take reports whether the consumer was given events.
func (m *model) take(t *rapid.T, w *modelWatch, limit int) bool {
	w.idle = true
	events, through, err := w.Watch.Take(limit)
	if len(events) > 0 || err != nil {
		w.idle = false
	}
	for _, ev := range events {
		m.given(t, w, ev)
	}
	m.complete(t, w, through)
	return len(events) > 0
}

func (m *model) Stop(t *rapid.T) { m.some(t).Stop() }

// given requires that the consumer is given the next event of the log that is for it.
func (m *model) given(t *rapid.T, w *modelWatch, ev store.Event) {
	m.complete(t, w, ev.Revision-store.Revision(count(ev.Type != store.Bookmark)))
	if ev.Type == store.Bookmark {
		return
	}
	require.GreaterOrEqual(t, int(ev.Revision), w.next+1, "once")
	require.True(t, store.Matches(w.filter, ev.Object))
	w.next = int(ev.Revision)
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// complete requires that the consumer has been given everything up to a revision.
func (m *model) complete(t *rapid.T, w *modelWatch, through store.Revision) {
	for at := w.next; at < int(through); at++ {
		require.False(t, m.isFor(w, at), "the event at %d was left out", at+1)
	}
}

// isFor reports whether the watch selects the event of the log.
func (m *model) isFor(w *modelWatch, at int) bool {
	return store.Matches(w.filter, &store.Object{Key: m.keys[at]})
}

// due returns how many events the consumer has yet to be given.
func (m *model) due(w *modelWatch) (n int) {
	for at := w.next; at < len(m.keys); at++ {
		n += count(m.isFor(w, at))
	}
	return n
}

// Check is called after everything that happens.
func (m *model) Check(t *rapid.T) {
	for _, w := range m.watches {
		if w.Err() == nil {
			m.complete(t, w, min(w.Revision(), store.Revision(len(m.keys))))
		}
	}
	if m.seeded.Pending() == 0 {
		m.checkIdle(t)
	}
}

// checkIdle requires that nothing is left to do when no turn is. A failure may have put that off
// until the next message.
func (m *model) checkIdle(t *rapid.T) {
	m.ref.Tell(dispatcher.Committed{})
	m.seeded.Run()
	if m.faults.Left(clocktest.Now)+m.faults.Left(clocktest.AfterFunc) > 0 {
		return
	}
	running, stalled := 0, 0
	for _, w := range m.watches {
		switch err := w.Err(); {
		case err == nil:
			running++
			stalled += count(w.Stalled())
			require.False(t, (w.handled || w.idle) && m.due(w) > 0, "it was not signalled")
			require.Equal(t, m.epoch, w.epoch)
		case errors.Is(err, store.ErrExpired):
			require.True(t, m.epoch != w.epoch || w.uncertain || m.hasLeft(w), "%v", err)
		case errors.Is(err, watcher.ErrSlowConsumer):
			require.Equal(t, watcher.Terminate, w.policy)
		}
		require.False(t, w.idle && w.Err() != nil, "it was not told of the end")
	}
	require.EqualValues(t, running, m.stats.Watches.Load())
	require.EqualValues(t, stalled, m.stats.Stalled.Load())
	require.Len(t, m.feed.Registry.Watches(), running)
	m.watches = slices.DeleteFunc(m.watches, func(w *modelWatch) bool { return w.Err() != nil })
	require.LessOrEqual(t, m.system.Timers(), 4+m.unstopped)
}

// hasLeft reports whether an event for the watch has left the window or, before it has begun in
// the future, any event.
func (m *model) hasLeft(w *modelWatch) bool {
	for at := w.next; at < int(m.window.View().First()); at++ {
		if m.isFor(w, at) || w.next == w.first {
			return true
		}
	}
	return false
}

// close has all watches read the rest, and end.
func (m *model) close(t *rapid.T) {
	m.faults.Fail(clocktest.Now, 0, 0)
	m.faults.Fail(clocktest.AfterFunc, 0, 0)
	m.seeded.Run()
	m.checkIdle(t)
	for _, w := range m.watches {
		for !w.handled && m.take(t, w, 100) {
		}
		require.True(t, w.Err() != nil || m.due(w) == 0)
	}
	reply := make(chan error, 2)
	done := errors.New("done")
	m.ref.Tell(dispatcher.Drain{Reason: done, Reply: reply})
	m.seeded.Run()
	require.NoError(t, <-reply)
	for _, w := range m.watches {
		if !w.handled && !w.idle { // it was told of the end, or that it must read once more
			m.take(t, w, 100)
			m.seeded.Run()
		}
		require.True(t, errors.Is(w.Err(), done) || errors.Is(w.Err(), store.ErrExpired) || errors.Is(w.Err(), watcher.ErrSlowConsumer), "%v", w.Err())
	}
	require.Zero(t, m.stats.Watches.Load())
	require.Zero(t, m.stats.Streams.Load())
	require.Zero(t, m.stats.Stalled.Load())
	require.NoError(t, m.system.Close(context.Background()))
	require.Zero(t, m.system.Actors())
	require.LessOrEqual(t, m.system.Timers(), m.unstopped)
	m.clock.Advance(time.Hour)
	require.Zero(t, m.system.Timers())
}
