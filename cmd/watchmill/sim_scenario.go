package main

import (
	"errors"
	"fmt"
	"go/doc/comment"
	"io/fs"
	"strings"
	"time"

	"github.com/watchmill/watchmill/sim/scenario"
)

// scenarioArgument names a scenario: a file, or a shipped one. A file is what
// there is under that name; a shipped one needs no file.
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
	Small    bool          `help:"Take the scenario in the size that is over in ten seconds."`
	Seed     uint64        `placeholder:"N" help:"Decides all random choices, instead of the scenario's seed."`
	Duration time.Duration `placeholder:"D" help:"How long the load lasts, such as 2m, instead of the scenario's duration. Its starts, stops and faults move in proportion."`
}

// plan reads the scenario and resolves it.
func (o scenarioOptions) plan(from scenarioArgument) (*scenario.Plan, error) {
	s, err := from.load()
	if err != nil {
		return nil, err
	}
	return s.Resolve(scenario.Options{Small: o.Small, Seed: o.Seed, Duration: o.Duration})
}

// simListCommand is watchmill sim list.
type simListCommand struct{}

// aboutWidth is how wide what a scenario is about is written.
const aboutWidth = 76

// Run lists the shipped scenarios with what they are about.
func (simListCommand) Run(t *terminal) error {
	for _, name := range scenario.Library() {
		s, err := scenario.Shipped(name)
		if err != nil {
			return err
		}
		about := (&comment.Printer{TextPrefix: "  ", TextWidth: aboutWidth}).Text(new(comment.Parser).Parse(s.About))
		if _, err := fmt.Fprintf(t.stdout, "%s\n%s\n", name, about); err != nil {
			return err
		}
	}
	return nil
}

// simLintCommand is the flags of watchmill sim lint.
type simLintCommand struct {
	Scenario scenarioArgument `arg:"" placeholder:"FILE" help:"The scenario: a YAML file, or the name of a shipped one."`
}

// Run checks the scenario in both its sizes.
func (c *simLintCommand) Run(t *terminal) error {
	for _, small := range []bool{false, true} {
		if _, err := (scenarioOptions{Small: small}).plan(c.Scenario); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(t.stdout, "%s is fine\n", c.Scenario)
	return err
}

// simExplainCommand is the flags of watchmill sim explain.
type simExplainCommand struct {
	Scenario scenarioArgument `arg:"" placeholder:"FILE" help:"The scenario: a YAML file, or the name of a shipped one."`
	scenarioOptions
}

// Run prints the resolved plan.
func (c *simExplainCommand) Run(t *terminal) error {
	plan, err := c.plan(c.Scenario)
	if err != nil {
		return err
	}
	text, err := plan.Explain()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(t.stdout, text)
	return err
}
