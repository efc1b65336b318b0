package explore

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/store"
)

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

func (c *Counts) add(other Counts) {
	c.Steps += other.Steps
	c.Turns += other.Turns
	c.Deliveries += other.Deliveries
	c.Requests += other.Requests
	c.Calls += other.Calls
	c.Timers += other.Timers
}

// trace hashes what happens in one world, in order: which actors had turns, the calls to
// storage and to the engine with their results, when timers fired, what consumers received,
// and why watches ended. It includes the keys and revisions of objects, but not their
// values, since there is no general way to hash a T; and which error a call returned, but
// not its text, which may have addresses in it. It includes no real time and no map order
// either, so equal executions have equal hashes on every machine.
type trace struct {
	Counts
	hash uint64
	// record, if not nil, is called with a line for each thing that happens.
	record func(line string)
}

// The tags begin the words of each entry of the hash, so that entries of different kinds
// differ.
const (
	tagStep = iota + 1
	tagTurn
	tagCall
	tagTimer
	tagEvent
	tagEnd
	tagResult
	tagError
)

// mix adds words to the hash by xxHash64's round. It is a bijection of each word, so traces
// that differ in a single word have different hashes.
func (t *trace) mix(words ...uint64) {
	for _, w := range words {
		t.hash = bits.RotateLeft64(t.hash^bits.RotateLeft64(w*0xc2b2ae3d27d4eb4f, 31)*0x9e3779b185ebca87, 27)*0x9e3779b185ebca87 + 0x85ebca77c2b2ae63
	}
}

// text adds a string to the hash.
func (t *trace) text(s string) {
	t.mix(uint64(len(s)))
	for len(s) > 0 {
		var w uint64
		n := min(8, len(s))
		for i := range n {
			w |= uint64(s[i]) << (8 * i)
		}
		t.mix(w)
		s = s[n:]
	}
}

func (t *trace) say(format string, args ...any) {
	if t.record != nil {
		t.record(fmt.Sprintf(format, args...))
	}
}

func (t *trace) step(i int, s script.Step) {
	t.Steps++
	t.mix(tagStep, uint64(i), uint64(s.Do))
	if t.record != nil {
		t.say("%v", s)
	}
}

// turn adds the turn of an actor.
func (t *trace) turn(task actors.Task) {
	t.Turns++
	t.mix(tagTurn, uint64(actorOf(task)))
	if t.record != nil {
		t.say("  turn of %v", task)
	}
}

// call adds a call of the engine to storage, with the revision, the number of objects or
// events, and the error that it returned.
func (t *trace) call(what string, rev store.Revision, n int, err error) {
	t.Calls++
	t.mix(tagCall, uint64(rev), uint64(n))
	t.text(what)
	t.err(err)
	if t.record != nil {
		t.say("  storage: %s: revision %d, %d objects or events%s", what, rev, n, because(err))
	}
}

// timer adds a timer that fires, at a time since the world began.
func (t *trace) timer(at time.Duration) {
	t.Timers++
	t.mix(tagTimer, uint64(at))
	if t.record != nil {
		t.say("  a timer fires after %v", at)
	}
}

// result adds the revision and the error that a call to the engine returned.
func (t *trace) result(rev store.Revision, err error) {
	t.Requests++
	t.mix(tagResult, uint64(rev))
	t.err(err)
	if t.record != nil {
		t.say("  it returns revision %d%s", rev, because(err))
	}
}

// listed adds the result of a list with n items.
func (t *trace) listed(rev store.Revision, n int) {
	t.mix(uint64(n))
	t.result(rev, nil)
}

// end adds the end of a watch, with the reason that the watch gave.
func (t *trace) end(watch int, err error) {
	t.mix(tagEnd, uint64(watch))
	t.err(err)
	if t.record != nil {
		t.say("  w%d has ended%s", watch, because(err))
	}
}

// hashedErrors are the errors that the hash distinguishes.
var hashedErrors = []error{
	errOutage, errCanceled, engine.ErrStopped, engine.ErrExpired, engine.ErrSlowConsumer, engine.ErrHandlerPanic, engine.ErrDeadline,
	engine.ErrEngineClosed, engine.ErrNotFound, engine.ErrExists, engine.ErrConflict, engine.ErrPrecondition,
	engine.ErrFuture, engine.ErrNotReady, engine.ErrWatchNotStarted, engine.ErrIdle, store.ErrClosed, context.Canceled,
}

// err adds an error by its index in hashedErrors, and nothing for nil.
func (t *trace) err(err error) {
	if err != nil {
		t.mix(tagError, uint64(slices.IndexFunc(hashedErrors, func(known error) bool { return errors.Is(err, known) })))
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// delivery adds an event that a consumer received. It is a function, since a method of
// trace cannot have a type parameter.
func delivery[T any](t *trace, watch int, ev engine.Event[T]) {
	t.Deliveries++
	t.mix(tagEvent, uint64(watch), uint64(ev.Type)<<8|uint64(ev.Marks), uint64(ev.Revision))
	t.text(ev.Key())
	for _, o := range []*engine.Object[T]{ev.Object, ev.Prev} {
		if o != nil {
			t.mix(uint64(o.Revision), uint64(o.Created))
		}
	}
	if t.record != nil {
		t.say("  w%d gets %v", watch, ev)
	}
}
