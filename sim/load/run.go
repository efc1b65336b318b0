package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/load/internal/storage"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
)

// Options say what to tell while a run goes on. The zero value tells nothing.
type Options struct {
	// OnProgress is called about every ProgressEvery (zero means a second), from
	// one goroutine. It must not block.
	OnProgress    func(Progress)
	ProgressEvery time.Duration
	// OnHost is called with the host that the engine runs on, before anything runs, so
	// that it can be observed until Run returns. Optional.
	OnHost func(*engine.Host)
}

// run is one run of a plan.
type run struct {
	plan    *scenario.Plan
	opts    Options
	traces  map[string][]trace.Change
	history *replay // nil unless one is replayed
	watch   *stopwatch
	clock   *jumpClock
	ledger  judge.Ledger
	storage *storage.Storage
	host    *engine.Host
	engine  *engine.Engine[content.Item]

	policies map[scenario.Policy]engine.Policy
	groups   []*watchers
	callers  []*callers
	keepers  []*keeper
	mirrors  []*mirrors
	stages   *stages
	sampler  *sampler
	faults   *faults

	// reading is done, with errWritten, when everything is written; what it adds
	// up to for each selection is known then.
	reading  context.Context
	written  context.CancelCauseFunc
	expected *judge.Expected
	// created is how many of the objects there are at the start, settling how
	// many of those that mirror or follow have yet to come to the end.
	created, settling atomic.Int64
	failed            failures

	// living is done when the run is closed: it ends the pauses of handlers.
	living context.Context
	perish context.CancelFunc

	goroutines  [2]int // before and after
	started     time.Time
	load, took  time.Duration
	stats       engine.Stats
	interrupted bool
}

// Run puts the plan's load on an engine, for the plan's duration and at most its
// settling time, and returns when nothing of it is left. If ctx is done it stops
// where it is and reports what ran so far, as interrupted, without an error.
//
// Errors: a trace that cannot be read, a configuration that the engine refuses,
// and an engine that does not come to serve or to close.
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
	r := &run{
		plan: plan, opts: opts, watch: newStopwatch(), clock: &jumpClock{}, policies: policies(),
		started: time.Now(), // unless the load begins
	}
	r.goroutines[0] = runtime.NumGoroutine()
	return r
}

// policies are the engine's, by the names of scenarios.
func policies() map[scenario.Policy]engine.Policy {
	return map[scenario.Policy]engine.Policy{
		scenario.Park: engine.Park, scenario.Terminate: engine.Terminate, scenario.Conflate: engine.Conflate,
	}
}

// start makes the engine, its storage and its clients.
func (r *run) start() (err error) {
	open := storage.Memory(r.clock)
	if r.history != nil && r.history.Open != nil {
		open = r.history.Open
	}
	if r.storage, err = storage.New(r.plan, open, r.watch.now, &r.ledger); err != nil {
		return err
	}
	if r.host, err = engine.NewHost(engine.HostConfig{Clock: r.clock, Seed: r.plan.Seed, Workers: r.plan.Engine.Workers}); err != nil {
		return errors.Join(err, r.storage.Close())
	}
	if r.opts.OnHost != nil {
		r.opts.OnHost(r.host)
	}
	r.engine, err = engine.New(r.config())
	if err != nil {
		return errors.Join(err, r.host.Close(), r.storage.Close())
	}
	r.stages = newStages(r)
	r.sampler = newSampler(r)
	r.faults = newFaults(r)
	r.groupCallers()
	r.living, r.perish = context.WithCancel(context.Background())
	if err := errors.Join(r.startKeepers(), r.startMirrors()); err != nil {
		return errors.Join(err, r.close())
	}
	seat := 0
	for i := range r.plan.Watchers {
		g := &watchers{spec: &r.plan.Watchers[i], latency: latency.NewRecorder(), handed: latency.NewRecorder()}
		r.groups = append(r.groups, g)
		for n := range g.spec.Count {
			g.all = append(g.all, newWatcher(r, g, n, seat))
			seat++
		}
	}
	return nil
}

