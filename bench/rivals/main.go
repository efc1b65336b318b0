// Command rivals benchmarks watchmill against its rivals and prints one table.
//
//	go run . [--rounds 5] [--small] [--only W1,W4] [--json file] [--md file] [--plots dir]
//	go run . --earlier file [--rounds 5] [--only W1,W4]
//
//	bench: workloads, floors, watchmill ──┐
//	kube: the Kubernetes watch cache ─────┤
//	apiextensions: its server of CRDs ────┼──▶ compare.Run ──▶ Report ──▶ table, JSON, plots
//	buses: channels, NATS, … ─────────────┤        │
//	cluster: etcd, with its own client ───┘        │
//	                                               └──▶ this command again (apart.go)
//
// It is a module of its own, so that the main module requires none of the rivals.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
	"k8s.io/klog/v2"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/bench/compare"
	"github.com/watchmill/watchmill/bench/rivals/apiextensions"
	"github.com/watchmill/watchmill/bench/rivals/buses"
	"github.com/watchmill/watchmill/bench/rivals/cluster"
	"github.com/watchmill/watchmill/bench/rivals/disk"
	"github.com/watchmill/watchmill/bench/rivals/kube"
	"github.com/watchmill/watchmill/bench/rivals/plots"
)

// command is the command line.
type command struct {
	Rounds int      `default:"5" help:"How often to run each; five or more for stable medians."`
	Small  bool     `help:"Run tiny sizes once, to see that everything works, not to measure."`
	Only   []string `help:"Run only these workloads, such as W1,W4." placeholder:"ID"`
	JSON   string   `help:"Write every figure to this file." placeholder:"FILE"`
	MD     string   `help:"Write the table to this file, between its marks if it exists." placeholder:"FILE"`
	Plots  string   `help:"Write plots as SVG to this directory." placeholder:"DIR"`

	Earlier string `help:"Compare with this build of the command, made from an earlier revision, instead of the rivals." placeholder:"FILE" type:"existingfile"`

	// Apart and As are internal: see apart.go.
	Apart string `hidden:""`
	As    string `hidden:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if bench.RunAsClients(ctx) {
		return
	}
	var c command
	cli := kong.Parse(&c, kong.Name("rivals"), kong.Description("Measures watchmill beside its competitors."))
	cli.FatalIfErrorf(c.run(ctx, os.Stdout))
}

// Validate refuses flags that cannot be; kong calls it.
func (c *command) Validate() error {
	if c.Rounds < 1 {
		return fmt.Errorf("--rounds is %d; it must be at least 1", c.Rounds)
	}
	if c.Earlier != "" && (c.MD != "" || c.Plots != "") {
		return errors.New("--earlier has no --md and no --plots, which are for the table of all rivals; use --json")
	}
	return nil
}

func (c *command) run(ctx context.Context, out io.Writer) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	if c.Apart != "" {
		return alone(ctx, plan, c.As, out)
	}
	plan.Apart, plan.Finished = c.apart, c.writeFiles
	report, err := compare.Run(ctx, plan)
	if err != nil {
		return err
	}
	return report.WriteMarkdown(out)
}

// writeFiles writes the files that the flags name.
func (c *command) writeFiles(report *compare.Report) error {
	if c.MD != "" {
		if err := report.WriteInto(c.MD); err != nil {
			return err
		}
	}
	if c.Plots != "" {
		if err := plots.Write(report, c.Plots); err != nil {
			return err
		}
	}
	return c.writeJSON(report)
}

func (c *command) plan() (compare.Plan, error) {
	quiet()
	only := c.Only
	if c.Apart != "" {
		only = []string{c.Apart}
	}
	workloads, err := bench.SelectFrom(workloads(), only)
	plan := compare.Plan{
		Workloads: workloads, Ours: bench.Watchmill(), Rivals: rivals(c.Small), Rounds: c.Rounds, Small: c.Small,
		Progress: func(workload, contender string, round int) {
			fmt.Fprintf(os.Stderr, "%s: %s, round %d\n", workload, contender, round+1)
		},
	}
	if c.Small {
		plan.Rounds = 1
	}
	if c.Earlier != "" {
		plan = againstEarlier(plan)
	}
	return plan, err
}

// workloads returns all workloads, including the one that needs a cluster.
func workloads() []bench.Workload { return append(bench.All(), cluster.Workloads()...) }

// rivals returns all rivals.
func rivals(small bool) []bench.Contender {
	warmUp := kube.WarmedUp
	if small {
		warmUp = kube.Started
	}
	return append(buses.All(), kube.Cacher(warmUp), kube.Informer(), disk.Pebble(), apiextensions.Server())
}

// quiet keeps the rivals from logging each watcher that they close, which would
// slow them down.
func quiet() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

func (c *command) writeJSON(report *compare.Report) error {
	if c.JSON == "" {
		return nil
	}
	f, err := os.Create(c.JSON)
	if err != nil {
		return err
	}
	if err := report.WriteJSON(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
