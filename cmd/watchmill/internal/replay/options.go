package replay

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

const (
	// MaxWatchers is far more than one process can serve with a goroutine and a state
	// for each; the limit prevents a typing error from taking all memory.
	MaxWatchers = 1_000_000
	// MaxReconnects is far more than there are points to disconnect at in a trace; the limit
	// prevents a typing error from taking hours.
	MaxReconnects = 1_000_000
)

// ErrOptions matches every error of wrong options.
var ErrOptions = errors.New("invalid options")

// OptionError names the flag of a wrong option, and how to correct it.
type OptionError struct {
	Option, Problem string
}

func (e *OptionError) Error() string { return e.Option + " " + e.Problem }

// Is makes errors.Is(err, ErrOptions) true.
func (e *OptionError) Is(target error) bool { return target == ErrOptions }

// Options are the options of a replay. File and Watchers are required.
type Options struct {
	// File is the trace, as package trace reads it.
	File string
	// KeepGoing skips and counts bad lines, instead of refusing the trace.
	KeepGoing bool
	// Speed is how many times as fast changes are written as they happened; zero
	// means as fast as possible.
	Speed float64

	// Watchers is the number of watchers, from 1 to [MaxWatchers].
	Watchers int
	// Via is how the watchers see the objects.
	Via load.Via
	// Select is the field selector of all watchers, on dir and ext; empty selects
	// everything.
	Select string
	// Policy is the policy of their watches.
	Policy engine.Policy
	// Slow is how many of them read at most [load.SlowRate] events a second.
	Slow int
	// Reconnect is how often each watcher disconnects and resumes, or releases its
	// references and acquires new ones.
	Reconnect int
	// Seed determines the points at which the watchers disconnect.
	Seed uint64
	// Window is how many events the engine keeps to resume from; zero means the
	// engine's default.
	Window int

	// WritesState: the final state will be written as tab-separated values.
	WritesState bool

	// Backend is what errors call the storage; empty means "the storage".
	Backend string
	// Open opens the storage, which must be empty; nil means memory.
	Open func(store.Schema) (backend.Backend, error)
	// Checkpoints is the file in which to save the position of each watcher; empty for
	// none.
	Checkpoints string
	// Continue continues the replay that saved Checkpoints, over the same storage. If
	// there are neither checkpoints nor objects, the replay begins.
	Continue bool
	// CheckpointEvery is the time between two checkpoints; zero means 200 ms.
	CheckpointEvery time.Duration

	// OnProgress, if not nil, is called with the progress, every ProgressEvery and at the
	// end, never twice at a time.
	OnProgress func(load.ReplayProgress)
	// ProgressEvery is the time between two calls of OnProgress; zero means a second.
	ProgressEvery time.Duration
}

// history returns the history with its watchers that the options describe.
func (o *Options) history() load.History {
	return load.History{
		Speed: o.Speed, Watchers: o.Watchers, Via: o.Via, Slow: o.Slow, Fields: o.Select, Policy: o.Policy,
		Breaks: o.Reconnect, Seed: o.Seed, Window: o.Window, Open: o.Open,
		OnProgress: o.OnProgress, ProgressEvery: o.ProgressEvery,
	}
}

func (o *Options) validate() error {
	invalid := func(option, format string, args ...any) error {
		return &OptionError{Option: option, Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case o.File == "":
		return invalid("FILE", "is empty; give the path of a trace")
	case o.Watchers < 1 || o.Watchers > MaxWatchers:
		return invalid("--watchers", "is %d; give a number from 1 to %d", o.Watchers, MaxWatchers)
	case o.Slow < 0 || o.Slow > o.Watchers:
		return invalid("--slow", "is %d; give a number from 0 to that of the watchers, %d", o.Slow, o.Watchers)
	case o.Reconnect < 0 || o.Reconnect > MaxReconnects:
		return invalid("--reconnect", "is %d; give a number of times up to %d, or 0", o.Reconnect, MaxReconnects)
	case o.Window < 0:
		return invalid("--window", "is %d; give a number of events, or 0 for the engine's default", o.Window)
	case !(o.Speed >= 0) || math.IsInf(o.Speed, 1):
		return invalid("--speed", "is %v; give a factor above 0, such as 1000x, or max", o.Speed)
	case !o.Policy.Valid():
		return invalid("--policy", "is %v; give park, terminate or conflate", o.Policy)
	case int(o.Via) >= len(load.ViaNames):
		return invalid("--via", "is %v; give one of %s", o.Via, strings.Join(load.ViaNames, ", "))
	case !o.Via.Follows() && o.Slow > 0:
		return invalid("--slow", "is %d, but only a watch is read slowly; leave it out, or give --via watch or queue", o.Slow)
	case !o.Via.Follows() && o.Policy != engine.Park:
		return invalid("--policy", "is %v, but only a watch has a policy; leave it out, or give --via watch or queue", o.Policy)
	case o.Continue && o.Checkpoints == "":
		return invalid("--continue", "needs the watchers' resume points; give their file with --checkpoints")
	case o.Checkpoints != "" && o.Open == nil:
		return invalid("--checkpoints", "is %s, but storage in memory ends with the process; give --backend bolt:FILE", o.Checkpoints)
	case o.Checkpoints != "" && !o.Via.Follows():
		return invalid("--checkpoints", "is %s, but watchers by %s have no revision to resume from; give --via watch or queue", o.Checkpoints, o.Via)
	case o.CheckpointEvery < 0:
		return invalid("CheckpointEvery", "is negative; zero means 200 ms")
	case o.ProgressEvery < 0:
		return invalid("ProgressEvery", "is negative; zero means a second")
	}
	return o.validateSelect()
}

// validateSelect refuses a selector that cannot be parsed, or that names a field which files
// do not have.
func (o *Options) validateSelect() error {
	h := o.history()
	err := h.Validate()
	if err == nil {
		return nil
	}
	var wrong *engine.SelectorError
	if errors.As(err, &wrong) {
		err = wrong.Err
	}
	return &OptionError{Option: "--select", Problem: fmt.Sprintf("is %.80q: %v; write it like dir=actor,ext=go", o.Select, err)}
}
