package load_test

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
)

// Ten watchers of a node each, while the storage's watch breaks.
func ExampleRun() {
	s := &scenario.Scenario{
		Duration: 200 * time.Millisecond,
		Objects:  scenario.Objects{Count: 100, Fields: map[string]int{"node": 10}},
		Writers:  []scenario.Writer{{Rate: 200}},
		Watchers: []scenario.Watcher{{Name: "agents", Count: 10, Fields: "node={node}"}},
		Faults:   []scenario.Fault{{Kind: scenario.FaultBreak, At: 100 * time.Millisecond}},
	}
	plan, err := s.Resolve(scenario.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := load.Run(context.Background(), plan, load.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range result.Groups {
		fmt.Println(g.Kind, g.Name, g.Count)
	}
	fmt.Println("lost:", result.Metrics["lost"], "faults:", len(result.Faults))
	// Output:
	// writers writers-1 1
	// watchers agents 10
	// lost: 0 faults: 1
}

// Three watchers that disconnect twice see all of a history.
func ExampleReplay() {
	result, err := load.Replay(context.Background(), load.History{
		Changes: []trace.Change{
			{Op: trace.Put, Key: "main.go", Version: "1"},
			{Op: trace.Put, Key: "README.md", Version: "1"},
			{Op: trace.Put, Key: "main.go", Version: "2"},
			{Op: trace.Delete, Key: "README.md"},
		},
		Watchers: 3, Breaks: 2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("written:", result.Written, "lost:", len(result.Lost), "equal:", result.Equal, "of", result.Watchers)
	fmt.Println(result.State)
	// Output:
	// written: 4 lost: 0 equal: 3 of 3
	// map[main.go:2]
}
