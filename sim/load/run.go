package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/caughtup"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/informers"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/load/internal/storage"
	"github.com/watchmill/watchmill/sim/load/internal/timing"
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
)

// Options are hooks for observing a run. The zero value has none.
type Options struct {
	// OnProgress is called about every ProgressEvery (zero means a second), from
	// one goroutine. It must not block.
	OnProgress    func(Progress)
	ProgressEvery time.Duration
	// Observe is called with the host that the engine runs on, before anything runs. end
	// stops what Observe has started. It is called before the host is closed and
	// goroutines are counted, which would take what it stops for a leak. An error ends
	// the run; end may be nil. Optional.
	Observe func(*engine.Host) (end func(), err error)
}

// run is one run of a plan.
type run struct {
	plan      *scenario.Plan
	opts      Options
	traces    map[string][]trace.Change
	history   *replay // nil unless one is replayed
	stopwatch *timing.Stopwatch
	clock     *timing.Clock
	ledger    judge.Ledger
	storage   *storage.Storage
	host      *engine.Host
	engine    *engine.Engine[content.Item]

	groups         []*watchers
	callers        []*callers
	cacheUsers     []*cacheUser
	informerGroups []*informers.Group
	closers        []io.Closer // the object caches and informers of all these, and of a history
	stages         *stages
	sampler        *sampler
	faults         *faults

	// reading is the context of watchers that read until everything is written: it ends
	// then, with the cause errWritten. expected is valid from then on.
	reading  context.Context
	written  context.CancelCauseFunc
	expected *judge.Expected
	// created is how many of the initial objects exist, and settling how many clients
	// have not read everything yet.
	created, settling atomic.Int64
	failed            failures

	// closing ends when the run is being closed, which ends the pauses of handlers.
	closing   context.Context
	endPauses context.CancelFunc

	// before are the goroutines that ran at the start and have not ended since, and
	// goroutines is how many there are at the end.
	before     goroutines
	goroutines int
	// endObserving ends what [Options].Observe has started; nil if there is nothing.
	endObserving func()
	started      time.Time
	// load is how long the load lasted, and took the time until the last event was
	// received.
	load, took  time.Duration
	stats       engine.Stats
	interrupted bool
}

// Run runs the plan's load on an engine, for the plan's duration and at most its
// settling time, and returns when all its resources are released. Only ctx bounds how long
// an engine takes to be ready, with the objects and the watches, and to return from calls that have
// begun. If ctx is done Run stops and reports what ran so far, as interrupted, without an error.
//
// Errors: a trace that cannot be read, a configuration that the engine refuses, and
// an engine that does not become ready or does not close.
func Run(ctx context.Context, plan *scenario.Plan, opts Options) (*report.Report, error) {
	traces, err := readTraces(plan)
	if err != nil {
		return nil, err
	}
	r := newRun(plan, opts)
	r.traces = traces
	if err := r.start(); err != nil {
		return nil, err
	}
	shown := r.show(ctx)
	err = r.play(ctx)
	shown()
	r.stats = r.engine.Stats()
	r.took = r.lastTaken()
	if err = errors.Join(err, r.close()); err != nil {
		return nil, err
	}
	return r.report(), nil
}

// newRun returns a run in which nothing has started.
func newRun(plan *scenario.Plan, opts Options) *run {
	return &run{
		plan: plan, opts: opts, stopwatch: timing.NewStopwatch(), clock: &timing.Clock{},
		started: time.Now(), // until the load begins
		before:  allGoroutines(),
	}
}

// start makes the engine, its storage and its clients.
func (r *run) start() (err error) {
	open := storage.Memory(r.clock)
	if r.history != nil && r.history.Open != nil {
		open = r.history.Open
	}
	if r.storage, err = storage.New(r.plan, open, r.stopwatch.Now, &r.ledger); err != nil {
		return err
	}
	if r.host, err = engine.NewHost(engine.HostConfig{Clock: r.clock, Seed: r.plan.Seed, Workers: r.plan.Engine.Workers}); err != nil {
		return errors.Join(err, r.storage.Close())
	}
	if err := r.observe(); err != nil {
		return errors.Join(err, r.host.Close(), r.storage.Close())
	}
	r.engine, err = engine.New(r.config())
	if err != nil {
		r.unobserve()
		return errors.Join(err, r.host.Close(), r.storage.Close())
	}
	r.stages = newStages(r)
	r.sampler = newSampler(r)
	r.faults = newFaults(r)
	r.groupCallers()
	r.closing, r.endPauses = context.WithCancel(context.Background())
	if err := errors.Join(r.startCaches(), r.startInformers()); err != nil {
		return errors.Join(err, r.close())
	}
	index := 0
	for i := range r.plan.Watchers {
		g := &watchers{spec: &r.plan.Watchers[i], latency: latency.NewRecorder(), handed: latency.NewRecorder()}
		r.groups = append(r.groups, g)
		for n := range g.spec.Count {
			g.all = append(g.all, newWatcher(r, g, n, index))
			index++
		}
	}
	return nil
}

// observe lets the observer begin, if there is one.
func (r *run) observe() (err error) {
	if r.opts.Observe != nil {
		r.endObserving, err = r.opts.Observe(r.host)
	}
	return err
}

// unobserve ends what observe has begun.
func (r *run) unobserve() {
	if r.endObserving != nil {
		r.endObserving()
	}
}

