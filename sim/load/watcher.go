package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/breaks"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/load/internal/pipeline"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// Reasons for a watcher to stop reading, other than the end of its watch.
var (
	// errWritten: everything is written, and the watcher reads what is left.
	errWritten = errors.New("everything is written")
	// errReconnect: the watcher disconnects and resumes.
	errReconnect = errors.New("reconnect")
	// errRead: everything has been read.
	errRead = errors.New("everything is read")
)

// watchers is a group of watchers.
type watchers struct {
	spec *scenario.Watcher
	all  []*watcher
	// latency is measured from when a write was due, and handed from just before it was
	// stored, both until the consumer has the event.
	latency, handed *latency.Recorder
}

// policies are those of watches, by their names in scenarios.
var policies = map[scenario.Policy]engine.Policy{
	scenario.Park: engine.Park, scenario.Terminate: engine.Terminate, scenario.Conflate: engine.Conflate,
}

// watcher uses one watch after the other. It has one goroutine; its handler runs on the
// engine's goroutines.
type watcher struct {
	run    *run
	group  *watchers
	number int
	sel    scenario.Selection
	rand   *rand.Rand
	pace   *pace.Consumer

	// mu is held while events are received, so that the watch does not change meanwhile.
	mu         sync.Mutex
	trail      judge.Trail[content.Item]
	current    *engine.Watch[content.Item] // nil while there is none
	connecting int64                       // when it began to connect: later events should have come
	taken      int64                       // when events were received last
	scratch    [2][]int64                  // take's latencies of a batch, kept to be filled again
	// latencySum and latencyMax are the sum and the longest of the latencies, and
	// latencyCount is how many there are.
	latencySum, latencyMax, latencyCount int64

	// need is the last revision that the watcher must see, valid once everything is
	// written.
	need engine.Revision

	// Fields that other goroutines use.
	watch     atomic.Pointer[engine.Watch[content.Item]]
	interrupt atomic.Pointer[context.CancelCauseFunc]
	panicNext atomic.Pointer[atomic.Uint64] // set if the handler is to panic, which it counts there
	delivered atomic.Uint64
	lag       atomic.Uint64 // the highest that was sampled

	// The fields of a watcher that uses engine.Follow.
	at        atomic.Uint64             // the revision that it has reached
	following atomic.Pointer[following] // its session, nil between two
	resumed   bool                      // it has just disconnected
	updated   bool                      // the session has had an update
	breaks    breaks.Points             // where in a history it disconnects
	pipeline  *pipeline.Pipeline        // the queue through which its events pass, nil if none
	ready     func()
	// position is what a replay saves; mu guards it.
	position WatcherPosition
	// lost is why the watcher gave up; nil if it has not.
	lost error

	reconnects, relists int
	// ends counts the watches that ended by themselves, by reason, and lastEnd is why the
	// last one did.
	ends    map[string]int
	lastEnd string
	// read: everything has been read. failed: the last attempt to open a watch failed, or
	// the watcher is lost.
	read, failed bool
}

func (w *watcher) name() string { return fmt.Sprintf("%s-%d", w.group.spec.Name, w.number) }

func newWatcher(r *run, g *watchers, number, index int) *watcher {
	random := rand.New(rand.NewPCG(r.plan.Seed, uint64(index)+10_000_000))
	w := &watcher{
		run: r, group: g, number: number, sel: r.plan.Select(*g.spec, number), rand: random,
		pace: pace.NewConsumer(g.spec.Consume, random.Float64()), ends: map[string]int{},
	}
	w.trail.Name, w.trail.Policy = w.name(), policies[g.spec.Policy]
	if number == 0 || g.spec.Policy == scenario.Conflate || g.spec.Consumer == scenario.Queue || r.history != nil {
		w.trail.KeepObjects() // which shows whether the events of a difference, which trails do not count, have come
	}
	if r.history != nil {
		w.breaks = breaks.New(r.plan.Seed, uint64(index), r.history.Breaks)
		if r.history.Resume != nil {
			w.restoreCounts(r.history.Resume.Watchers[index])
		}
	}
	return w
}

// starts returns when the watcher opens its first watch, after the start.
func (w *watcher) starts() time.Duration {
	part := float64(w.number) / float64(w.group.spec.Count)
	return w.group.spec.Start + time.Duration(part*float64(w.group.spec.Spread))
}

// watchUntilRead opens watches and reads them until everything is read or ctx is done. It
// calls ready when the first watch is open.
func (w *watcher) watchUntilRead(ctx context.Context, ready func()) {
	ready = sync.OnceFunc(ready)
	defer ready()
	w.beginConnecting()
	if follows(w.group.spec) {
		w.follow(ctx, ready)
		return
	}
	for ctx.Err() == nil {
		watch, err := w.open(ctx)
		if err != nil {
			if !w.retry(ctx, err) {
				return
			}
			continue
		}
		w.failed = false
		ready()
		reason := w.consume(ctx, watch)
		w.leave(watch)
		switch {
		case errors.Is(reason, errRead):
			w.read = true
			return
		case errors.Is(reason, errReconnect):
			w.reconnects++
			_ = pace.Sleep(ctx, w.group.spec.Reconnect.Away)
			w.beginConnecting()
		case ctx.Err() == nil:
			w.reconnects++
			w.countEnd(reason)
		}
	}
}

