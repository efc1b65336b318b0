package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// World is one engine on its own host, clock and storage, with the records that judge
// it. Everything in it happens on one goroutine, on which alone its methods may be
// called. Its exported methods are for [Config].Attach.
type World[T any] struct {
	cfg      *Config[T]
	scenario script.Scenario
	seams    seams[T]

	trace   *execution.Trace
	sched   *execution.Scheduler
	clock   *execution.Clock
	host    *engine.Host
	storage *storage.Storage[T]
	engine  *engine.Engine[T]
	// uncached is an engine without a cache on the same storage; nil if there is none.
	uncached *engine.Engine[T]

	// calling is the caller of the call that is under way; nil if there is none.
	calling *execution.Caller
	mirrors mirrors[T]
	watches map[int]*watch[T]
	started []*watch[T] // in the order in which they started
	// lastList is the last list of a client, and paging a list that has more pages; nil if
	// there is none.
	lastList *lastList[T]
	paging   *paging[T]
	// toldEnds are the reasons with which OnEnd was called, by the names of watches.
	toldEnds map[string][]error
	// skipped is how many events Processors have skipped, and toldSkips of how many of them OnError
	// was told.
	skipped, toldSkips int
	// windowBegan is the first revision that the engine's window had, of this history of storage; zero
	// if the engine has not listed yet.
	windowBegan store.Revision
	// keptFrom is the oldest revision that storage had when the engine was made.
	keptFrom store.Revision
	// discarded is up to where history was to be discarded, if the engine had not done that when its call
	// returned; zero if it has.
	discarded store.Revision
	// windowEnd is the end of the window that watches were shown last, in that many rounds, and overrun the last
	// revision where one has begun beyond the end of the one before.
	windowEnd, overrun store.Revision
	rounds             uint64
	// closing: the engine is being closed, so it may refuse a handler's calls.
	// rewinding: storage has gone back, and the engine may not have learned of it yet.
	// resting: no call may be refused.
	// restarted: another engine has started on empty storage.
	closing, rewinding, resting, restarted bool
	// failedCalls and failedLists are how many calls and lists storage had failed when the step began.
	failedCalls, failedLists uint64
	// former are the histories of storage before each time that it went back, the oldest
	// first.
	former []*judge.History[T]
	// restored are the newest revisions of storage right after it went back each time, with the
	// writes of a Rewrite.
	restored []store.Revision
	// oldest is the index, in former, of the oldest history that the engine may still show while
	// rewinding.
	oldest int
	// identities are the histories by the identity of their storage.
	identities map[string]*judge.History[T]

	always   []check
	finally  []check
	cleanups []func()
	// failed is the first failure; nil if there is none.
	failed error
}

// check is an invariant that Attach has registered.
type check struct {
	name  judge.Invariant
	holds func() error
}

// Engine returns the engine that is explored. The world closes it at its end.
//
// A call of the engine that waits, such as a Watch or a List that must be fresh, runs the
// simulation meanwhile, also within a handler. It returns [engine.ErrIdle] if it cannot
// complete before time passes or the scenario continues.
func (w *World[T]) Engine() *engine.Engine[T] { return w.engine }

// Always calls holds after every step of the scenario: an error breaks the invariant
// called name.
func (w *World[T]) Always(name string, holds func() error) {
	w.always = append(w.always, check{judge.Invariant(name), holds})
}

// Finally calls holds once storage has no faults, the engine has caught up and every
// handler has received everything: an error breaks the invariant called name. Two in five
// scenarios never call it: they close or drain the engine in the middle of its work.
//
// What Attach has started by itself, such as an informer or a controller, may still be behind. To wait
// for it, call controller.Settle, or WaitForRevision of the informer, with the engine's Revision. If that fails
// with [engine.ErrIdle], it waits for time to pass, as after an error of its source, and holds has
// nothing to check.
func (w *World[T]) Finally(name string, holds func() error) {
	w.finally = append(w.finally, check{judge.Invariant(name), holds})
}

// Cleanup calls end when the world ends, whatever the outcome, to close what Attach
// started: an informer or an object cache on the engine's host would otherwise be found
// as left behind. The last given is called first, and all are called before the engine
// is closed. A call that waits, such as one of [World.Engine], runs the simulation.
func (w *World[T]) Cleanup(end func()) { w.cleanups = append(w.cleanups, end) }

// cleanup calls each function that Cleanup was given, once, even if an earlier call of
// cleanup has panicked in the middle.
func (w *World[T]) cleanup() {
	w.sched.Waiting = execution.Patient
	w.sched.BeginStep()
	for len(w.cleanups) > 0 {
		last := len(w.cleanups) - 1
		end := w.cleanups[last]
		w.cleanups = w.cleanups[:last]
		end()
	}
}

