package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/mutation"
	"github.com/watchmill/watchmill/usercode"
)

// root is the parent of the engine's other actors. It starts them, and decides what
// happens after one has failed.
type root struct {
	engine  *core
	started chan<- error
	// audit is the mutation detector's last comparison, when the actors have ended.
	audit func()
	// failures is how many times the other actors have failed since failing.
	failures int
	failing  time.Time
}

// Receive starts a watch without cache.
func (r *root) Receive(ctx *actors.Context, m startUncached) { m.watch.spawn(ctx) }

// Dropped answers a watch that came too late.
func (r *root) Dropped(m startUncached) { m.watch.refuse() }

// Started starts the engine's other actors, each before the one that sends to it.
func (r *root) Started(ctx *actors.Context) {
	err := errNotStarted
	defer func() { r.started <- err }() // even if it fails: New waits
	err = r.engine.wire(ctx)
}

var errNotStarted = errors.New("the engine's actors could not be started: the clock or another part of the host's configuration panicked, as HostConfig.OnFailure has been told")

// An engine whose parts fail maxFailures times within failurePeriod ends: they would go
// on failing, since each time they were restarted from a consistent state.
const (
	maxFailures   = 20
	failurePeriod = time.Minute
)

// ChildFailed keeps the engine running. The dispatcher is resumed: a restart
// would stop the watchers, its children. The others are restarted, and go on
// from what they had published. If they keep failing, the engine ends.
func (r *root) ChildFailed(ctx *actors.Context, child actors.ID, reason any) actors.Directive {
	e := r.engine
	e.partFailed(reason)
	if e.parts.cache == nil {
		return actors.Stop // a watch without cache
	}
	if r.exhausted(ctx.Clock().Now()) {
		e.report(fmt.Errorf("%w: its parts failed %d times within %v, last because: %v", ErrEngineClosed, maxFailures, failurePeriod, reason))
		ctx.Stop()
		e.noteUndelivered() // the child, if it is the dispatcher, ends all watches
		return actors.Stop
	}
	if child == e.parts.dispatcher.ID() {
		e.parts.dispatcher.Tell(dispatcher.Committed{}) // a round that has failed is made again
		return actors.Resume
	}
	return actors.Restart
}

// partFailed counts a failure of one of the engine's actors.
func (e *core) partFailed(reason any) {
	e.counts.failures.Add(1)
	e.log(slog.LevelError, "a part of the engine failed", "reason", reason)
}

// exhausted counts a failure and reports whether there were too many.
func (r *root) exhausted(now time.Time) bool {
	if since := now.Sub(r.failing); since > failurePeriod || since < 0 { // the clock may have been set back
		r.failing, r.failures = now, 0
	}
	r.failures++
	return r.failures >= maxFailures
}

// Stopping refuses new calls, and ends the contexts of what the actors' ends wait for. It is not Close
// alone that ends an engine, but also its host, and the failures of its parts.
func (r *root) Stopping(*actors.Context) {
	r.engine.liveness.closed.Store(true)
	defer r.engine.stopServing(ErrEngineClosed)
	r.engine.noteUndelivered()
}

// Stopped lets Close return: the other actors have ended. It does so even if OnError, told
// by the audit, ends the goroutine.
func (r *root) Stopped(*actors.Context) {
	defer r.engine.registry.ForgetContexts()
	defer r.engine.lastTurn()
	defer r.engine.host.removeEngine(r.engine)
	r.audit()
}

// detectMutations puts a detector between the engine and its backend if the
// configuration requests it, and returns a function that checks everything again. All
// objects pass through there, so nothing else in the engine is involved.
func (e *core) detectMutations() (audit func()) {
	if !e.cfg.detectMutations {
		return func() {}
	}
	b, audit := mutation.Detect(e.storage.Backend(), e.schema, e.cfg.onError)
	e.storage = backend.NewStorage(b, *e.schema)
	return audit
}

