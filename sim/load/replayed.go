package load

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/trace"
)

// Replayed is what came of a history.
type Replayed struct {
	// Interrupted: ctx was done before the end. Then nothing was compared, and
	// the figures are of what ran so far.
	Interrupted bool

	// Written is how many of the changes were made, and NoOps how many of these
	// made no difference: they deleted what was not there, or put what was.
	Written, NoOps int
	// Took is from the first write until the last watcher had read all.
	Took time.Duration
	// Delivered is how many events the watchers were given, Conflated how many
	// of them stand for several.
	Delivered, Conflated uint64
	// Latency is that of events as they happened, for watchers at full speed.
	Latency Latency

	// Watchers is how many there were. Resumed is how often they broke off and
	// resumed, Relisted how often they had to list again for that.
	Watchers, Resumed, Relisted int
	// Lost are the watchers that ended otherwise than by themselves.
	Lost []Loss
	// Misfits is how many events did not fit what the watcher that got them had
	// seen before: there was one too few or one too many.
	Misfits int

	// Objects is how many are left in the backend, of those that are selected.
	Objects int
	// Equal is how many watchers have the same ones.
	Equal int
	// Differences says where what should be equal is not: the first difference
	// of each pair, up to ten.
	Differences []string
	// State is the final state as one watcher has seen it: the first that is not
	// lost. Nil if there is none, or the run was interrupted.
	State trace.State
}

// Latency is the time from commit to consumer.
type Latency struct {
	// Events is how many were measured.
	Events uint64
	// P50 and P99 are the median and the 99th percentile, to one percent. All are zero if nothing was measured.
	P50, P99, Max time.Duration
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
func (r *Replayed) OK() bool {
	return !r.Interrupted && len(r.Lost) == 0 && len(r.Differences) == 0 && r.Misfits == 0 && r.Equal == r.Watchers
}

// outcome is what became of a watcher. It belongs to the watcher's goroutine
// until that has ended, except for what is atomic.
type outcome struct {
	number int
	// state is what it has seen.
	state objects

	delivered         atomic.Uint64
	resumed, relisted int
	conflated         uint64
	// misfits is how often what it got did not fit what it had.
	misfits int
	// lost is why it ended, if that was not its own doing.
	lost error
}

func (o *outcome) result() *outcome { return o }

// outcomes returns what became of every watcher.
func (r *run) outcomes() (all []*outcome) {
	for w := range r.everyWatcher() {
		w.trail.End()
		v := w.trail.Judge(r.expected, judge.Selection(w.sel))
		o := &outcome{
			number: len(all), state: w.trail.Objects(), resumed: w.reconnects, relisted: w.relists,
			conflated: w.trail.Conflated, misfits: int(w.trail.Disordered + v.Lost), lost: w.lost,
		}
		if v.Failure != nil && o.misfits == 0 {
			o.misfits = 1
		}
		o.delivered.Store(w.delivered.Load())
		all = append(all, o)
	}
	for _, other := range r.history.others {
		all = append(all, other.result())
	}
	return all
}

// replayed makes the report, and compares if the run came to its end.
func (r *run) replayed(ctx context.Context) (*Replayed, error) {
	h := r.history
	if r.expected == nil { // interrupted before everything was written
		r.expect()
	}
	all := r.outcomes()
	rep := &Replayed{
		Interrupted: ctx.Err() != nil, Written: int(h.written.Load()), NoOps: h.noOps, Took: r.took,
		Watchers: h.Watchers, Lost: losses(all), Latency: r.handedOver(),
	}
	for _, o := range all {
		rep.Delivered += o.delivered.Load()
		rep.Conflated += o.conflated
		rep.Resumed += o.resumed
		rep.Relisted += o.relisted
		rep.Misfits += o.misfits
	}
	if rep.Interrupted {
		return rep, nil
	}
	return rep, r.compare(ctx, rep, all)
}

// handedOver sums up the latencies of watchers at full speed.
func (r *run) handedOver() Latency {
	r.sampler.drain()
	at := func(percentile float64) time.Duration {
		return time.Duration(r.sampler.handed.ValueAtPercentile(percentile)) * time.Microsecond
	}
	return Latency{
		Events: uint64(r.sampler.handed.TotalCount()),
		P50:    at(50), P99: at(99), Max: time.Duration(r.sampler.handed.Max()) * time.Microsecond,
	}
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
func losses(all []*outcome) (lost []Loss) {
	for _, o := range all {
		if o.lost == nil {
			continue
		}
		reason := lossReason(o.lost)
		i := slices.IndexFunc(lost, func(l Loss) bool { return l.Reason == reason })
		if i < 0 {
			i = len(lost)
			lost = append(lost, Loss{Reason: reason, Err: o.lost})
		}
		lost[i].Watchers++
	}
	slices.SortStableFunc(lost, func(a, b Loss) int { return cmp.Compare(b.Watchers, a.Watchers) })
	return lost
}