// cleanupAll calls the functions that are left, in a world that ended before its cleanup, or
// by a cleanup that panicked or ended its goroutine, as others may do.
func (w *World[T]) cleanupAll() {
	defer func() {
		if len(w.cleanups) > 0 {
			w.cleanupAll()
		}
	}()
	for len(w.cleanups) > 0 {
		_, _ = contained(func() error { w.cleanup(); return nil })
	}
}

// HandlerPanics is the invariant that no handler given to [World.Handle] panics.
const HandlerPanics judge.Invariant = "handler-panics"

// Handle starts a watch with a handler, as [engine.Engine.Handle] does, except that a
// panic of the handler breaks the invariant [HandlerPanics].
func (w *World[T]) Handle(opts engine.WatchOptions, handle func(engine.Event[T])) (*engine.Watch[T], error) {
	return w.engine.Handle(context.Background(), opts, func(ev engine.Event[T]) {
		defer func() {
			if r := recover(); r != nil {
				w.fail(judge.Failed(HandlerPanics, "", "%v: %v", ev, r))
				panic(r)
			}
		}()
		handle(ev)
	})
}

// newWorld starts an engine as the scenario says.
func newWorld[T any](cfg *Config[T], s script.Scenario, sabotage seams[T], t *execution.Trace) (*World[T], error) {
	w := &World[T]{
		cfg: cfg, scenario: s, seams: sabotage, trace: t,
		sched: execution.NewScheduler(s.Seed, t), clock: execution.NewClock(t),
		watches: map[int]*watch[T]{}, toldEnds: map[string][]error{}, identities: map[string]*judge.History[T]{},
	}
	var err error
	w.host, err = engine.NewHost(engine.HostConfig{
		Clock: w.clock, Executor: w.sched, Seed: s.Seed | 1, OnFailure: w.actorFailed,
		// A world that breaks an invariant ends without closing its engines, each of which
		// the default logger would report.
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	if w.storage, err = storage.New(&cfg.Engine, w.host.Clock(), s.Setup, t); err != nil {
		return nil, err
	}
	w.storage.Fail, w.sched.Ran = w.fail, w.noteWindow
	w.identify()
	if sabotage.turn != nil {
		w.sched.Lost = func(t actors.Task) bool { return sabotage.turn(w, t) }
	}
	w.storage.Slow = func() {
		w.sched.RunTurns(5)
		w.clock.Advance(storage.SlowCall)
		w.sched.RunTurns(5)
	}
	w.storage.SparesUncached = sabotage.sparesUncached
	if err := w.storage.Begin(s.Setup.Before, rand.New(rand.NewPCG(s.Seed, 11)), cfg.Draw); err != nil {
		return nil, err
	}
	w.keptFrom = w.storage.Floor()
	if w.engine, err = engine.New(w.engineConfig()); err != nil {
		return nil, err
	}
	if s.Setup.Uncached {
		err = w.startUncached()
	}
	return w, err
}

// attach calls the user's Attach.
func (w *World[T]) attach() error {
	if w.cfg.Attach == nil {
		return nil
	}
	if err := w.cfg.Attach(w); err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	return nil
}

func (w *World[T]) engineConfig() engine.Config[T] {
	c, setup := w.cfg.Engine, w.scenario.Setup
	var b backend.Backend = w.storage
	if w.seams.storage != nil {
		b = w.seams.storage(w)
	}
	c.Host, c.Backend, c.Name = w.host, b, "engine"
	c.Window, c.BookmarkPeriod, c.ListWhenBehind = setup.Window, setup.BookmarkPeriod, setup.ListWhenBehind
	c.Backoff = reflector.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}
	onError := c.OnError
	c.OnError = func(err error) {
		if errors.Is(err, engine.ErrHandler) {
			w.toldSkips++
		}
		if onError != nil {
			onError(err)
		}
	}
	onEnd := c.OnEnd
	c.OnEnd = func(end engine.WatchEnd) {
		w.toldEnds[end.Name] = append(w.toldEnds[end.Name], end.Err)
		if onEnd != nil {
			onEnd(end)
		}
	}
	if setup.VerifyEvery > 0 {
		c.VerifyEvery = setup.VerifyEvery
	}
	if !setup.Indexed {
		c.Index, c.IndexLabels = nil, nil
	}
	if w.seams.config != nil {
		w.seams.config(&c)
	}
	return c
}

// run plays the scenario and judges what the world shows, after every step and at the
// end. It returns the first failure.
func (w *World[T]) run() error {
	for i, s := range w.scenario.Steps {
		w.trace.Step(i, s)
		w.sched.BeginStep()
		w.do(s)
		w.check(w.always)
		w.noteLags()
		w.judgeInformer()
		w.judgeWindow()
		w.checkRests()
		if w.failed != nil {
			return w.failed
		}
	}
	w.sched.BeginStep()
	w.failedCalls, w.failedLists = w.storage.FailedCalls, w.storage.FailedLists
	if !w.scenario.Abrupt {
		w.endRewind()
	}
	switch {
	case w.failed != nil:
	case w.scenario.Drain:
		w.drainAll()
		w.checkRests()
	case !w.scenario.Abrupt:
		w.finish()
		w.checkRests()
		w.checkConsistent()
	}
	if w.failed == nil {
		w.cleanup()
		w.close()
	}
	if w.failed == nil && w.scenario.Restart {
		w.judgeRestart()
	}
	return w.failed
}

// checkRests checks [judge.Rests]: the engine's work ends while no time passes.
func (w *World[T]) checkRests() {
	if w.sched.Stuck() {
		w.fail(judge.Failed(judge.Rests, "", "the engine is still busy after %d turns", execution.MaxTurnsInStep))
	}
}

// Consistent is the invariant that the engine compares its cache with storage as often as it is to, and
// finds no difference, unless storage has gone back in time; and none in any case at rest.
const Consistent judge.Invariant = "consistent"

// checkConsistent checks [Consistent] after two pauses, in which at least one comparison is due.
func (w *World[T]) checkConsistent() {
	every := cmp.Or(w.scenario.Setup.VerifyEvery, w.cfg.Engine.VerifyEvery)
	switch s := w.engine.Stats(); {
	case s.Mismatches > 0 && len(w.former) == 0:
		w.fail(judge.Failed(Consistent, "", "the engine found %d differences in %d comparisons", s.Mismatches, s.Verified))
	case s.Verified == 0 && every > 0 && every <= pauseTime/2:
		w.fail(judge.Failed(Consistent, "", "the engine has made no comparison, and one is due every %v", every))
	}
	if err := w.engine.Verify(context.Background()); err != nil {
		w.fail(judge.Failed(Consistent, "", "%v", err))
	}
}

// fail records err as the world's failure, unless it is nil or there was a failure before.
func (w *World[T]) fail(err error) {
	if w.failed == nil {
		w.failed = err
	}
}

// actorFailed fails the world for the failure of one of the engine's actors, even if that
// actor was restarted. The panic of a handler is no such failure: it only ends its watch.
func (w *World[T]) actorFailed(f actors.Failure) {
	if _, handlers := errors.AsType[*engine.PanicError](&f); !handlers {
		w.fail(judge.Failed(Contained, f.Actor, "%v", f.Reason))
	}
}

// check fails the world if one of the invariants that Attach registered does not hold.
func (w *World[T]) check(checks []check) {
	for _, c := range checks {
		if err := c.holds(); err != nil {
			w.fail(judge.Failed(c.name, "", "%v", err))
		}
	}
}

// history returns the current history of storage.
func (w *World[T]) history() *judge.History[T] { return w.storage.History }

func (w *World[T]) newest() store.Revision { return w.storage.History.Newest() }

// wait makes the call of step s with a new context.
func (w *World[T]) wait(s script.Step, limit time.Duration, call func(context.Context)) {
	c := execution.NewCaller(w.sched)
	w.waitAs(c, s, limit, func() { call(c) })
}

// waitAs makes the call of step s with the context c. The call may wait for s.Turns turns
// and for limit of virtual time. s.Meanwhile happens while it waits, or at the latest
// after it has returned.
func (w *World[T]) waitAs(c *execution.Caller, s script.Step, limit time.Duration, call func()) {
	how := execution.Waiting{Patience: s.Turns, After: s.After, Idle: func() bool { return w.passToNext(&limit) }}
	if s.Meanwhile != nil {
		how.Meanwhile = func() { w.meanwhile(*s.Meanwhile) }
	}
	w.sched.Wait(how, func() {
		other := w.calling
		w.calling = c
		call()
		w.calling = other
	})
}

// passToNext lets time pass to the next timer, which it takes off limit, and reports whether there is one
// within that.
func (w *World[T]) passToNext(limit *time.Duration) bool {
	passed, ok := w.clock.AdvanceToNext(*limit)
	*limit -= passed
	return ok && !w.sched.Stuck()
}

func (w *World[T]) meanwhile(s script.Step) {
	w.trace.Say("  meanwhile: %v", s)
	w.do(s)
}
