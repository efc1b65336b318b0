package script_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/watchmill/watchmill/sim/explore/script"
)

// A seed always draws the same scenario, of which the shrinker leaves the steps that a
// failure needs. Here the failure needs the clock to be corrected after a write.
func ExampleShrink() {
	fails := func(s script.Scenario) bool {
		does := func(verb script.Verb) func(script.Step) bool {
			return func(s script.Step) bool { return s.Do == verb }
		}
		write := slices.IndexFunc(s.Steps, does(script.Write))
		return write >= 0 && slices.ContainsFunc(s.Steps[write:], does(script.Jump))
	}
	drawn := script.Draw(9, 1, 1000)
	short := script.Shrink(context.Background(), drawn, fails)
	fmt.Println("shorter:", len(short.Steps) < len(drawn.Steps))
	for _, step := range short.Steps {
		fmt.Println(step.Do)
	}
	// Output:
	// shorter: true
	// write
	// clock jumps
}

// A scenario that is written by hand is validated before it is played.
func ExampleScenario_Validate() {
	s := script.Scenario{Steps: []script.Step{
		{Do: script.Write, Seed: 1},
		{Do: script.Take, Watch: 0, N: -1},
	}}
	fmt.Println(s.Steps[0])
	fmt.Println(s.Validate())
	// Output:
	// write seed=0x1
	// invalid configuration: Steps[1].N is negative; give a number of what the verb says, or zero
}
