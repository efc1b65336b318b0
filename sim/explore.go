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
	// ExploreFinding is an invariant that does not hold. Its String tells all of
	// it, and how to play it again.
	ExploreFinding = explore.Finding
	// ExploreScenario is what happens in one world, as data.
	ExploreScenario = explore.Scenario
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

// Play plays one scenario as it is, such as that of a finding: to keep what was
// found, in a test of one's own, also when Explore draws other scenarios one day.
// It returns what is wrong, nil if every invariant holds.
//
// Errors: an engine.ErrConfig for what is wrong with cfg or the scenario, or what
// Attach returned.
func Play[T any](cfg ExploreConfig[T], s ExploreScenario) (*ExploreFinding, error) {
	return explore.Play(cfg, s)
}
