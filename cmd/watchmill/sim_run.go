package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/load"
)

// simRunCommand is the flags of watchmill sim run.
type simRunCommand struct {
	Scenario scenarioArgument `arg:"" placeholder:"FILE" help:"The scenario: a YAML file, or the name of a shipped one (see watchmill sim list)."`
	scenarioOptions
	HTML string `name:"html" placeholder:"FILE" help:"Write the report as a page, which loads nothing from elsewhere."`
	JSON string `name:"json" placeholder:"FILE" help:"Write the report as JSON, for watchmill sim compare."`
}

// Help is what --help says besides.
func (*simRunCommand) Help() string {
	return `Begin with "watchmill sim run --small kubelets". Progress is shown meanwhile, the report at the end; an interrupt ends the run, with a report of what ran so far.

The exit status is 0 if all is well, 1 if an assertion failed, 2 for wrong usage or a bad scenario, 3 if an invariant is broken, and 130 after an interrupt.`
}

// Run runs the scenario, shows progress on stderr and the report on stdout.
func (c *simRunCommand) Run(ctx context.Context, t *terminal) error {
	plan, err := c.plan(c.Scenario)
	if err != nil {
		return err
	}
	files, err := c.create()
	if err != nil {
		return err
	}
	progress := newLoadProgress(t.stderr)
	rep, err := load.Run(ctx, plan, load.Options{OnProgress: progress.show, ProgressEvery: progress.every})
	progress.end()
	if err != nil {
		return errors.Join(err, files.close())
	}
	if err := errors.Join(rep.WriteTerminal(t.stdout, screen(t.stdout)), files.write(rep)); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return outcome(rep)
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

// errOutput ends a command that cannot write where it is to.
var errOutput = errors.New("cannot write the report")

// outputs are the files for a report, and how each is written.
type outputs []output

type output struct {
	file  *os.File
	write func(*sim.Report, io.Writer) error
}

// create creates the files that the report is to be written to. It does so before
// the run: that must not take minutes to find that there is no such directory.
func (c *simRunCommand) create() (files outputs, err error) {
	for _, f := range []struct {
		name  string
		write func(*sim.Report, io.Writer) error
	}{{c.JSON, (*sim.Report).WriteJSON}, {c.HTML, (*sim.Report).WriteHTML}} {
		if f.name == "" {
			continue
		}
		file, err := os.Create(f.name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", errOutput, err), files.close())
		}
		files = append(files, output{file, f.write})
	}
	return files, nil
}

// write writes the report to each of the files.
func (files outputs) write(rep *sim.Report) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.write(rep, f.file))
	}
	return errors.Join(err, files.close())
}

func (files outputs) close() (err error) {
	for _, f := range files {
		err = errors.Join(err, f.file.Close())
	}
	return err
}
