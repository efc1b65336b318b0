package sim

import (
	"context"

	"github.com/watchmill/watchmill/sim/explore"
)

// What [Explore] takes and returns; package explore says all of it.
type (
	// ExploreConfig says what is simulated, and which seeds are explored.
	ExploreConfig[T any] = explore.Config[T]
	// ExploreReport is what an exploration found.
	ExploreReport = explore.Report
	// World is one simulated engine, as ExploreConfig's Attach is given it.
	World[T any] = explore.World[T]
)

// Explore simulates an engine of the user's type on virtual time, once per seed:
// each draws a scenario (writes, watches of every kind, reads, faults of
// storage, time that passes) and the order of all that happens. Everything that
// watches deliver and reads return is judged, and so is what Attach says of the
// user's own handlers. It stops at the first seed that breaks an invariant; the
// finding in the report has the seed, the shortest scenario that still breaks
// it, and all that happens in that.
//
// The same program finds the same for the same seeds, always and everywhere,
// unless handlers use goroutines, real time, map order or unseeded randomness.
//
// Explore blocks until it is through, and uses ExploreConfig.Workers goroutines
// meanwhile, each for one world at a time. Errors: an engine.ErrConfig that names
// the field, or what Attach returned. When ctx is done it returns what it has,
// without an error.
func Explore[T any](ctx context.Context, cfg ExploreConfig[T]) (*ExploreReport, error) {
	return explore.Run(ctx, cfg)
}
