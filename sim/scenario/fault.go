package scenario

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is something that goes wrong, at one moment or for some time.
type Fault struct {
	// Name is the fault's name in reports. Default: its kind.
	Name string    `yaml:"name,omitempty"`
	Kind FaultKind `yaml:"kind"`
	// At is when the fault begins. Every is the interval at which it repeats until
	// the end; zero means once.
	At    time.Duration `yaml:"at,omitempty"`
	Every time.Duration `yaml:"every,omitempty"`
	// For is how long fail, delay and stick last. Default: half of Every, or until
	// the end.
	For time.Duration `yaml:"for,omitempty"`
	// When selects the calls that fail, delay and stick affect. Default: all.
	When *Condition `yaml:"when,omitempty"`
	// Delay is how much longer a call takes. Required for delay.
	Delay time.Duration `yaml:"delay,omitempty"`
	// Jump is by how much the clock jumps: forwards, or backwards if negative.
	// Required for jump.
	Jump time.Duration `yaml:"jump,omitempty"`
	// Group is the group of watchers that panic and reconnect affect. Default: all
	// groups; a panic affects only watchers with handlers. Share is the probability, above 0 and at
	// most 1, with which each of the watchers is affected. Default 1.
	Group string  `yaml:"group,omitempty"`
	Share float64 `yaml:"share,omitempty"`
}

// FaultKind is what goes wrong.
type FaultKind string

// The faults that last, and affect the calls that meet a condition.
const (
	// FaultFail makes storage calls fail. A next that fails ends the engine's watch
	// of the storage.
	FaultFail FaultKind = "fail"
	// FaultDelay makes storage calls take longer, except next, which does not wait.
	FaultDelay FaultKind = "delay"
	// FaultStick makes storage calls hang until the fault is over. A next that
	// hangs is a watch that has gone silent.
	FaultStick FaultKind = "stick"
)

// The faults of one moment.
const (
	// FaultBreak ends the engine's watches of the storage with an error.
	FaultBreak FaultKind = "break"
	// FaultRelist ends them as expired, so that the engine lists again.
	FaultRelist FaultKind = "relist"
	// FaultCompact compacts the storage's history.
	FaultCompact FaultKind = "compact"
	// FaultPanic makes handlers panic at their next event.
	FaultPanic FaultKind = "panic"
	// FaultReconnect makes watchers close their watches and resume, all at once.
	FaultReconnect FaultKind = "reconnect"
	// FaultJump makes the engine's clock jump.
	FaultJump FaultKind = "jump"
)

// Lasts reports whether faults of the kind last, rather than happen at one moment.
func (k FaultKind) Lasts() bool { return k == FaultFail || k == FaultDelay || k == FaultStick }

// faultKinds lists all kinds.
var faultKinds = []FaultKind{
	FaultFail, FaultDelay, FaultStick,
	FaultBreak, FaultRelist, FaultCompact, FaultPanic, FaultReconnect, FaultJump,
}

// Condition selects the storage calls that a fault affects. Exactly one field is
// set, except that Seed goes with Probability; a nil condition holds for all calls.
// Make one as a literal or with [And], [Or], [Not], [During] and [Randomly].
type Condition struct {
	And []*Condition `yaml:"and,omitempty"`
	Or  []*Condition `yaml:"or,omitempty"`
	Not *Condition   `yaml:"not,omitempty"`
	// Operation selects the calls of one operation.
	Operation Operation `yaml:"operation,omitempty"`
	// Probability, above 0 and below 1, selects calls at random. The result
	// depends on Seed, the operation and the call's number alone. Calls are
	// counted by operation, while some fault lasts, so other operations at the same
	// time do not change whether the nth list fails. Seed defaults to one drawn
	// from the scenario's.
	Probability float64 `yaml:"probability,omitempty"`
	Seed        uint64  `yaml:"seed,omitempty"`
}

// Operation is a kind of storage call.
type Operation string

// The operations.
const (
	OnGet    Operation = "get"
	OnList   Operation = "list"
	OnPut    Operation = "put"    // create, update
	OnRemove Operation = "remove" // delete
	OnEmit   Operation = "emit"
	OnWatch  Operation = "watch" // opening a watch
	OnNext   Operation = "next"  // reading from a watch
	// OnRevision asks for the newest revision, as lists of mode latest do.
	OnRevision Operation = "revision"
)

// Operations lists all operations.
var Operations = []Operation{OnGet, OnList, OnPut, OnRemove, OnEmit, OnWatch, OnNext, OnRevision}

// And holds if all conditions hold.
func And(conditions ...*Condition) *Condition { return &Condition{And: conditions} }

// Or holds if at least one condition holds.
func Or(conditions ...*Condition) *Condition { return &Condition{Or: conditions} }

// Not holds if the condition does not hold.
func Not(c *Condition) *Condition { return &Condition{Not: c} }

// During holds for the calls of one operation.
func During(op Operation) *Condition { return &Condition{Operation: op} }

// Randomly holds for calls at random, with a probability above 0 and below 1. A
// seed of zero is replaced by one drawn from the scenario's.
func Randomly(probability float64, seed uint64) *Condition {
	return &Condition{Probability: probability, Seed: seed}
}

// Holds reports whether the condition holds for the call with that number, counted from
// 0 among the calls of its operation. The result depends on nothing else.
func (c *Condition) Holds(op Operation, number uint64) bool {
	switch {
	case c == nil:
		return true
	case c.Not != nil:
		return !c.Not.Holds(op, number)
	case c.Operation != "":
		return c.Operation == op
	case c.Probability != 0:
		return c.draw(op, number) < c.Probability
	case len(c.Or) > 0:
		return slices.ContainsFunc(c.Or, func(part *Condition) bool { return part.Holds(op, number) })
	}
	return !slices.ContainsFunc(c.And, func(part *Condition) bool { return !part.Holds(op, number) })
}

// outcomes reports whether the condition can hold for a call of the operation, and
// whether it can fail to hold.
func (c *Condition) outcomes(op Operation) (may, mayNot bool) {
	switch {
	case c.Not != nil:
		mayNot, may = c.Not.outcomes(op)
		return may, mayNot
	case c.Operation != "":
		return c.Operation == op, c.Operation != op
	case c.Probability != 0:
		return true, true
	}
	all := len(c.And) > 0
	may, mayNot = all, !all
	for _, part := range slices.Concat(c.And, c.Or) {
		yes, no := part.outcomes(op)
		if all {
			may, mayNot = may && yes, mayNot || no
		} else {
			may, mayNot = may || yes, mayNot && no
		}
	}
	return may, mayNot
}

// draw returns the random number from [0, 1) that belongs to the call.
func (c *Condition) draw(op Operation, number uint64) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(op)) // cannot fail
	return float64(mix(mix(c.Seed^h.Sum64())+number)>>11) / (1 << 53)
}

// mix is the finalizer of SplitMix64, whose results for consecutive arguments are not
// correlated.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// seeded returns a copy in which every Probability has a Seed.
func (c *Condition) seeded(from *rand.Rand) *Condition {
	if c == nil {
		return nil
	}
	out := *c
	out.Not = c.Not.seeded(from)
	out.And, out.Or = allSeeded(c.And, from), allSeeded(c.Or, from)
	if out.Probability != 0 && out.Seed == 0 {
		out.Seed = 1 + from.Uint64N(1_000_000)
	}
	return &out
}

func allSeeded(conditions []*Condition, from *rand.Rand) []*Condition {
	var out []*Condition
	for _, c := range conditions {
		out = append(out, c.seeded(from))
	}
	return out
}