// close closes the engine and its clients, and waits for at most a second until their
// goroutines have ended.
func (r *run) close() error {
	r.endPauses()
	r.unobserve()
	err := errors.Join(r.closeClients(), r.engine.Close(), r.host.Close(), r.storage.Close())
	for range 200 {
		now := allGoroutines()
		maps.DeleteFunc(r.before, func(ended string, _ bool) bool { return !now[ended] })
		if r.goroutines = len(now); r.goroutines == len(r.before) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

// own has an object cache or an informer closed at the end.
func (r *run) own(c io.Closer) { r.closers = append(r.closers, c) }

// closeClients closes the object caches and the informers.
func (r *run) closeClients() (err error) {
	for _, c := range r.closers {
		err = errors.Join(err, c.Close())
	}
	return err
}

// play runs the load: it creates the objects, opens the watchers, runs everything at
// once, and then waits until the watchers have read everything.
func (r *run) play(ctx context.Context) error {
	if err := r.populate(ctx); err != nil {
		r.interrupted = ctx.Err() != nil
		if r.interrupted {
			return nil
		}
		return err
	}
	living, stop := context.WithCancel(ctx)
	defer stop()
	r.reading, r.written = context.WithCancelCause(living)
	defer r.written(nil)

	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	if err := r.openWatchers(living, &watching); err != nil {
		return err
	}
	if err := errors.Join(r.fillCaches(living), r.syncInformers(living)); err != nil {
		return err
	}
	untilFinish, stopBackground := context.WithCancel(living)
	var background sync.WaitGroup
	defer background.Wait()
	defer stopBackground()
	r.begin()
	r.startBackground(untilFinish, &background)
	r.callAll(living)
	r.load = r.stopwatch.Elapsed()
	r.finish(living, stop, &watching)
	r.interrupted = ctx.Err() != nil
	return nil
}

// begin sets the start of the load to now.
func (r *run) begin() {
	r.started = time.Now()
	r.stopwatch.Begin()
}

// openWatchers starts the watchers and waits until those without a start time have opened
// their watches.
func (r *run) openWatchers(ctx context.Context, living *sync.WaitGroup) error {
	// Without objects, too: before the engine has listed it is at no revision, from which a watcher
	// whose watch ends before its first event could resume.
	newest, err := r.storage.Revision(ctx)
	if err == nil {
		err = caughtup.Wait(ctx, r.engine, newest)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("waiting for the engine to have the initial objects: %w", err)
	}
	var opening sync.WaitGroup
	for w := range r.everyWatcher() {
		if w.starts() > 0 {
			living.Go(func() { w.watchFromStart(ctx) })
			continue
		}
		opening.Add(1)
		living.Go(func() { w.watchUntilRead(ctx, opening.Done) })
	}
	opening.Wait()
	return nil
}

// watchFromStart waits for the watcher's start time and then runs it.
func (w *watcher) watchFromStart(ctx context.Context) {
	select {
	case <-w.run.stopwatch.Started():
	case <-ctx.Done():
		return
	}
	if w.run.stopwatch.Until(ctx, w.run.stopwatch.At(w.starts())) == nil {
		w.watchUntilRead(ctx, func() {})
	}
}

// startBackground starts the measurements and the faults.
func (r *run) startBackground(ctx context.Context, background *sync.WaitGroup) {
	background.Go(func() { r.sampler.sample(ctx) })
	background.Go(func() { r.sampler.timers.Run(ctx) })
	background.Go(func() { r.stages.probe(ctx) })
	background.Go(func() { r.faults.inject(ctx) })
}

// callAll runs the writers, readers and caches until the load is over.
func (r *run) callAll(ctx context.Context) {
	var calling sync.WaitGroup
	writers := r.writers()
	for _, w := range writers {
		calling.Go(func() { w.write(ctx) })
	}
	number := len(writers)
	for i := range r.plan.Readers {
		spec := &r.plan.Readers[i]
		g := r.callersOf("readers", spec.Name)
		for part := range spec.Count {
			rd := newReader(r, g, spec, part, number)
			calling.Go(func() { rd.read(ctx) })
			number++
		}
	}
	for _, u := range r.cacheUsers {
		calling.Go(func() { u.use(ctx) })
	}
	_ = r.stopwatch.Until(ctx, r.stopwatch.At(r.plan.Duration))
	calling.Wait()
}

// finish waits until the watchers have read what is left, for at most the settling time.
func (r *run) finish(ctx context.Context, stop func(), watching *sync.WaitGroup) {
	if ctx.Err() != nil {
		return
	}
	r.expect()
	timer := time.AfterFunc(r.plan.Settle, stop)
	defer timer.Stop()
	r.written(errWritten)
	defer r.endFollowing()()
	var settling sync.WaitGroup
	r.settleCaches(ctx, &settling)
	r.settleInformers(ctx, &settling)
	watching.Wait()
	settling.Wait()
}

// lastTaken returns when the last event was received, since the start, and at least
// the duration of the load.
func (r *run) lastTaken() time.Duration {
	last := r.stopwatch.At(r.load)
	for w := range r.everyWatcher() {
		last = max(last, w.taken)
	}
	return time.Duration(last - r.stopwatch.At(0))
}

// config returns the configuration of the engine under load.
func (r *run) config() engine.Config[content.Item] {
	e := r.plan.Engine
	cfg := content.Config(r.plan)
	cfg.Name, cfg.Index = "load", r.plan.Objects.Index
	cfg.Window = engine.Window{MaxEvents: e.Window, MinAge: e.WindowAge}
	cfg.Host, cfg.Backend, cfg.BookmarkPeriod, cfg.OnError = r.host, r.storage, e.Bookmarks, r.failed.engine
	cfg.Backoff.Initial, cfg.Backoff.Max = e.Backoff, e.BackoffMax
	if e.Backoff > 0 {
		cfg.Backoff.HealthyAfter = time.Second
	}
	return cfg
}
