package execution

import (
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

// Trace hashes what happens in one world, in order: which actors had turns, the calls to
// storage and to the engine with their results, when timers fired, what consumers received,
// and why watches ended. It includes the keys and revisions of objects, but not their
// values, since there is no general way to hash a T; and which error a call returned, but
// not its text, which may have addresses in it. It includes no real time and no map order
// either, so equal executions have equal hashes on every machine.
type Trace struct {
	// Hash is that of all entries so far.
	Hash uint64
	// counts are how many entries of each kind there are.
	counts [kinds]uint64
	// Errors are the errors that the hash distinguishes.
	Errors []error
	// Record, if not nil, is called with a line for each thing that happens.
	Record func(line string)
}

// Kind is the kind of an entry in a trace.
type Kind uint64

// The kinds of entries. Each is the first word of its entries in the hash, so that entries
// of different kinds differ.
const (
	Steps Kind = iota + 1
	Turns
	Calls
	Timers
	Deliveries
	Ends
	Results
	failures
	kinds
)

// Number returns how many entries of a kind there are.
func (t *Trace) Number(of Kind) uint64 { return t.counts[of] }

// begin begins an entry.
func (t *Trace) begin(k Kind) {
	t.counts[k]++
	t.mix(uint64(k))
}

// mix adds words to the hash by xxHash64's round. It is a bijection of each word, so traces
// that differ in a single word have different hashes.
func (t *Trace) mix(words ...uint64) {
	for _, w := range words {
		t.Hash = bits.RotateLeft64(t.Hash^bits.RotateLeft64(w*0xc2b2ae3d27d4eb4f, 31)*0x9e3779b185ebca87, 27)*0x9e3779b185ebca87 + 0x85ebca77c2b2ae63
	}
}

// text adds a string to the hash.
func (t *Trace) text(s string) {
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

// Say records a line without an entry in the hash.
func (t *Trace) Say(format string, args ...any) {
	if t.Record != nil {
		t.Record(fmt.Sprintf(format, args...))
	}
}

// Step adds the step of a scenario, with its index.
func (t *Trace) Step(i int, s script.Step) {
	t.begin(Steps)
	t.mix(uint64(i), uint64(s.Do))
	if t.Record != nil {
		t.Say("%v", s)
	}
}

// turn adds the turn of an actor.
func (t *Trace) turn(task actors.Task) {
	t.begin(Turns)
	t.mix(uint64(actorOf(task)))
	if t.Record != nil {
		t.Say("  turn of %v", task)
	}
}

// Call adds a call of the engine to storage, with the revision, the number of objects or
// events, and the error that it returned.
func (t *Trace) Call(what string, rev store.Revision, n int, err error) {
	t.begin(Calls)
	t.mix(uint64(rev), uint64(n))
	t.text(what)
	t.err(err)
	if t.Record != nil {
		t.Say("  storage: %s: revision %d, %d objects or events%s", what, rev, n, because(err))
	}
}

// timer adds a timer that fires, at a time since the world began.
func (t *Trace) timer(at time.Duration) {
	t.begin(Timers)
	t.mix(uint64(at))
	if t.Record != nil {
		t.Say("  a timer fires after %v", at)
	}
}

// Result adds the revision and the error that a call to the engine returned.
func (t *Trace) Result(rev store.Revision, err error) {
	t.begin(Results)
	t.mix(uint64(rev))
	t.err(err)
	if t.Record != nil {
		t.Say("  it returns revision %d%s", rev, because(err))
	}
}

// Listed adds the result of a list with n items.
func (t *Trace) Listed(rev store.Revision, n int) {
	t.mix(uint64(n))
	t.Result(rev, nil)
}

// End adds the end of a watch, with the reason that the watch gave.
func (t *Trace) End(watch int, err error) {
	t.begin(Ends)
	t.mix(uint64(watch))
	t.err(err)
	if t.Record != nil {
		t.Say("  w%d has ended%s", watch, because(err))
	}
}

// err adds an error by its index in Errors, and nothing for nil.
func (t *Trace) err(err error) {
	if err != nil {
		t.begin(failures)
		t.mix(uint64(slices.IndexFunc(t.Errors, func(known error) bool { return errors.Is(err, known) })))
	}
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// Delivery adds an event that a consumer received. It is a function, since a method of
// Trace cannot have a type parameter.
func Delivery[T any](t *Trace, watch int, ev engine.Event[T]) {
	t.begin(Deliveries)
	t.mix(uint64(watch), uint64(ev.Type)<<8|uint64(ev.Marks), uint64(ev.Revision))
	t.text(ev.Key())
	for _, o := range []*engine.Object[T]{ev.Object, ev.Prev} {
		if o != nil {
			t.mix(uint64(o.Revision), uint64(o.Created))
		}
	}
	if t.Record != nil {
		t.Say("  w%d gets %v", watch, ev)
	}
}
