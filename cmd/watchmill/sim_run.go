package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/interrupt"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/page"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/scenario"
)

// simRunCommand has the flags of watchmill sim run.
type simRunCommand struct {
	Scenario scenarioArgument `arg:"" placeholder:"FILE" help:"The scenario: a YAML file, or the name of a shipped one (see watchmill sim list)."`
	scenarioOptions
	HTML    help.Given `name:"html" placeholder:"FILE" help:"Write the report as a page, which loads nothing from elsewhere."`
	Inspect help.Given `name:"inspect" placeholder:"ADDR" help:"Show the engine on a page while the run lasts, at a loopback address such as 127.0.0.1:6061."`
	JSON    help.Given `name:"json" placeholder:"FILE" help:"Write the report as JSON, for watchmill sim compare."`
}

// Help returns the text that --help adds.
func (*simRunCommand) Help() string {
	return `To begin with:

    watchmill sim run --small kubelets

It shows its progress, and the report at the end. An interrupt or a SIGTERM ends the run with a report of what ran so far. The exit status is

    0    if all is well
    1    if an assertion failed, the engine did not start or close, the
         report could not be written, for example because the disk is
         full, or the port of --inspect is taken
    2    for wrong usage, such as a report in a directory that is not
         there, or a bad scenario
    3    if an invariant is broken
    130  after an interrupt or a SIGTERM`
}

// Run runs the scenario, shows progress on stderr and the report on stdout.
func (c *simRunCommand) Run(ctx context.Context, to *streams) error {
	plan, err := interrupt.Do(ctx, func() (*scenario.Plan, error) { return c.plan(c.Scenario) })
	if err != nil {
		return err
	}
	if err := c.validatePaths(plan); err != nil {
		return err
	}
	files, err := c.create(ctx)
	if err != nil {
		return err
	}
	defer files.discard()
	progress := newLoadProgress(to.stderr)
	rep, err := load.Run(ctx, plan, load.Options{OnProgress: progress.show, ProgressEvery: progress.every, Observe: c.inspect(to)})
	progress.end()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // a broken invariant is the exit status even if stdout is closed
	if err := errors.Join(files.write(rep), rep.WriteTerminal(to.stdout, screen(to.stdout))); err != nil {
		return unwritten(to, rep, err)
	}
	return outcome(rep)
}

// unwritten returns the error for a report that could not be written. If an invariant is
// broken, it prints that error and returns the one for the invariant.
func unwritten(to *streams, rep *sim.Report, err error) error {
	err = fmt.Errorf("writing the report: %w", err)
	if len(rep.Broken) == 0 {
		return err
	}
	complain(to.stderr, err)
	return errBroken
}

// outcome returns the error for the result of the run.
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

// errOutput is the error of a command that cannot write its output, which is wrong usage unless the
// disk is full.
var errOutput = errors.New("cannot write the report")

// outputs are the files for a report, each with the function that writes it.
type outputs []output

type output struct {
	*draft.Draft
	write func(*sim.Report, io.Writer) error
}

// validatePaths refuses a report in place of the scenario, of one of its traces, or of the other
// report.
func (c *simRunCommand) validatePaths(plan *scenario.Plan) error {
	refuse := func(flag, name, problem string) error {
		return &engine.ConfigError{Field: flag, Problem: fmt.Sprintf("is %s, %s; give another name", name, problem)}
	}
	json, html := string(c.JSON), string(c.HTML)
	if json != "" && html != "" && draft.SameFile(json, html) {
		return refuse("--html", html, "which is the file of --json")
	}
	if _, err := os.Stat(string(c.Scenario)); err != nil {
		return nil // a shipped one
	}
	for flag, name := range map[string]string{"--json": json, "--html": html} {
		if name != "" && draft.SameFile(name, string(c.Scenario)) {
			return refuse(flag, name, "which is the scenario")
		}
		for _, w := range plan.Writers {
			if trace := plan.TraceFile(w); name != "" && trace != "" && draft.SameFile(name, trace) {
				return refuse(flag, name, "which is a trace of the scenario")
			}
		}
	}
	return nil
}

// create creates the files for the report. It does so before the run, so that a missing
// directory is found at once. A pipe opens once a program reads it: until then the end of ctx ends
// the call.
func (c *simRunCommand) create(ctx context.Context) (files outputs, err error) {
	for _, f := range []struct {
		flag, name string
		write      func(*sim.Report, io.Writer) error
	}{{"--json", string(c.JSON), (*sim.Report).WriteJSON}, {"--html", string(c.HTML), (*sim.Report).WriteHTML}} {
		if f.name == "" {
			continue
		}
		d, err := interrupt.DoOrUndo(ctx, func() (*draft.Draft, error) { return draft.New(f.name) }, (*draft.Draft).Discard)
		if err != nil {
			files.discard()
			return nil, fmt.Errorf("%w: %s is %s: %w; give another file", errOutput, f.flag, f.name, err)
		}
		files = append(files, output{d, f.write})
	}
	return files, nil
}

// write writes the report to each of the files.
func (files outputs) write(rep *sim.Report) (err error) {
	for _, f := range files {
		if wrong := f.write(rep, f); wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		err = errors.Join(err, f.Publish())
	}
	return err
}

// discard removes the files that have not been written.
func (files outputs) discard() {
	for _, f := range files {
		f.Discard()
	}
}

// inspect returns what serves a page about the run's engine while it lasts, and prints the
// page's address; nil if the flags do not ask for one.
func (c *simRunCommand) inspect(to *streams) func(*engine.Host) (end func(), err error) {
	if c.Inspect == "" {
		return nil
	}
	return func(h *engine.Host) (func(), error) {
		shown, err := page.Listen(string(c.Inspect), h)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(to.stderr, "inspect the run at %s\n", shown.URL())
		return func() { _ = shown.Close() }, nil // the run is over, so an error has no effect
	}
}