// beginConnecting sets connecting to now. It is called when the watcher begins to connect or
// reconnect by its own decision. It is not called again while a watch is being opened, or when a watch
// ends that the watcher did not stop: events that are stored meanwhile count as late.
func (w *watcher) beginConnecting() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connecting = w.run.stopwatch.Now()
}

// retry records a failed attempt to open a watch, waits before the next one and reports
// whether to make it. An attempt that fails because ctx is done is not a failure.
func (w *watcher) retry(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	w.failed = true
	if errors.Is(err, engine.ErrEngineClosed) {
		return false
	}
	w.run.failure(w.name(), err)
	if errors.Is(err, engine.ErrInvalidSelector) || errors.Is(err, engine.ErrInvalidKey) || errors.Is(err, engine.ErrInvalidWatch) {
		return false // the next attempt would fail as well
	}
	return pace.Sleep(ctx, 10*time.Millisecond) == nil
}

// countEnd counts a watch that ended without being stopped. The reason is kept without the
// name, which the watcher has, too.
func (w *watcher) countEnd(reason error) {
	w.ends[endNames.of(reason)]++
	if end, ok := errors.AsType[*engine.EndError](reason); ok {
		reason = end.Reason
	}
	w.lastEnd = reason.Error()
}

// endNames are the names of the reasons for which watches end.
var endNames = errorNames{
	{engine.ErrExpired, "expired"}, {engine.ErrSlowConsumer, "terminated"}, {engine.ErrHandlerPanic, "panicked"},
	{engine.ErrDeadline, "deadline"}, {engine.ErrEngineClosed, "closed"},
}

// errorNames are errors with their names.
type errorNames []struct {
	err  error
	name string
}

// of returns the name of the error that err wraps, "other" if that has none.
func (names errorNames) of(err error) string {
	for _, e := range names {
		if errors.Is(err, e.err) {
			return e.name
		}
	}
	return "other"
}

// open starts a watch where the previous one stopped. If the window no longer has
// that revision, it lists and watches from the list.
func (w *watcher) open(ctx context.Context) (*engine.Watch[content.Item], error) {
	w.mu.Lock()
	from, begun := w.trail.At()
	w.mu.Unlock()
	if !begun && !w.group.spec.Initial {
		from = w.run.engine.Revision()
	}
	watch, err := w.start(ctx, from, !begun)
	for errors.Is(err, engine.ErrExpired) && from > 0 {
		if from, err = w.relist(ctx, from); err == nil {
			watch, err = w.start(ctx, from, false)
		}
	}
	return watch, err
}

// watchOptions returns the options of a watch after revision from.
func (w *watcher) watchOptions(from engine.Revision) engine.WatchOptions {
	return engine.WatchOptions{
		Labels: w.sel.Labels, Fields: w.sel.Fields, Prefix: w.sel.Prefix, Key: w.sel.Key,
		From: from, Policy: policies[w.group.spec.Policy], Buffer: w.group.spec.Buffer, Name: w.trail.Name,
	}
}

// list lists what the watcher selects.
func (w *watcher) list(ctx context.Context, read engine.Read) (*engine.List[content.Item], error) {
	return w.run.engine.List(ctx, engine.ListOptions{Labels: w.sel.Labels, Fields: w.sel.Fields, Prefix: w.sel.Prefix, Key: w.sel.Key, Read: read})
}

// start opens a watch after revision from. fresh says that it is the first of the trail.
func (w *watcher) start(ctx context.Context, from engine.Revision, fresh bool) (*engine.Watch[content.Item], error) {
	opts := w.watchOptions(from)
	initial := fresh && w.group.spec.Initial
	if initial {
		opts.From, opts.InitialState, opts.Bookmarks = 0, true, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if initial {
		w.trail.ExpectState()
	}
	watch, err := w.connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	if fresh && !initial {
		w.trail.Begin(from)
	}
	w.current = watch
	w.watch.Store(watch)
	return watch, nil
}

// relist lists what the watcher selects. The open stretch of its trail ends, and
// another begins at the list's revision.
func (w *watcher) relist(ctx context.Context, known engine.Revision) (engine.Revision, error) {
	w.relists++
	list, err := w.list(ctx, engine.NotOlderThan(known))
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trail.List(list)
	return list.Revision, nil
}

// leave stops a watch and records where it stopped.
func (w *watcher) leave(watch *engine.Watch[content.Item]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = nil
	w.watch.Store(nil)
	w.interrupt.Store(nil)
	if watch.Err() == nil {
		if watch.Lost() > 0 {
			w.trail.Gap() // what came and went leaves no event
		}
		w.trail.Stop(watch.Revision())
	}
	watch.Stop()
}
