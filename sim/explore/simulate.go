package explore

import (
	"fmt"
	"runtime/debug"

	"github.com/watchmill/watchmill/sim/judge"
)

// Contained is the invariant that neither the engine nor what is around it lets
// a panic escape.
const Contained judge.Invariant = "contained"

// outcome is what came of one scenario.
type outcome struct {
	Counts
	hash uint64
	// failure is what is wrong; nil if nothing is.
	failure *judge.Failure
	// broken is why the scenario could not be played at all.
	broken error
}

// simulate plays a scenario in a world of its own. The same scenario always has
// the same outcome.
func simulate[T any](cfg *Config[T], s Scenario, sabotage seams[T], record func(string)) (o outcome) {
	t := &trace{record: record}
	defer func() {
		if r := recover(); r != nil {
			o = outcome{failure: judge.Failed(Contained, "", "%v\n%s", r, debug.Stack())}
		}
		o.Counts, o.hash = t.Counts, t.hash
	}()
	w, err := newWorld(cfg, s, sabotage, t)
	if err != nil {
		return outcome{broken: fmt.Errorf("seed %d: %w", s.Seed, err)}
	}
	err = w.run()
	if f, ok := err.(*judge.Failure); ok {
		t.say("BROKEN: %v", f)
		return outcome{failure: f}
	}
	return outcome{broken: err}
}
