package sim

import (
	"context"

	"github.com/watchmill/watchmill/sim/explore"
)

// What Explore takes and returns; see package explore for all of it.
type (
	// ExploreConfig says what is simulated, and which seeds are explored.
	ExploreConfig[T any] struct {
		explore.Config[T]
		explore.Range
	}
	// ExploreReport is what an exploration found.
	ExploreReport = explore.Report
	// ExploreSelection is something to ask for.
	ExploreSelection[T any] = explore.Selection[T]
	// World is one simulated engine, for ExploreConfig's Attach.
	World[T any] = explore.World[T]
)

// Explore simulates an engine of the user's type on virtual time, once per seed:
// each seed draws a scenario (writes, watches of every kind, reads, faults of
// storage, time that passes) and the order of all that happens, on one
// goroutine. Everything that watches deliver and reads return is judged, and so
// is what Attach says of the user's own handlers. It stops at the first seed
// that breaks an invariant, and says how to see it again: the finding in the
// report has the seed, the shortest scenario that still breaks it, and all that
// happens there.
//
// The same program finds the same for the same seeds, always and everywhere,
// unless handlers use goroutines, real time, map order or unseeded randomness.
//
// Explore blocks until it is through, and uses Workers goroutines meanwhile;
// Attach and what it starts is called by any of them, but that of one world by
// one. Errors: an [engine.ErrConfig] that names the field, or what Attach
// returned. When ctx is done it returns what it has, without an error.
//
// [engine.ErrConfig]: https://pkg.go.dev/github.com/watchmill/watchmill/engine#ErrConfig
func Explore[T any](ctx context.Context, cfg ExploreConfig[T]) (*ExploreReport, error) {
	return explore.Run(ctx, cfg.Config, cfg.Range)
}