// spawn starts the root and waits until it has wired the engine. The root does not run on the pool:
// New may be called in a handler that holds the only worker.
func (e *core) spawn() error {
	e.supply(&e.feed)
	e.feed.Committed = e.committed
	started, audit := make(chan error, 1), e.detectMutations()
	e.root = actors.Spawn(e.host.system, e.cfg.name, func() actors.Behavior[startUncached] {
		return &root{engine: e, started: started, audit: audit}
	}, actors.Options{Executor: e.host.system.Blocking()})
	if !e.root.Alive() && len(started) == 0 {
		return ErrEngineClosed // the host is closed; otherwise the root has said why it failed
	}
	var err error
	if e.host.run != nil {
		err = e.host.reply(context.Background(), started)
	} else {
		select {
		case err = <-started:
		case <-e.host.system.Stopped(): // the host was closed before the root was there
			return ErrEngineClosed
		}
	}
	if err == nil {
		return nil
	}
	e.root.Stop()
	if actors.InTurn() {
		return err // the actors may wait for this very worker to end
	}
	return errors.Join(err, e.host.await(context.Background(), e.stopped))
}

// supply gives a feed what its watches need of the engine.
func (e *core) supply(feed *watcher.Feed) {
	feed.Await, feed.Go, feed.Report = e.host.await, e.host.spawn, e.report
	if e.host.run != nil {
		feed.Yield = func() { e.host.run() }
	}
	feed.Reason = e.cfg.endReason
	feed.InitialEvents = &e.counts.initialEvents
	feed.Now, feed.Registry, feed.Newest = e.host.system.Clock().Now, &e.registry, e.published.Load
}

// committed returns the newest committed revision as far as the engine has seen it.
func (e *core) committed() Revision {
	return max(Revision(e.acknowledged.revision.Load()), e.published.Load().Revision)
}

func (e *core) wire(ctx *actors.Context) (err error) {
	if !e.cfg.cached() {
		return nil
	}
	e.parts.dispatcher = dispatcher.Spawn(ctx, e.observed(dispatcher.Config{
		Schema: e.schema, Source: &e.published, Feed: &e.feed,
		BookmarkPeriod: e.cfg.bookmarkPeriod, Rand: e.host.newRand(), Stats: &e.counts.dispatcher,
	}))
	e.parts.cache = watchcache.Spawn(ctx, ctx.Clock(), watchcache.Config{
		Schema: e.schema, SizeOf: e.sizeOf, Indexes: e.cfg.indexes, Limits: e.windowLimits(), Emits: e.emits(), Contiguous: e.storage.Backend().Traits().Contiguous,
		Published: &e.published, Dispatcher: e.parts.dispatcher,
		Relist:   func(why reflector.Reason) { e.parts.reflector.Relist(why) },
		OnRoom:   func() { e.parts.reflector.Room() },
		OnBehind: func() { e.parts.reflector.RequestProgress() },
		OnDoubt:  e.acknowledged.doubt,
		Report:   e.report, Stats: &e.counts.cache, OnRelist: e.relisted, OnReady: e.onReady(),
	})
	sink := &reflectorSink{cache: e.parts.cache}
	e.parts.reflector, err = reflector.Spawn(ctx, reflector.Config{
		Source: e.storage.Backend(), Sink: sink, State: true, StateEvery: watchcache.MaxUnapplied, NoPrev: true,
		WarmStart: e.storage.Backend().Traits().KeepsHistory || e.began > 0, WarmFrom: e.began,
		Backoff: e.cfg.backoff, ListWhenBehind: e.cfg.listWhenBehind, Rand: e.host.newRand(), OnError: e.report,
		Waiting: e.parts.cache.Waiting,
	})
	if errors.Is(err, actors.ErrStopping) {
		return ErrEngineClosed
	}
	if err != nil {
		return err
	}
	sink.open.Store(true)
	e.parts.reflector.Room()
	e.spawnVerifier(ctx)
	return nil
}

// reflectorSink passes the Reflector's updates to the cache. It is full until the engine
// is wired, since the cache may answer an update with a request to the Reflector.
type reflectorSink struct {
	cache *watchcache.Cache
	open  atomic.Bool
}

// Offer passes an update on.
func (s *reflectorSink) Offer(u reflector.Update) actors.Verdict {
	if !s.open.Load() {
		return actors.Full
	}
	return s.cache.Offer(u)
}

// sizeOf estimates the bytes of an object. It runs where a panic would cost
// more than a wrong estimate.
func (e *core) sizeOf(o *store.Object) (n int) {
	if err := usercode.Call("Config.Size", o.Key, func() { n = e.schema.Size(o) }); err != nil {
		e.report(err)
		return store.DefaultSize
	}
	return n
}
