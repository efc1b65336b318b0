package main

import (
	"context"
	"os"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
)

// replayCommand is the flags of watchmill replay.
type replayCommand struct {
	File string `arg:"" help:"The trace: NDJSON, gzip or not, with lines such as {\"t\":1460920094,\"op\":\"put\",\"key\":\"main.go\",\"version\":\"2d04\"}."`

	Watchers  int           `default:"100" placeholder:"N" help:"How many watchers there are (${default})."`
	Via       load.Via      `default:"watch" placeholder:"WAY" help:"How watchers see the objects: watch; queue, from a DeltaFIFO that fills an indexer; informer, as its handlers; or objectcache, by a reference to each of them (${default})."`
	Speed     speed         `default:"max" placeholder:"FACTOR" help:"How many times faster than it happened, such as 1000x, or max (${default})."`
	Policy    engine.Policy `default:"park" placeholder:"POLICY" help:"What happens to watchers that fall behind: park, terminate or conflate (${default})."`
	Slow      int           `default:"0" placeholder:"N" help:"So many of the watchers read at most 1,000 events per second (${default})."`
	Reconnect int           `default:"0" placeholder:"R" help:"Each watcher breaks off R times, at random points, and resumes (${default})."`
	Select    string        `placeholder:"SELECTOR" help:"What the watchers select, such as dir=actor,ext=go: dir is the key's directory, ext what follows the last dot."`
	Window    int           `default:"0" placeholder:"N" help:"How many events the engine keeps to resume from; 0 for its default of about a million."`
	Seed      uint64        `default:"1" help:"Decides where watchers break off (${default})."`
	State     string        `placeholder:"FILE" help:"Write the final state, as one watcher has seen it, as tab-separated values."`
	KeepGoing bool          `help:"Leave out bad lines, and count them, instead of refusing the trace."`
}

// Run replays, shows progress on stderr and the report on stdout.
func (c *replayCommand) Run(ctx context.Context, t *terminal) error {
	progress := newProgress(t.stderr)
	report, err := replay.Run(ctx, replay.Options{
		File: c.File, KeepGoing: c.KeepGoing, Speed: float64(c.Speed),
		Watchers: c.Watchers, Via: c.Via, Select: c.Select, Policy: c.Policy, Slow: c.Slow,
		Reconnect: c.Reconnect, Seed: c.Seed, Window: c.Window,
		OnProgress: progress.show, ProgressEvery: progress.every,
	})
	progress.end()
	if err != nil {
		return err
	}
	if err := report.WriteText(t.stdout); err != nil {
		return err
	}
	switch {
	case report.Interrupted:
		return context.Canceled
	case c.State != "" && report.State != nil:
		if err := c.writeState(report); err != nil {
			return err
		}
	}
	if !report.OK() {
		return errFailed
	}
	return nil
}

func (c *replayCommand) writeState(report *replay.Report) error {
	f, err := os.Create(c.State)
	if err != nil {
		return err
	}
	if err := report.State.WriteTSV(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
