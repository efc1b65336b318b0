package scenario

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is something that goes wrong, at a moment or for a while.
type Fault struct {
	// Name is what reports call it. Default: its kind.
	Name string    `yaml:"name,omitempty"`
	Kind FaultKind `yaml:"kind"`
	// At is when it begins. Every repeats it, until the end.
	At    time.Duration `yaml:"at,omitempty"`
	Every time.Duration `yaml:"every,omitempty"`
	// For is how long fail, delay and stick hold. Default: until the end, or
	// half of Every.
	For time.Duration `yaml:"for,omitempty"`
	// When is which calls fail, delay and stick strike. Default: all.
	When *Condition `yaml:"when,omitempty"`
	// Delay is how much longer a call takes, for delay. Required there.
	Delay time.Duration `yaml:"delay,omitempty"`
	// Jump is how far the clock jumps, for jump: forwards, or backwards if
	// negative. Required there.
	Jump time.Duration `yaml:"jump,omitempty"`
	// Group is which watchers panic and reconnect strike. Default: all that can
	// be struck. Share is which part of them, above 0 to 1. Default 1.
	Group string  `yaml:"group,omitempty"`
	Share float64 `yaml:"share,omitempty"`
}

// FaultKind is what goes wrong.
type FaultKind string

// The faults that hold for a while, for the calls that meet a condition.
const (
	// FaultFail makes calls of the storage fail. A failing next breaks the watch
	// that the engine has on the storage.
	FaultFail FaultKind = "fail"
	// FaultDelay makes calls take longer.
	FaultDelay FaultKind = "delay"
	// FaultStick makes calls hang until the fault is over; a next that sticks is
	// a watch that has gone silent.
	FaultStick FaultKind = "stick"
)

// The faults of a moment.
const (
	// FaultBreak breaks the engine's watches on the storage.
	FaultBreak FaultKind = "break"
	// FaultRelist ends them as expired, so that the engine lists again.
	FaultRelist FaultKind = "relist"
	// FaultCompact makes the storage forget its history.
	FaultCompact FaultKind = "compact"
	// FaultPanic makes handlers panic with their next event.
	FaultPanic FaultKind = "panic"
	// FaultReconnect makes watchers break off and resume, all at once.
	FaultReconnect FaultKind = "reconnect"
	// FaultJump makes the engine's clock jump.
	FaultJump FaultKind = "jump"
)

// Lasts reports whether the fault holds for a while, and not for a moment.
func (k FaultKind) Lasts() bool { return k == FaultFail || k == FaultDelay || k == FaultStick }

// faultKinds is all of them.
var faultKinds = []FaultKind{
	FaultFail, FaultDelay, FaultStick,
	FaultBreak, FaultRelist, FaultCompact, FaultPanic, FaultReconnect, FaultJump,
}

// Condition says which calls of the storage a fault strikes. Exactly one of its
// fields is set, but Seed beside Probability; a nil condition holds always. Make
// one as a literal or with [And], [Or], [Not], [During] and [Randomly].
type Condition struct {
	And []*Condition `yaml:"and,omitempty"`
	Or  []*Condition `yaml:"or,omitempty"`
	Not *Condition   `yaml:"not,omitempty"`
	// Operation holds for one kind of call.
	Operation Operation `yaml:"operation,omitempty"`
	// Probability, above 0 and below 1, holds for that part of the calls, drawn
	// by Seed and the call's number among those of its operation that are made
	// while some fault holds: whatever other operations there are at the same
	// time, the nth list fails or does not. Seed defaults to one drawn from the
	// scenario's.
	Probability float64 `yaml:"probability,omitempty"`
	Seed        uint64  `yaml:"seed,omitempty"`
}

// Operation is a call that is made to the storage.
type Operation string

// The operations.
const (
	OnGet    Operation = "get"
	OnList   Operation = "list"
	OnPut    Operation = "put"    // create, update
	OnRemove Operation = "remove" // delete
	OnEmit   Operation = "emit"
	OnWatch  Operation = "watch" // opening a watch
	OnNext   Operation = "next"  // reading from one
)

// Operations is all of them.
var Operations = []Operation{OnGet, OnList, OnPut, OnRemove, OnEmit, OnWatch, OnNext}

// And holds if all of the conditions do.
func And(all ...*Condition) *Condition { return &Condition{And: all} }

// Or holds if one of the conditions does.
func Or(any ...*Condition) *Condition { return &Condition{Or: any} }

// Not holds if the condition does not.
func Not(c *Condition) *Condition { return &Condition{Not: c} }

// During holds for calls of one operation.
func During(op Operation) *Condition { return &Condition{Operation: op} }

// Randomly holds for a part of the calls. Seed zero is drawn from the scenario's.
func Randomly(probability float64, seed uint64) *Condition {
	return &Condition{Probability: probability, Seed: seed}
}

// Holds reports whether the call is struck: the number'th, from 0, of its
// operation, see [Condition]. It depends on nothing else.
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
		return c.anyHolds(op, number)
	}
	for _, part := range c.And {
		if !part.Holds(op, number) {
			return false
		}
	}
	return true
}

func (c *Condition) anyHolds(op Operation, number uint64) bool {
	for _, part := range c.Or {
		if part.Holds(op, number) {
			return true
		}
	}
	return false
}

// outcomes returns whether the condition may hold for calls of an operation, and
// whether it may not.
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

// draw returns the call's number from [0, 1).
func (c *Condition) draw(op Operation, number uint64) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(op)) // cannot fail
	return float64(mix(mix(c.Seed^h.Sum64())+number)>>11) / (1 << 53)
}

// mix is the finalizer of SplitMix64: neighbours in, strangers out.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// seeded returns a copy whose draws all have a seed.
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
