package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/scenario"
)

// Fifty agents, each watching its own node, while the storage's watch breaks.
func ExampleRun() {
	s := &scenario.Scenario{
		Duration: 300 * time.Millisecond,
		Objects:  scenario.Objects{Count: 200, Fields: map[string]int{"node": 50}},
		Writers:  []scenario.Writer{{Rate: 500, Shape: scenario.Poisson, Mix: scenario.Mix{Create: 1, Update: 8, Delete: 1}}},
		Watchers: []scenario.Watcher{{Name: "agents", Count: 50, Fields: "node={node}"}},
		Faults:   []scenario.Fault{{Kind: scenario.FaultBreak, At: 100 * time.Millisecond}},
		Assert:   []scenario.Assertion{"lost = 0", "write-errors = 0"},
	}
	report, err := sim.Run(context.Background(), s, sim.RunOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range report.Assertions {
		fmt.Println(a.Text, a.Holds)
	}
	fmt.Println("fine:", report.OK())
	// Output:
	// lost = 0 true
	// write-errors = 0 true
	// fine: true
}
