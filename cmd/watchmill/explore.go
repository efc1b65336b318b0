package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/watchmill/watchmill/sim/explore"
	"github.com/watchmill/watchmill/sim/explore/world"
	"github.com/watchmill/watchmill/sim/report"
)

// exploreCommand has the flags of watchmill sim explore.
type exploreCommand struct {
	Seeds *int           `placeholder:"N" xor:"count" help:"How many seeds to explore (500, or as many as --for allows)."`
	Seed  *uint64        `placeholder:"S" xor:"first,count,time" help:"Explore only this seed, to reproduce what it found."`
	From  *uint64        `placeholder:"S" xor:"first" help:"The first seed (1)."`
	For   *time.Duration `placeholder:"D" xor:"time" help:"Stop when so much time has passed, such as 10m."`
	JSON  bool           `name:"json" help:"Print the report as JSON."`
}

// Help returns the text that --help adds.
func (*exploreCommand) Help() string {
	return `The first seed that breaks an invariant ends the exploration. Its scenario is made as short as possible, and printed with the command that reproduces it.

An interrupt or a SIGTERM ends the exploration with a report of the seeds that were explored. The exit status is

    0    if every invariant held
    1    if the report could not be written
    2    for wrong usage
    3    if an invariant is broken, even if that could not be written
    130  after an interrupt or a SIGTERM`
}

// config returns the configuration that the flags describe.
func (c *exploreCommand) config() (explore.Config[world.Thing], error) {
	cfg := explore.Things()
	cfg.From = 1
	switch {
	case c.Seed != nil:
		cfg.From, cfg.Seeds = *c.Seed, 1
	case c.From != nil:
		cfg.From = *c.From
	}
	if c.For != nil {
		if cfg.For = *c.For; cfg.For <= 0 {
			return cfg, &explore.ConfigError{Field: "--for", Problem: fmt.Sprintf("is %v; give how long to explore, such as 10m", cfg.For)}
		}
	}
	if c.Seeds == nil {
		return cfg, nil
	}
	if *c.Seeds < 1 {
		return cfg, &explore.ConfigError{Field: "--seeds", Problem: fmt.Sprintf("is %d; give how many seeds to explore, at least 1", *c.Seeds)}
	}
	cfg.Seeds = *c.Seeds
	return cfg, nil
}

// Run explores, shows progress on stderr and the report on stdout.
func (c *exploreCommand) Run(ctx context.Context, to *streams) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	cfg.OnProgress = exploreProgress(to.stderr)
	report, err := explore.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if isTerminal(to.stderr) {
		fmt.Fprint(to.stderr, "\r\x1b[K")
	}
	write := writeExploreText
	if c.JSON {
		write = writeExploreJSON
	}
	signal.Ignore(syscall.SIGPIPE) // a broken invariant is the exit status even if stdout is closed
	if err := write(to.stdout, report); err != nil {
		return unwrittenFinding(to, report.Finding, err)
	}
	switch {
	case report.Finding != nil:
		return errBroken
	case report.Interrupted:
		return context.Canceled
	}
	return nil
}

// unwrittenFinding returns the error for a report that could not be written. If it has a finding, it
// prints that error, and how to find the same again, and returns the one for the finding.
func unwrittenFinding(to *streams, f *explore.Finding, err error) error {
	err = fmt.Errorf("writing the report: %w", err)
	if f == nil {
		return err
	}
	complain(to.stderr, err)
	fmt.Fprintf(to.stderr, "watchmill: seed %d breaks %q: run watchmill sim explore --seed %d\n", f.Seed, f.Invariant, f.Seed)
	return errBroken
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// exploreProgress returns a function that shows progress on w: on one line of a terminal,
// and otherwise as periodic lines.
func exploreProgress(w io.Writer) func(explore.Progress) {
	every, begin, end := lineEvery, "", "\n"
	if isTerminal(w) {
		every, begin, end = barEvery, "\r\x1b[K", ""
	}
	var shown atomic.Int64
	shown.Store(time.Now().UnixNano())
	return func(p explore.Progress) {
		now := time.Now().UnixNano()
		if last := shown.Load(); now-last < int64(every) || !shown.CompareAndSwap(last, now) {
			return
		}
		of := ""
		if p.Seeds > 0 {
			of = " of " + report.Number(p.Seeds)
		}
		fmt.Fprintf(w, "%s%s%s seeds explored, %s messages%s", begin, report.Number(p.Done), of, report.Number(p.Counts.Messages()), end)
	}
}

func writeExploreJSON(w io.Writer, r *explore.Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func writeExploreText(w io.Writer, r *explore.Report) error {
	var b strings.Builder
	seeds := "seeds"
	if r.Seeds == 1 {
		seeds = "seed"
	}
	if r.Interrupted {
		b.WriteString("stopped    interrupted before the end: the figures are of what ran so far\n")
	}
	fmt.Fprintf(&b, "explored   %s %s from %d in %v\n", report.Number(r.Seeds), seeds, r.From, r.Elapsed.Round(time.Millisecond))
	fmt.Fprintf(&b, "simulated  %s messages, %s per second: %s turns, %s deliveries, %s requests, %s calls to storage, %s timers; %s steps\n",
		report.Number(r.Messages()), report.Number(r.PerSecond()), report.Number(r.Turns), report.Number(r.Deliveries),
		report.Number(r.Requests), report.Number(r.Calls), report.Number(r.Timers), report.Number(r.Steps))
	fmt.Fprintf(&b, "hash       %s\n", r.Hash)
	if r.Finding == nil {
		b.WriteString("found      nothing: every invariant held\n")
	} else {
		fmt.Fprintf(&b, "found      %v\nOr run it: watchmill sim explore --seed %d\n", r.Finding, r.Finding.Seed)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
