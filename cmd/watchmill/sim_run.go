package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/scenario"
)

// simRunCommand is the flags of watchmill sim run.
type simRunCommand struct {
	Scenario scenarioArgument `arg:"" placeholder:"FILE" help:"The scenario: a YAML file, or the name of a shipped one."`
	scenarioOptions
	HTML string `name:"html" placeholder:"FILE" help:"Write the report as a page, which loads nothing from elsewhere."`
	JSON string `name:"json" placeholder:"FILE" help:"Write the report as JSON, for watchmill sim compare."`
}

// Run runs the scenario, shows progress on stderr and the report on stdout.
func (c *simRunCommand) Run(ctx context.Context, t *terminal) error {
	s, err := c.Scenario.load()
	if err != nil {
		return err
	}
	progress := newLoadProgress(t.stderr)
	rep, err := sim.Run(ctx, s, sim.RunOptions{
		Resolve: scenario.Options{Small: c.Small, Seed: c.Seed},
		Options: load.Options{OnProgress: progress.show, ProgressEvery: progress.every},
	})
	progress.end()
	if err != nil {
		return err
	}
	return errors.Join(c.write(t, rep), outcome(rep))
}

// write writes the report wherever it is wanted.
func (c *simRunCommand) write(t *terminal, rep *sim.Report) error {
	return errors.Join(
		rep.WriteTerminal(t.stdout, screen(t.stdout)),
		toFile(c.JSON, rep.WriteJSON),
		toFile(c.HTML, rep.WriteHTML),
	)
}

// outcome is the error that stands for how the run ended.
func outcome(rep *sim.Report) error {
	switch {
	case len(rep.Broken) > 0:
		return errBroken
	case rep.Interrupted:
		return context.Canceled
	case !rep.OK():
		return errFailed
	}
	return nil
}

// toFile writes a file, unless it has no name.
func toFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