// close ends the engine and everything under it, and waits until the goroutines
// are gone, as far as they go.
func (r *run) close() error {
	r.perish()
	err := errors.Join(r.closeOthers(), r.closeMirrors(), r.closeKeepers(), r.engine.Close(), r.host.Close(), r.storage.Close())
	for range 200 {
		if r.goroutines[1] = runtime.NumGoroutine(); r.goroutines[1] <= r.goroutines[0] {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

// play runs the load: the objects, the watchers, then everything at once, and
// then the watchers until they have read it all.
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
	if err := errors.Join(r.fillKeepers(living), r.syncMirrors(living)); err != nil {
		return err
	}
	helpers, dismiss := context.WithCancel(living)
	var helping sync.WaitGroup
	defer helping.Wait()
	defer dismiss()
	r.begin()
	r.help(helpers, &helping)
	r.callAll(living)
	r.load = r.watch.elapsed()
	r.finish(living, stop, &watching)
	r.interrupted = ctx.Err() != nil
	return nil
}

// begin makes now the moment at which the load begins.
func (r *run) begin() {
	r.started = time.Now()
	r.watch.begin()
}

// openWatchers lets the watchers live, and waits until those are open that are
// there from the start.
func (r *run) openWatchers(ctx context.Context, living *sync.WaitGroup) error {
	if newest, ok := r.ledger.Newest(); ok {
		if err := r.engine.WaitFor(ctx, newest.Revision); err != nil && ctx.Err() == nil {
			return fmt.Errorf("waiting for the engine to have the objects there are at the start: %w", err)
		}
	}
	var opening sync.WaitGroup
	for _, g := range r.groups {
		for _, w := range g.all {
			if w.starts() > 0 {
				living.Go(func() { w.comeLater(ctx) })
				continue
			}
			opening.Add(1)
			living.Go(func() { w.live(ctx, opening.Done) })
		}
	}
	opening.Wait()
	return nil
}

// comeLater lives from when the watcher is to start. The load begins soon.
func (w *watcher) comeLater(ctx context.Context) {
	for w.run.watch.begun.Load() == 0 {
		if pace.Sleep(ctx, time.Millisecond) != nil {
			return
		}
	}
	if w.run.watch.until(ctx, w.run.watch.at(w.starts())) == nil {
		w.live(ctx, func() {})
	}
}

// help starts what measures and disturbs.
func (r *run) help(ctx context.Context, helping *sync.WaitGroup) {
	helping.Go(func() { r.sampler.sample(ctx) })
	helping.Go(func() { r.stages.probe(ctx) })
	helping.Go(func() { r.faults.happen(ctx) })
}

// callAll runs writers and readers, and returns when the load is over.
func (r *run) callAll(ctx context.Context) {
	var calling sync.WaitGroup
	total := 0
	for i := range r.plan.Writers {
		total += r.plan.Writers[i].Count
	}
	number := 0
	for i := range r.plan.Writers {
		spec := &r.plan.Writers[i]
		g := r.callersOf("writers", spec.Name)
		for part := range spec.Count {
			w := newWriter(r, g, spec, part, number, total)
			calling.Go(func() { w.write(ctx) })
			number++
		}
	}
	for i := range r.plan.Readers {
		spec := &r.plan.Readers[i]
		g := r.callersOf("readers", spec.Name)
		for part := range spec.Count {
			rd := newReader(r, g, spec, part, number)
			calling.Go(func() { rd.read(ctx) })
			number++
		}
	}
	for _, k := range r.keepers {
		calling.Go(func() { k.keep(ctx) })
	}
	_ = r.watch.until(ctx, r.watch.at(r.plan.Duration))
	calling.Wait()
}

// finish has the watchers read what is left, for the settling time at most.
func (r *run) finish(ctx context.Context, stop func(), watching *sync.WaitGroup) {
	if ctx.Err() != nil {
		return
	}
	r.expect()
	timer := time.AfterFunc(r.plan.Settle, stop)
	defer timer.Stop()
	r.written(errWritten)
	var settling sync.WaitGroup
	r.settleKeepers(ctx, &settling)
	r.settleMirrors(ctx, &settling)
	watching.Wait()
	settling.Wait()
}

// lastTaken returns how long after the begin the last event was taken, at least
// the time of the load.
func (r *run) lastTaken() time.Duration {
	last := r.watch.at(r.load)
	for w := range r.everyWatcher() {
		last = max(last, w.taken)
	}
	return time.Duration(last - r.watch.at(0))
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
