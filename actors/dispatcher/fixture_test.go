package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// fixture is a dispatcher on a deterministic system, before a window that the
// test writes in place of a watchCache.
type fixture struct {
	*testing.T
	executor   *actors.Seeded
	clock      *clock.Virtual
	failing    *clocktest.Failing // before clock, for the system
	ref        *actors.Ref[dispatcher.Message]
	feed       watcher.Feed
	schema     store.Schema
	published  window.Published
	window     *window.Window
	epoch      uint64
	generation uint64
	stats      dispatcher.Stats
	// state, if set, is published, for watches that conflate.
	state *tree.Tree
	// onStall, if set, is called for each watch that is called stalled.
	onStall func(*watcher.Member)
}

func newFixture(t *testing.T) *fixture { return newFixtureWith(t, window.Limits{}) }

// newFixtureWith is newFixture with a window of those limits.
func newFixtureWith(t *testing.T, limits window.Limits) *fixture {
	return newFixtureOf(t, limits, 0)
}

// newFixtureOf is newFixtureWith on a clock that fails that many times to say the time.
func newFixtureOf(t *testing.T, limits window.Limits, fails int) *fixture {
	f := &fixture{
		T: t, executor: actors.NewSeeded(1), clock: clock.NewVirtual(time.Unix(0, 0)),
		window: window.New(limits, func(*store.Object) int { return 1 }), generation: 1,
	}
	f.failing = &clocktest.Failing{Clock: f.clock}
	f.failing.Fail(clocktest.Now, 0, fails)
	f.feed.Registry = new(watcher.Registry)
	f.feed.Await = func(context.Context, <-chan struct{}) error { return errIdle }
	system, err := actors.NewSystem(actors.SystemConfig{
		Executor: f.executor, Clock: f.failing, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, system.Close(context.Background()))
		require.Zero(t, system.Actors())
		require.Zero(t, system.Timers())
	})
	f.window.Reset(1)
	f.publish()
	actors.Spawn(system, "parent", func() actors.Behavior[struct{}] { return &resuming{f} }, actors.Options{})
	f.executor.Run()
	f.commit()
	f.executor.Run()
	return f
}

// resuming is the parent of the dispatcher, which goes on after a failure.
type resuming struct{ f *fixture }

func (p *resuming) Started(ctx *actors.Context) {
	p.f.ref = dispatcher.Spawn(ctx, dispatcher.Config{
		Schema: &p.f.schema, Source: &p.f.published, Feed: &p.f.feed, Rand: rand.New(rand.NewPCG(1, 1)), Stats: &p.f.stats,
		OnStall: func(m *watcher.Member) {
			if p.f.onStall != nil {
				p.f.onStall(m)
			}
		},
	})
}

func (p *resuming) Receive(*actors.Context, struct{}) {}

func (p *resuming) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Resume
}

// publish does what the watchCache does before it tells of a commit.
func (f *fixture) publish() *window.Snapshot {
	view := f.window.View()
	snap := &window.Snapshot{Revision: view.Revision(), Generation: f.generation, Epoch: f.epoch, Window: view}
	if f.state != nil {
		snap.Base = f.state.View()
	}
	f.published.Store(snap)
	return snap
}

// commit publishes and tells the dispatcher.
func (f *fixture) commit() *window.Snapshot {
	snap := f.publish()
	f.ref.Tell(dispatcher.Committed{})
	return snap
}

func added(rev store.Revision) store.Event {
	o := &store.Object{Key: "a"}
	o.Revision = rev
	return store.Event{Type: store.Added, Revision: rev, Object: o}
}

// register has the dispatcher take in a watch that was told to start so when snap
// was the newest.
func (f *fixture) register(start watcher.Start, snap *window.Snapshot) (*watcher.Watch, <-chan error) {
	w, reply := watcher.NewNotified(&f.feed, watcher.Options{}, func() {}), make(chan error, 1)
	f.ref.Tell(dispatcher.Register{Watch: w.Member(), Start: start, Snapshot: snap, Reply: reply})
	return w, reply
}

// errIdle is what a read returns that would wait.
var errIdle = errors.New("there is nothing to read")

// watch has the dispatcher take in a watch that starts at the newest snapshot.
func (f *fixture) watch(opts watcher.Options) *watcher.Watch {
	snap := f.published.Load()
	return f.watchFrom(opts, watcher.Start{Next: snap.Window.Next(), After: snap.Revision})
}

