package main

import (
	"errors"
	"fmt"
	"go/doc/comment"
	"io/fs"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/scenario"
)

// simCommand has the commands under watchmill sim.
type simCommand struct {
	List    simListCommand    `cmd:"" help:"List the shipped scenarios with their descriptions."`
	Run     simRunCommand     `cmd:"" help:"Run a scenario's load on an engine, in real time, and report."`
	Lint    simLintCommand    `cmd:"" help:"Check a scenario without running it, and report its errors."`
	Explain simExplainCommand `cmd:"" help:"Print a scenario with all defaults and its timeline, without running it."`
	Compare simCompareCommand `cmd:"" help:"Report the differences between runs, and whether they are more than noise."`
	Explore exploreCommand    `cmd:"" help:"Run random scenarios in random interleavings on virtual time, and check them."`
}

// Help returns the text that --help adds.
func (*simCommand) Help() string {
	return `A scenario is a YAML file. It describes objects, the load of writers, watchers and readers, the faults and when they happen, and what must hold at the end. Some are shipped. To see one, and then run it:

    watchmill sim explain --small kubelets
    watchmill sim run --small --html run.html kubelets

To write your own, begin with what explain prints: it is a scenario itself.`
}

// scenarioArgument is the name of a scenario: of a file, or of a shipped one if there is
// no such file.
type scenarioArgument string

// load reads and validates the scenario.
func (a scenarioArgument) load() (*scenario.Scenario, error) {
	s, err := scenario.Load(string(a))
	var unreadable *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(string(a), `/\.`):
		return scenario.Shipped(string(a))
	case errors.As(err, &unreadable):
		return nil, &scenario.Error{File: string(a), Problem: unreadable.Err.Error(), Fix: "name a file, or one of " + strings.Join(scenario.Library(), ", ")}
	}
	return s, err
}

// scenarioOptions are the flags that change a plan.
type scenarioOptions struct {
	Small    bool           `help:"Use the scenario's small size, which takes ten seconds. It must have one."`
	Seed     *uint64        `placeholder:"N" help:"The seed of all random choices, at least 1, instead of the scenario's."`
	Duration *time.Duration `placeholder:"D" help:"How long the load lasts, such as 2m, instead of the scenario's duration. Its starts, stops and faults move in proportion."`
}

// plan reads the scenario and resolves it.
func (o scenarioOptions) plan(from scenarioArgument) (*scenario.Plan, error) {
	s, err := from.load()
	if err != nil {
		return nil, err
	}
	if o.Small && !s.HasSmall() {
		return nil, &engine.ConfigError{Field: "--small", Problem: fmt.Sprintf("is given, but %s has no small size; leave it out, or add small to the scenario", from)}
	}
	changes, err := o.changes()
	if err != nil {
		return nil, err
	}
	return s.Resolve(changes)
}

// changes returns what the flags change. It refuses zero, which would leave the scenario's
// value.
func (o scenarioOptions) changes() (scenario.Options, error) {
	changes := scenario.Options{Small: o.Small}
	if o.Seed != nil {
		if changes.Seed = *o.Seed; changes.Seed == 0 {
			return changes, &engine.ConfigError{Field: "--seed", Problem: "is 0; give a seed from 1"}
		}
	}
	if o.Duration != nil {
		if changes.Duration = *o.Duration; changes.Duration <= 0 || changes.Duration > scenario.MaxDuration {
			return changes, &engine.ConfigError{Field: "--duration", Problem: fmt.Sprintf("is %v; give one above 0, such as 2m, up to %v", changes.Duration, scenario.MaxDuration)}
		}
	}
	return changes, nil
}

// simListCommand is watchmill sim list.
type simListCommand struct{}

// aboutWidth is the width of the descriptions, in columns.
const aboutWidth = 76

// Run lists the shipped scenarios with their descriptions.
func (simListCommand) Run(to *streams) error {
	for _, name := range scenario.Library() {
		s, err := scenario.Shipped(name)
		if err != nil {
			return err
		}
		about := (&comment.Printer{TextPrefix: "  ", TextWidth: aboutWidth}).Text(new(comment.Parser).Parse(s.About))
		if _, err := fmt.Fprintf(to.stdout, "%s\n%s\n", name, about); err != nil {
			return err
		}
	}
	return nil
}

// simLintCommand has the flags of watchmill sim lint.
type simLintCommand struct {
	Scenario scenarioArgument `arg:"" placeholder:"FILE" help:"The scenario: a YAML file, or the name of a shipped one."`
}

// Run checks the scenario in its full and its small size, and its traces.
func (c *simLintCommand) Run(to *streams) error {
	s, err := c.Scenario.load()
	if err != nil {
		return err
	}
	if _, err := s.Resolve(scenario.Options{Small: true}); err != nil {
		return err
	}
	plan, err := s.Resolve(scenario.Options{})
	if err != nil {
		return err
	}
	if err := lintTraces(plan); err != nil {
		return err
	}
	_, err = fmt.Fprintf(to.stdout, "%s is fine\n", c.Scenario)
	return err
}

// lintTraces returns the first error in the traces of the plan.
func lintTraces(plan *scenario.Plan) error {
	for _, w := range plan.Writers {
		if w.Trace == "" {
			continue
		}
		for _, err := range plan.Changes(w) {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// simExplainCommand has the flags of watchmill sim explain.
type simExplainCommand struct {
	Scenario scenarioArgument `arg:"" placeholder:"FILE" help:"The scenario: a YAML file, or the name of a shipped one."`
	scenarioOptions
}

// Run prints the resolved plan.
func (c *simExplainCommand) Run(to *streams) error {
	plan, err := c.plan(c.Scenario)
	if err != nil {
		return err
	}
	text, err := plan.Explain()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(to.stdout, text)
	return err
}
