package world_test

import (
	"fmt"

	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/explore/world"
)

// One scenario is played and judged. Here storage goes back by a write in the middle of
// it, which the engine must notice.
func ExamplePlay() {
	cfg, err := world.Things().WithDefaults()
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome := world.Play(&cfg, script.Scenario{Seed: 1, Steps: []script.Step{
		{Do: script.Write, Seed: 1},
		{Do: script.Watch, Turns: script.Unlimited, Start: &script.Start{Consumer: script.Handler}},
		{Do: script.Write, Seed: 2},
		{Do: script.Rewind, N: 1},
		{Do: script.Write, Seed: 3},
	}}, nil)
	fmt.Println("broken:", outcome.Failure)
	fmt.Println("steps:", outcome.Steps)
	// Output:
	// broken: <nil>
	// steps: 5
}