func (f *fixture) watchFrom(opts watcher.Options, start watcher.Start) *watcher.Watch {
	return f.admit(opts, dispatcher.Register{Start: start, Snapshot: f.published.Load()})
}

// selecting is watch for one with a filter.
func (f *fixture) selecting(opts store.FilterOptions) *watcher.Watch {
	filter, err := store.NewFilter(nil, opts)
	require.NoError(f, err)
	snap := f.published.Load()
	start := watcher.Start{Next: snap.Window.Next(), After: snap.Revision}
	return f.admit(watcher.Options{}, dispatcher.Register{Filter: filter, Start: start, Snapshot: snap})
}

// admit sends m with a new watch, which must be taken in.
func (f *fixture) admit(opts watcher.Options, m dispatcher.Register) *watcher.Watch {
	w := watcher.New(&f.feed, opts)
	f.admitThis(w, m)
	return w
}

// admitThis sends m with a watch, which must be taken in.
func (f *fixture) admitThis(w *watcher.Watch, m dispatcher.Register) {
	reply := make(chan error, 1)
	m.Watch, m.Reply = w.Member(), reply
	f.ref.Tell(m)
	f.executor.Run()
	require.NoError(f, <-reply)
}

// admitHandler has the dispatcher take in a watch with a handler on the pool, which calls
// handle with the revision of each event from the newest snapshot on.
func (f *fixture) admitHandler(filter *store.Filter, handle func(store.Revision)) *watcher.Watch {
	w := watcher.NewHandled(&f.feed, watcher.Options{OnPool: true}, func(d *watcher.Delivery) {
		for i, ev := range d.Events() {
			require.True(f, d.Begin(i))
			handle(ev.Revision)
		}
	})
	snap := f.published.Load()
	f.admitThis(w, dispatcher.Register{
		Filter: filter, Snapshot: snap, Start: watcher.Start{Next: snap.Window.Next(), After: 1},
	})
	return w
}

// write commits a change at each of the revisions, and moves the window.
func (f *fixture) write(revisions ...store.Revision) {
	for _, rev := range revisions {
		ev := added(rev)
		f.window.Append(ev, f.clock.Now())
		if f.state != nil {
			f.state.Put(ev.Object)
		}
	}
	f.window.Trim(f.clock.Now())
	f.commit()
	f.executor.Run()
}

// pass lets time pass.
func (f *fixture) pass(d time.Duration) {
	f.clock.Advance(d)
	f.executor.Run()
}

// read returns the revisions of what the watch has for its consumer, bookmarks as
// negative ones, and why it ended, nil if it has not.
func (f *fixture) read(w *watcher.Watch) (revisions []int, end error) {
	for {
		events, err := w.Next(f.Context())
		f.executor.Run()
		switch {
		case errors.Is(err, errIdle):
			return revisions, nil
		case err != nil:
			return revisions, err
		}
		for _, ev := range events {
			rev := int(ev.Revision)
			if ev.Type == store.Bookmark {
				rev = -rev
			}
			revisions = append(revisions, rev)
		}
	}
}

// has requires what a watch that goes on has for its consumer.
func (f *fixture) has(w *watcher.Watch, revisions ...int) {
	f.Helper()
	got, end := f.read(w)
	require.NoError(f, end)
	require.Equal(f, revisions, got)
}

// nextObject reads the next events of a watch, keeps none of them, and reports whether the first one's
// object is kept elsewhere.
func (f *fixture) nextObject(w *watcher.Watch) weak.Pointer[store.Object] {
	f.Helper()
	events, err := w.Next(f.Context())
	require.NoError(f, err)
	return weak.Make(events[0].Object)
}

// failingClone gives the schema a Clone, which panics once each time that fails is set.
func (f *fixture) failingClone() (fails *bool) {
	fails = new(bool)
	f.schema.Clone = func(o *store.Object) *store.Object {
		if *fails {
			*fails = false
			panic("the schema's Clone fails")
		}
		clone := *o
		return &clone
	}
	return fails
}

// append commits one event.
func (f *fixture) append(ev store.Event) {
	f.window.Append(ev, f.clock.Now())
	f.commit()
	f.executor.Run()
}
