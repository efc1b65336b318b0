package enginetest

import (
	"time"

	"github.com/watchmill/watchmill/clock"
)

// VirtualClock is a clock that moves only by calls; see
// [NewVirtualClock].
type VirtualClock = clock.Virtual

// Epoch is the time at which deterministic engines start.
var Epoch = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// NewVirtualClock returns a clock that shows [Epoch], for
// engine.HostConfig.Clock.
func NewVirtualClock() *VirtualClock { return clock.NewVirtual(Epoch) }

// Options configures [NewWith]. The zero value runs as in production, and checks
// everything.
type Options struct {
	// Deterministic runs the engine on the calling goroutine while calls wait
	// for it, in an order that Seed decides, with a virtual clock. It excludes a
	// host in the engine's configuration. Seed needs it.
	Deterministic bool
	Seed          uint64
	// Patience is how long, in real time, Expect and ExpectEnd wait for later writes of
	// other goroutines. Zero means that they see only writes before the call.
	Patience time.Duration
	// CloseTimeout is how long, in real time, the end of the test waits for
	// handlers that are running; zero means engine.DefaultCloseTimeout. It excludes a
	// host in the engine's configuration, which has a CloseTimeout of its own.
	CloseTimeout time.Duration
	// AllowMutations turns the mutation detector off, and AllowGoroutines the
	// search for goroutines.
	AllowMutations, AllowGoroutines bool
}

// problem returns what is wrong with the options, for an engine whose configuration has a host or not;
// empty for nothing.
func (o *Options) problem(hosted bool) string {
	switch {
	case hosted && o.Deterministic:
		return "Deterministic and Config.Host exclude each other: make the host deterministic instead"
	case hosted && o.CloseTimeout != 0:
		return "CloseTimeout and Config.Host exclude each other: give the host the CloseTimeout instead"
	case o.Seed != 0 && !o.Deterministic:
		return "Seed is set without Deterministic: set that, too, as enginetest.Deterministic does"
	}
	return ""
}

// Deterministic returns the options of a deterministic engine: one seed is one
// execution, event for event.
func Deterministic(seed uint64) Options { return Options{Deterministic: true, Seed: seed} }
