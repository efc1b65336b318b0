package explore

import (
	"fmt"
	"strings"

	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/explore/world"
	"github.com/watchmill/watchmill/sim/judge"
)

// Finding is an invariant that a scenario breaks, with what is needed to reproduce it.
type Finding struct {
	Seed uint64 `json:"seed"`
	// Invariant is one of package judge's, of package world's, or the user's own.
	// Problem is how the scenario breaks it: in Run, the one drawn from the seed.
	Invariant judge.Invariant `json:"invariant"`
	Problem   string          `json:"problem"`
	// Scenario is the shortest one found that still breaks the invariant. [Play] plays
	// it even when a later version draws another scenario from the seed.
	Scenario script.Scenario `json:"scenario"`
	// Setup and Steps describe Scenario in words. Drawn is the number of steps that the
	// scenario had before it was shrunk. ShortProblem is how Scenario breaks the
	// invariant; it is empty if Scenario broke none when it was played again, since
	// something in the user's code is not the same each time.
	Setup        string   `json:"setup"`
	Steps        []string `json:"steps"`
	Drawn        int      `json:"drawnSteps"`
	ShortProblem string   `json:"shortProblem"`
	// Trace is everything that happens in Scenario, one line each.
	Trace []string `json:"trace"`
	// Stack is the stack of the panic, if the invariant is [world.Contained] and a panic
	// escaped. It has addresses in it, so unlike all other fields it is not the same
	// each time.
	Stack string `json:"stack,omitempty"`
}

// maxTraceLines is how many lines of a trace String shows: the last ones, where the
// invariant breaks.
const maxTraceLines = 200

// String describes the finding in many lines: the problem, the shortest scenario with the
// end of its trace, and how to play it again.
func (f *Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks %q\n\n%s\n\n", f.Seed, f.Invariant, f.Problem)
	fmt.Fprintf(&b, "The shortest scenario that still breaks it has %d of the %d steps, and ends with:\n", len(f.Steps), f.Drawn)
	if f.ShortProblem == "" {
		b.WriteString("nothing, when it was played again: something in it is not the same each time\n")
	} else {
		fmt.Fprintf(&b, "%s\n", f.ShortProblem)
	}
	fmt.Fprintf(&b, "\n%s\n", f.Setup)
	for _, s := range f.Steps {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	if f.Scenario.Abrupt {
		b.WriteString("  and the engine is closed in the middle of its work\n")
	}
	switch {
	case f.Scenario.Impatient:
		b.WriteString("  and the engine is drained, by a caller whose context ends\n")
	case f.Scenario.Drain:
		b.WriteString("  and the engine is drained\n")
	}
	if f.Scenario.Restart {
		b.WriteString("  and another engine starts on empty storage\n")
	}
	b.WriteString("\nWhat happens in it:\n")
	lines := f.Trace
	if more := len(lines) - maxTraceLines; more > 0 {
		fmt.Fprintf(&b, "  (%d lines before; the finding's Trace has them)\n", more)
		lines = lines[more:]
	}
	for _, line := range lines {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if f.Stack != "" {
		fmt.Fprintf(&b, "\nWhere it panicked:\n%s\n", strings.TrimSpace(f.Stack))
	}
	fmt.Fprintf(&b, "\nReplay it: explore with From: %d and Seeds: 1, or Play its Scenario.", f.Seed)
	return b.String()
}

// playTraced plays the scenario, recording its trace, and returns the finding and the outcome.
// The finding has no Invariant if the scenario breaks none.
func playTraced[T any](cfg *world.Config[T], s script.Scenario) (*Finding, world.Outcome) {
	f := &Finding{Seed: s.Seed, Scenario: s, Setup: s.Setup.String(), Drawn: len(s.Steps)}
	for _, step := range s.Steps {
		f.Steps = append(f.Steps, step.String())
	}
	o := world.Play(cfg, s, func(line string) { f.Trace = append(f.Trace, line) })
	if o.Failure != nil {
		f.Invariant, f.Problem, f.Stack = o.Failure.Invariant, o.Failure.Error(), o.Stack
		f.ShortProblem = f.Problem
	}
	return f, o
}
