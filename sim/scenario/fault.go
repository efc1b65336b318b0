package scenario

import "time"

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
