package replay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/trace"
)

// Report is what happened in a run.
type Report struct {
	File string
	// Interrupted: ctx was done before the end. Then nothing was compared, and
	// the figures are of what ran so far.
	Interrupted bool

	// Changes is how many the trace has, Written how many of them were made, and
	// NoOps how many of these made no difference: they deleted what was not
	// there, or put what was.
	Changes, Written, NoOps int
	// BadLines is how many lines were left out, the rest of a file that cannot be
	// read counting as one; Errors is what was wrong with the
	// first [MaxErrors] of them.
	BadLines int
	Errors   []error

	// Took is from the first write until the last watcher had read all.
	Took time.Duration
	// Delivered is how many events the watchers were given, Conflated how many
	// of them stand for several.
	Delivered, Conflated uint64
	Latency              Latency

	// Watchers is how many there were. Resumed is how often they broke off and
	// resumed, Relisted how often they had to list again for that.
	Watchers, Resumed, Relisted int
	// Lost are the watchers that ended otherwise than by themselves.
	Lost []Loss
	// Misfits is how many events did not fit the state of the watcher that got
	// them: there was one too few or one too many.
	Misfits int

	// Objects is how many are left in the backend, of those that are selected.
	Objects int
	// Equal is how many watchers have the same ones.
	Equal int
	// Differences says where what should be equal is not: the first difference
	// of each pair, up to [MaxErrors].
	Differences []string
	// State is the final state as one watcher has seen it: the first that is not
	// lost. Nil if there is none, or the run was interrupted.
	State trace.State
}

// Loss is how many watchers were lost for one reason.
type Loss struct {
	// Reason is a word or two: "expired", "slow consumer", …
	Reason   string
	Watchers int
	// Err is why the first of them ended.
	Err error
}

// OK reports whether the run came to its end with every watcher equal and none
// lost. What an interrupted run would have come to is not known.
func (r *Report) OK() bool {
	return !r.Interrupted && len(r.Lost) == 0 && len(r.Differences) == 0 && r.Misfits == 0 && r.Equal == r.Watchers
}

// PerSecond returns how many of n there were per second of the run, zero if it
// took no time.
func (r *Report) PerSecond(n uint64) float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(n) / r.Took.Seconds()
}

// report makes the report, and compares if the run came to its end.
func (r *run) report(ctx context.Context) (*Report, error) {
	report := &Report{
		File: r.opts.File, Interrupted: ctx.Err() != nil,
		Changes: len(r.input.changes), Written: int(r.written.Load()), NoOps: r.noOps,
		BadLines: r.input.bad, Errors: r.input.errs,
		Took: r.took, Delivered: r.delivered(), Latency: r.latencies.sum(),
		Watchers: r.opts.Watchers, Lost: r.losses(),
	}
	for _, watcher := range r.consumers {
		c := watcher.result()
		report.Conflated += c.conflated
		report.Resumed += c.resumed
		report.Relisted += c.relisted
		report.Misfits += c.misfits
	}
	if report.Interrupted {
		return report, nil
	}
	return report, r.compare(ctx, report)
}

// lossReasons names the ends of watches.
var lossReasons = []struct {
	err  error
	name string
}{
	{engine.ErrExpired, "expired"},
	{engine.ErrSlowConsumer, "slow consumer"},
	{engine.ErrDeadline, "deadline"},
	{engine.ErrEngineClosed, "engine closed"},
	{engine.ErrNotReady, "not ready"},
}

func lossReason(err error) string {
	for _, r := range lossReasons {
		if errors.Is(err, r.err) {
			return r.name
		}
	}
	return "other"
}

// losses counts the lost watchers by reason, the most frequent first.
func (r *run) losses() []Loss {
	var losses []Loss
	for _, watcher := range r.consumers {
		c := watcher.result()
		if c.lost == nil {
			continue
		}
		reason := lossReason(c.lost)
		i := slices.IndexFunc(losses, func(l Loss) bool { return l.Reason == reason })
		if i < 0 {
			i = len(losses)
			losses = append(losses, Loss{Reason: reason, Err: c.lost})
		}
		losses[i].Watchers++
	}
	slices.SortStableFunc(losses, func(a, b Loss) int { return cmp.Compare(b.Watchers, a.Watchers) })
	return losses
}
