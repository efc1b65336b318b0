package sim

import (
	"context"

	"github.com/watchmill/watchmill/sim/explore"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/explore/world"
)

// The types of [Explore]; explore and its packages script and world document them.
type (
	// ExploreConfig says which engine is simulated, and which seeds are explored.
	ExploreConfig[T any] = explore.Config[T]
	// ExploreReport is what an exploration found.
	ExploreReport = explore.Report
	// ExploreFinding is an invariant that a scenario breaks. Its String describes it,
	// and how to play it again.
	ExploreFinding = explore.Finding
	// ExploreScenario is what happens in one world, as data.
	ExploreScenario = script.Scenario
	// World is one simulated engine, which ExploreConfig's Attach receives.
	World[T any] = world.World[T]
)

// Explore simulates an engine of the user's type on virtual time, once per seed: each seed draws
// a scenario (writes, watches of every kind, reads, faults of storage, the passing of time) and
// the order of all that happens. The events of watches, the results of reads and writes, and the
// states that an informer and an object cache show are compared with the history of storage;
// package explore says how. The invariants that Attach registers for the user's own handlers are
// checked, too. Explore stops at the first seed that breaks an invariant; the finding in the
// report has the seed, the shortest scenario that still breaks it, and the trace of that
// scenario.
//
// The same program has the same findings for the same seeds on every machine, unless
// handlers use goroutines, real time, map order or unseeded randomness.
//
// Explore blocks until all seeds are explored, and uses ExploreConfig.Workers
// goroutines meanwhile, each for one world at a time. Errors: an engine.ErrConfig that
// names the field, what Attach returned, or a usercode.ErrGoexit if a function of the
// configuration ended its goroutine. When ctx is done it returns the report so
// far, without an error.
func Explore[T any](ctx context.Context, cfg ExploreConfig[T]) (*ExploreReport, error) {
	return explore.Run(ctx, cfg)
}

// Play plays one scenario as it is, such as that of a finding. A test of the user's can
// so keep a finding, even if a later version draws other scenarios from the same seeds.
// It returns the invariant that the scenario breaks, nil if every invariant holds.
//
// Errors: an engine.ErrConfig for an invalid field of cfg or of the scenario, or what
// Attach returned.
func Play[T any](cfg ExploreConfig[T], s ExploreScenario) (*ExploreFinding, error) {
	return explore.Play(cfg, s)
}
