package world

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Contained is the invariant that no panic escapes from a world, and that none of the
// engine's actors fails.
const Contained judge.Invariant = "contained"

// Outcome is the result of playing one scenario.
type Outcome struct {
	Counts
	// Hash is the hash of everything that happened.
	Hash uint64
	// Failure is the invariant that was broken; nil if none was.
	Failure *judge.Failure
	// Stack is the stack of the panic that escaped, if one did.
	Stack string
	// Err is why the scenario could not be played at all.
	Err error
}

// Ends reports whether no more scenarios are to be played after this one.
func (o *Outcome) Ends() bool { return o.Failure != nil || o.Err != nil }

// Counts are the amounts of what happened in a simulation.
type Counts struct {
	// Steps are what the scenario did: writes, reads, faults and so on.
	Steps uint64 `json:"steps"`
	// Turns are those of the actors, and of the ends of contexts. A turn may handle
	// several messages; how many is not visible from outside, so each turn counts as one.
	Turns uint64 `json:"turns"`
	// Deliveries are the events, bookmarks and notifications that consumers received.
	Deliveries uint64 `json:"deliveries"`
	// Requests are the calls to the engine: writes, reads and watches. Calls are the
	// calls of the engine to storage and the expiries in it, and Timers are the timers
	// that fired.
	Requests uint64 `json:"requests"`
	Calls    uint64 `json:"calls"`
	Timers   uint64 `json:"timers"`
}

// Messages returns the number of simulated messages: every turn, delivery, request, call
// to storage and timer counts as one. Steps are not messages. The real number of messages
// is higher, since a turn may handle several.
func (c Counts) Messages() uint64 {
	return c.Turns + c.Deliveries + c.Requests + c.Calls + c.Timers
}

// Add adds other to c.
func (c *Counts) Add(other Counts) {
	c.Steps += other.Steps
	c.Turns += other.Turns
	c.Deliveries += other.Deliveries
	c.Requests += other.Requests
	c.Calls += other.Calls
	c.Timers += other.Timers
}

func countsOf(t *execution.Trace) Counts {
	return Counts{
		Steps: t.Number(execution.Steps), Turns: t.Number(execution.Turns), Deliveries: t.Number(execution.Deliveries),
		Requests: t.Number(execution.Results), Calls: t.Number(execution.Calls), Timers: t.Number(execution.Timers),
	}
}

// hashedErrors are the errors that the hash distinguishes.
var hashedErrors = []error{
	storage.ErrOutage, execution.ErrCanceled, engine.ErrStopped, engine.ErrExpired, engine.ErrSlowConsumer, engine.ErrHandler, engine.ErrHandlerPanic, engine.ErrDeadline,
	engine.ErrEngineClosed, engine.ErrNotFound, engine.ErrExists, engine.ErrConflict, engine.ErrPrecondition,
	engine.ErrFuture, engine.ErrNotReady, engine.ErrWatchNotStarted, engine.ErrIdle, store.ErrClosed, context.Canceled,
	backend.ErrUncertain,
}

// Play plays a scenario of package script in a world of its own, and blocks until it has
// ended. The configuration gets the defaults of [Config.WithDefaults]; the Outcome's Err is
// a [*engine.ConfigError] if it is invalid. Play does not validate the scenario: see
// [script.Scenario.Validate]. The same scenario always has the same outcome, except the
// stack. Record, if not nil, is called with a line for everything that happens.
func Play[T any](cfg *Config[T], s script.Scenario, record func(line string)) Outcome {
	c, err := cfg.WithDefaults()
	if err != nil {
		return Outcome{Err: err}
	}
	return simulate(&c, s, seams[T]{}, record)
}

// simulate is [Play] with faults in the seams. The configuration has its defaults.
func simulate[T any](cfg *Config[T], s script.Scenario, sabotage seams[T], record func(string)) (o Outcome) {
	t := &execution.Trace{Errors: hashedErrors, Record: record}
	defer func() { o.Counts, o.Hash = countsOf(t), t.Hash }()
	var w *World[T]
	defer func() {
		t.Record = nil // the cleanup has no part in the failure
		if w != nil {
			w.abandon()
			w.cleanupAll()
		}
	}()
	stack, err := contained(func() (err error) {
		if w, err = newWorld(cfg, s, sabotage, t); err == nil {
			err = w.startMirrors()
		}
		if err == nil {
			err = w.attach()
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w", s.Seed, err)
		}
		return w.run()
	})
	f, failed := err.(*judge.Failure)
	if failed {
		t.Say("BROKEN: %v", f)
		return Outcome{Failure: f, Stack: stack}
	}
	return Outcome{Err: err}
}

// contained calls play. If that panics, the error is a failure of [Contained], and stack
// is the stack of the panic. The failure does not include it, since stacks have addresses
// that differ from one run to the next.
func contained(play func() error) (stack string, err error) {
	defer func() {
		if r := recover(); r != nil {
			stack, err = string(debug.Stack()), judge.Failed(Contained, "", "%v", r)
		}
	}()
	return "", play()
}
