package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/watchmill/watchmill/sim/scenario"
)

// A scenario in Go is a literal; what is left out takes defaults.
func Example() {
	s := &scenario.Scenario{
		Name:     "my-load",
		Duration: 5 * time.Second,
		Objects:  scenario.Objects{Count: 100, Fields: map[string]int{"node": 10}},
		Writers:  []scenario.Writer{{Rate: 200, Shape: scenario.Poisson}},
		Watchers: []scenario.Watcher{{Name: "agents", Count: 10, Fields: "node={node}"}},
		Faults: []scenario.Fault{{
			Kind: scenario.FaultFail, At: time.Second, For: time.Second,
			When: scenario.And(scenario.During(scenario.OnList), scenario.Randomly(0.5, 7)),
		}},
		Assert: []scenario.Assertion{"lost = 0", "p99 < 100ms"},
	}
	plan, err := s.Resolve(scenario.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Watchers[0].Policy, plan.Writers[0].Mix, plan.Objects.Size)
	fmt.Println(plan.Select(plan.Watchers[0], 3))
	// Output:
	// park {0 1 0 0} {100 100}
	// fields node=node-3
}

// Errors say where, what is wrong, and what to write.
func ExampleParse() {
	_, err := scenario.Parse("mine.yaml", []byte(`watchers:
  - count: 10
    selector: app=web
writers:
  - rate: fast
`))
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", ";\n    "))
	// Output:
	// mine.yaml:3:5: watchers[0].selector: there is no such field;
	//     there are name, count, labels, fields, prefix, key, initial, start, spread, policy, buffer, consumer, consume, reconnect
	// mine.yaml:5:11: writers[0].rate: "fast" is not a number;
	//     write a number such as 500 or 0.5
}

// The traces that a scenario names are relative to its file.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "scenario")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "agents.yaml")
	if err := os.WriteFile(file, []byte("watchers: [{name: agents, count: 3}]"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	s, err := scenario.Load(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Name, s.Watchers[0].Count)
	// Output:
	// agents 3
}

func ExamplePlan_Explain() {
	s, _ := scenario.Parse("tiny.yaml", []byte("watchers: [{count: 3}]"))
	plan, _ := s.Resolve(scenario.Options{})
	text, _ := plan.Explain()
	_, body, _ := strings.Cut(text, "\n") // the first line has the hash
	fmt.Print(body)
	// Output:
	// name: tiny
	// seed: 1
	// duration: 10s
	// settle: 10s
	// objects:
	//   size:
	//     min: 100
	//     max: 100
	//   namespaces: 1
	// watchers:
	//   - name: watchers-1
	//     count: 3
	//     policy: park
	//     consumer: batches
	// assert:
	//   - lost = 0
	//   - unread = 0
	//
	// # at the start: objects 0, watchers in all: 3
}

// Conditions compose. This one strikes half of the lists, and never a write.
func ExampleCondition() {
	c := scenario.And(
		scenario.During(scenario.OnList),
		scenario.Randomly(0.5, 1),
	)
	for call := range uint64(4) {
		fmt.Println(c.Holds(scenario.OnList, call), c.Holds(scenario.OnPut, call))
	}
	// Output:
	// true false
	// false false
	// true false
	// true false
}

// This one strikes all writes, and half of the other calls.
func ExampleOr() {
	writes := scenario.Or(scenario.During(scenario.OnPut), scenario.During(scenario.OnRemove))
	c := scenario.Or(writes, scenario.And(scenario.Not(writes), scenario.Randomly(0.5, 1)))
	for call := range uint64(4) {
		fmt.Println(c.Holds(scenario.OnPut, call), c.Holds(scenario.OnGet, call))
	}
	// Output:
	// true true
	// true false
	// true false
	// true true
}

func ExampleAssertion() {
	check, err := scenario.Assertion("p99 < 50ms").Check()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(check.Metric.Name, check.Holds(0.012, 0), check.Holds(0.080, 0))
	// Output: p99 true false
}

func ExampleShipped() {
	fmt.Println(scenario.Library())
	s, err := scenario.Shipped("kubelets")
	if err != nil {
		fmt.Println(err)
		return
	}
	small, err := s.Resolve(scenario.Options{Small: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Objects.Count, small.Objects.Count)
	// Output:
	// [configmaps controllers event-bus git-history kubelets reconnect-storm slow-consumers]
	// 150000 15000
}
