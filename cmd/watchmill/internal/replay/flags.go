package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
)

// Flags is the command line of a replay, for every program that has it.
type Flags struct {
	File string `arg:"" help:"The trace: NDJSON, gzip or not, with lines such as {\"t\":1460920094,\"op\":\"put\",\"key\":\"main.go\",\"version\":\"2d04\"}."`

	Watchers  int           `default:"100" placeholder:"N" help:"How many watchers there are (${default})."`
	Via       load.Via      `default:"watch" placeholder:"WAY" help:"How watchers see the objects: watch; queue, from a DeltaFIFO that fills an indexer; informer, as its handlers; or objectcache, by a reference to each of them (${default})."`
	Backend   string        `default:"memory" placeholder:"STORAGE" help:"Where to store the objects, which must be new: memory, bolt:FILE, or, if the program is watchmill-etcd, etcd:HOST:PORT[/PREFIX] (${default})."`
	Speed     Speed         `default:"max" placeholder:"FACTOR" help:"How many times faster than it happened, such as 1000x, or max (${default})."`
	Policy    engine.Policy `default:"park" placeholder:"POLICY" help:"The policy for watchers that fall behind: park, terminate or conflate (${default})."`
	Slow      int           `default:"0" placeholder:"N" help:"How many of the watchers read at most 1,000 events per second (${default})."`
	Reconnect int           `default:"0" placeholder:"R" help:"How often each watcher disconnects, at random points, and resumes (${default})."`
	Select    string        `placeholder:"SELECTOR" help:"What the watchers select, such as dir=actor,ext=go: dir is the key's directory, ext what follows the last dot."`
	Window    int           `default:"0" placeholder:"N" help:"How many events the engine keeps to resume from; 0 for its default of about a million."`
	Seed      uint64        `default:"1" help:"The seed of the points where watchers disconnect (${default})."`
	State     string        `placeholder:"FILE" help:"Write the final state of one watcher as tab-separated values."`
	KeepGoing bool          `help:"Skip and count bad lines, instead of refusing the trace."`
}

// Options returns the options of the flags, for a program that has these backends. show
// is called periodically with the progress.
func (f *Flags) Options(backends Backends, show func(load.ReplayProgress), every time.Duration) (Options, error) {
	open, err := backends.find(f.Backend)
	return Options{
		File: f.File, KeepGoing: f.KeepGoing, Speed: float64(f.Speed),
		Watchers: f.Watchers, Via: f.Via, Select: f.Select, Policy: f.Policy, Slow: f.Slow,
		Reconnect: f.Reconnect, Seed: f.Seed, Window: f.Window, Open: open,
		OnProgress: show, ProgressEvery: every,
	}, err
}

// ErrFailed is the error of a replay that failed; its report says why.
var ErrFailed = errors.New("the run did not end well")

// Finish writes the report to out and the final state to its file. It returns
// [ErrFailed] if the replay did not end well, and [context.Canceled] if it was
// interrupted.
func (f *Flags) Finish(out io.Writer, report *Report) error {
	if err := report.WriteText(out); err != nil {
		return err
	}
	if err := f.writeState(report); err != nil {
		return err
	}
	switch {
	case report.Interrupted:
		return context.Canceled
	case !report.OK():
		return ErrFailed
	}
	return nil
}

// writeState writes the final state to its file, if there are both.
func (f *Flags) writeState(report *Report) error {
	if f.State == "" || report.State == nil || report.Interrupted {
		return nil
	}
	out, err := os.Create(f.State)
	if err != nil {
		return err
	}
	if err := report.State.WriteTSV(out); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// Speed is a factor of real time; zero is as fast as possible.
type Speed float64

// UnmarshalText reads "max", or a factor such as "1000x" or "0.5".
func (s *Speed) UnmarshalText(text []byte) error {
	if string(text) == "max" {
		*s = 0
		return nil
	}
	factor, err := strconv.ParseFloat(strings.TrimSuffix(string(text), "x"), 64)
	if err != nil || !(factor > 0) || math.IsInf(factor, 1) {
		return fmt.Errorf("%q is no speed: give a factor above 0, such as 1000x, or max", text)
	}
	*s = Speed(factor)
	return nil
}
