package watcher_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

var errIdle = errors.New("nothing to read")

// world stands for the watchCache and the dispatcher: one window, one stream,
// and watches that read when they are told to. There are no actors in it.
type world struct {
	t       require.TestingT
	history *history
	tree    *tree.Tree
	window  *window.Window
	stream  *watcher.Stream
	feed    watcher.Feed
	written *window.Snapshot
	log     []store.Event
	pending map[*watcher.Member]store.Revision
	failed  bool
	// lapped: the window went past the dispatcher itself.
	lapped bool
}

func newWorld(t require.TestingT, filter *store.Filter, limits window.Limits) *world {
	w := &world{
		t: t, history: newHistory(t), tree: tree.New(),
		window:  window.New(limits, func(*store.Object) int { return 1 }),
		stream:  watcher.NewStream(schema, filter, 0),
		pending: map[*watcher.Member]store.Revision{},
	}
	w.feed.Registry = new(watcher.Registry)
	w.feed.Await = func(context.Context, <-chan struct{}) error { return errIdle }
	w.window.Reset(0)
	w.written = w.snapshot()
	w.feed.Publish(w.written)
	return w
}

func (w *world) snapshot() *window.Snapshot {
	v := w.window.View()
	return &window.Snapshot{Revision: v.Revision(), Generation: 1, Base: w.tree.View(), Window: v, At: at(v.Revision())}
}

// write appends one change; see [history.write]. Watches see it after a round.
func (w *world) write(line string) store.Event {
	ev := w.history.write(strings.Fields(line))
	w.window.Append(ev, time.Time{})
	switch ev.Type {
	case store.Added, store.Modified:
		w.tree.Put(ev.Object)
	case store.Deleted:
		w.tree.Delete(ev.Object.Key)
	}
	w.log = append(w.log, ev)
	w.written = w.snapshot()
	return ev
}

func (w *world) trim() {
	w.window.Trim(time.Time{})
	w.written = w.snapshot()
}

// round does what the dispatcher's does: evaluate, append, tell of the window,
// forget what it drops, publish.
func (w *world) round() { w.roundDuring(func() {}) }

// roundDuring is round in which something happens before it publishes.
func (w *world) roundDuring(during func()) {
	prev, next := w.feed.Load(), w.written
	w.evaluate(prev, next)
	w.arrive(next)
	for _, m := range w.stream.Members() {
		m.WindowMoved(prev, next)
	}
	w.stream.Forget(next.Window.First())
	during()
	w.feed.Publish(next)
}

// arrive has the pending watches begin whose revision comes with next.
func (w *world) arrive(next *window.Snapshot) {
	for m, from := range w.pending {
		if from > next.Revision {
			continue
		}
		at, err := next.Window.Seek(from)
		require.NoError(w.t, err)
		m.Arrive(at, from)
		delete(w.pending, m)
	}
}

// halfRound fails before it has published, so that the next one has to restart
// the stream.
func (w *world) halfRound() {
	w.evaluate(w.feed.Load(), w.written)
	w.failed = true
}

func (w *world) evaluate(prev, next *window.Snapshot) {
	from, to := prev.Window.Next(), next.Window.Next()
	var events []store.Event
	for at := from; at < to; {
		raw, ok := next.Window.Read(at)
		if !ok {
			w.failed, w.lapped = true, true
			break
		}
		events = append(events, watcher.ConvertBatch(schema, w.stream.Filter(), raw)...)
		at += window.Seq(len(raw))
	}
	switch {
	case w.failed && !w.stream.Everything():
		w.stream.Restart(from, to)
	case len(events) > 0 && !w.stream.Everything():
		w.stream.Append(from, to, events)
	}
	w.failed = false
}

// watch starts a watch at a position of the published window.
func (w *world) watch(options watcher.Options, start watcher.Start) *watcher.Watch {
	watch := watcher.New(&w.feed, options)
	w.join(watch, start)
	return watch
}

// join has a watch begin.
func (w *world) join(watch *watcher.Watch, start watcher.Start) {
	watch.Member().Begin(w.stream, start)
	w.stream.Join(watch.Member())
	if start.Pending > 0 {
		w.pending[watch.Member()] = start.Pending
	}
}

// now is the start of a watch that begins with what is published next.
func (w *world) now() watcher.Start {
	snap := w.feed.Load()
	return watcher.Start{Next: snap.Window.Next(), After: snap.Revision}
}
