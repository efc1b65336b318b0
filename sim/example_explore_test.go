package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim"
)

// Agent runs on a node, and may be moved to another.
type Agent struct {
	Name, Node string
	Build      uint32
}

// perNode counts the agents of each node, by events. It has a bug: an agent that
// moves is still counted where it was.
type perNode map[string]int

func (c perNode) handle(ev engine.Event[Agent]) {
	switch ev.Type {
	case engine.Added:
		c[ev.Object.Value.Node]++
	case engine.Deleted:
		c[ev.Object.Value.Node]--
	}
}

// check compares the counts with the agents that there are.
func (c perNode) check(agents []*engine.Object[Agent]) error {
	want := perNode{}
	for _, a := range agents {
		want[a.Value.Node]++
	}
	for _, node := range []string{"n1", "n2"} {
		if c[node] != want[node] {
			return fmt.Errorf("%s: counted %d agents, there are %d", node, c[node], want[node])
		}
	}
	return nil
}

// countedAgents returns a configuration that attaches a perNode to every world.
func countedAgents() sim.ExploreConfig[Agent] {
	return sim.ExploreConfig[Agent]{
		Engine: engine.Config[Agent]{Key: func(a Agent) string { return a.Name }},
		Draw: func(r *rand.Rand) Agent {
			return Agent{Name: fmt.Sprint("agent-", r.IntN(5)), Node: fmt.Sprint("n", 1+r.IntN(2)), Build: r.Uint32()}
		},
		Attach: func(w *sim.World[Agent]) error {
			counts := perNode{}
			// Conflate never expires, except when storage goes back in time.
			watch, err := w.Handle(engine.WatchOptions{InitialState: true, Policy: engine.Conflate}, counts.handle)
			w.Finally("agents per node", func() error {
				if watch.Err() != nil {
					return nil
				}
				agents, err := w.Engine().List(context.Background(), engine.ListOptions{})
				if err != nil {
					return err
				}
				return counts.check(agents.Items)
			})
			return err
		},
		Seeds: 300,
	}
}

// A user's handler is checked by its invariant in hundreds of interleavings with
// faults. The exploration finds the bug of this one. The finding describes how, and its
// Seed alone reproduces it. In a test: t.Fatal(report.Finding).
func ExampleExplore() {
	report, err := sim.Explore(context.Background(), countedAgents())
	if err != nil {
		fmt.Println(err)
		return
	}
	if f := report.Finding; f != nil {
		fmt.Println("broken:", f.Invariant)
		fmt.Println("shortened:", len(f.Steps) < f.Drawn)
	}
	// Output:
	// broken: agents per node
	// shortened: true
}

// A finding is kept as JSON, and a test plays it from then on.
func ExamplePlay() {
	kept := `{
		"seed": 1,
		"setup": {"window": {"MaxEvents": 16}},
		"steps": [
			{"do": "write", "seed": 1},
			{"do": "write", "seed": 2},
			{"do": "write", "seed": 3},
			{"do": "write", "seed": 4},
			{"do": "write", "seed": 5},
			{"do": "write", "seed": 6},
			{"do": "write", "seed": 7},
			{"do": "write", "seed": 8}
		]
	}`
	var scenario sim.ExploreScenario
	if err := json.Unmarshal([]byte(kept), &scenario); err != nil {
		fmt.Println(err)
		return
	}
	finding, err := sim.Play(countedAgents(), scenario)
	if err != nil {
		fmt.Println(err)
		return
	}
	if finding != nil {
		fmt.Println("still broken:", finding.Invariant)
	}
	// Output:
	// still broken: agents per node
}
