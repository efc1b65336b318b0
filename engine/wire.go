package engine

import (
	"context"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/actors/watcher"
)

// root is the actor above the engine's others. It starts them, and decides what
// becomes of one that fails.
type root[T any] struct {
	engine  *Engine[T]
	started chan<- error
	// audit looks for changed objects once more when all are gone.
	audit func()
}

// Receive starts what a watch without cache needs.
func (r *root[T]) Receive(ctx *actors.Context, m adopt[T]) {
	ref := actors.Spawn(ctx, "watch", func() actors.Behavior[directMessage] { return m.direct }, actors.Options{})
	m.direct.self.Store(ref)
	if !ref.Alive() {
		r.Dropped(m)
		return
	}
	ref.Tell(pull)
	m.reply <- nil
}

// Dropped answers a watch that came too late.
func (r *root[T]) Dropped(m adopt[T]) {
	m.direct.source.Close()
	m.reply <- ErrEngineClosed
}

// Started wires the way of an event, from its end to its beginning.
func (r *root[T]) Started(ctx *actors.Context) { r.started <- r.engine.wire(ctx) }

// ChildFailed keeps the engine running. The dispatcher is resumed: a restart
// would stop the watchers, its children. The others are restarted, and go on
// from what they had published.
func (r *root[T]) ChildFailed(_ *actors.Context, child actors.ID, reason any) actors.Directive {
	r.engine.counts.failures.Add(1)
	switch parts := &r.engine.parts; {
	case parts.cache == nil:
		return actors.Stop // a watch without cache
	case child == parts.dispatcher.ID():
		return actors.Resume
	}
	return actors.Restart
}

// Stopped tells Close that all are gone.
func (r *root[T]) Stopped(*actors.Context) {
	r.audit()
	close(r.engine.stopped)
}

// start spawns the root and waits until it has wired the engine.
func (e *Engine[T]) start() error {
	e.feed.Await = e.host.await
	e.feed.Go = e.host.spawn
	e.feed.Recovered = func(w *watcher.Watch[T]) { e.parts.dispatcher.Tell(dispatcher.Recovered[T]{Watch: w}) }
	started, audit := make(chan error, 1), e.detectMutations()
	e.top = actors.Spawn(e.host.system, e.cfg.Name, func() actors.Behavior[adopt[T]] {
		return &root[T]{engine: e, started: started, audit: audit}
	}, actors.Options{})
	if !e.top.Alive() {
		return ErrEngineClosed // the host is closed
	}
	return e.host.reply(context.Background(), started)
}

func (e *Engine[T]) wire(ctx *actors.Context) (err error) {
	if !e.cfg.cached() {
		return nil
	}
	e.parts.dispatcher = dispatcher.Spawn(ctx, dispatcher.Config[T]{
		Source: &e.published, Feed: &e.feed,
		BookmarkPeriod: e.cfg.BookmarkPeriod, Rand: e.host.newRand(), Stats: &e.counts.dispatcher,
	})
	e.parts.cache = watchcache.Spawn(ctx, ctx.Clock(), watchcache.Config[T]{
		Schema: &e.schema, Indexes: e.cfg.indexes(), Limits: e.cfg.Window,
		Published: &e.published, Dispatcher: e.parts.dispatcher,
		Relist: func(why reflector.Reason) { e.parts.reflector.Relist(why) },
		OnRoom: func() { e.parts.reflector.Room() },
		Stats:  &e.counts.cache,
	})
	e.parts.reflector, err = reflector.Spawn(ctx, reflector.Config[T]{
		Source: e.storage.Backend(), Sink: e.parts.cache,
		Backoff: e.cfg.Backoff, Rand: e.host.newRand(), OnError: e.cfg.OnError,
	})
	return err
}
