package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/clients"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Replayed is the result of [Replay].
type Replayed struct {
	// Interrupted: ctx was done before the end. Then nothing was compared, and the
	// counts are those so far.
	Interrupted bool

	// Written is how many of the changes were written, and NoOps how many of these
	// changed nothing: deletions of missing files, and puts of the same version.
	Written, NoOps int
	// Continued is how many of the changes were in storage when a replay was
	// continued, and DeliveredBefore how many events had been received.
	Continued       int
	DeliveredBefore uint64
	// Took is the time from the first write until the last watcher had read everything.
	Took time.Duration
	// Delivered is how many events the watchers received, and Conflated how many
	// of them stand for several.
	Delivered, Conflated uint64
	// Latency is that of events other than initial ones, of watchers that are not
	// slow. It is not measured of informers and object caches.
	Latency Latency

	// Watchers is the number of watchers. Resumed is how often they disconnected and
	// resumed, and Relisted how often they had to list again to do so.
	Watchers, Resumed, Relisted int
	// Lost are the watchers whose watches ended without being stopped.
	Lost []Loss
	// Misfits is how many events did not fit the watcher's state, because an earlier one
	// was missing or repeated.
	Misfits int

	// Objects is how many selected objects the backend has at the end.
	Objects int
	// Equal is how many watchers have the same objects as the backend.
	Equal int
	// Differences has the first difference of each pair of states that should be
	// equal, up to ten.
	Differences []string
	// State is the final state of the first watcher that is not lost; nil if there
	// is none, or the run was interrupted.
	State trace.State
}

// Latency summarizes the time from storing a change until the consumer had its event.
type Latency struct {
	// Events is how many were measured.
	Events uint64
	// P50 and P99 are the median and the 99th percentile, with a precision of one
	// percent. All are zero if nothing was measured.
	P50, P99, Max time.Duration
}

// Loss is how many watchers were lost for one reason.
type Loss struct {
	// Reason is a word or two: "expired", "slow consumer", …
	Reason   string
	Watchers int
	// Err is the error of the first of these watchers.
	Err error
}

// OK reports whether the run was completed with every watcher equal and none lost.
func (r *Replayed) OK() bool {
	return !r.Interrupted && len(r.Lost) == 0 && len(r.Differences) == 0 && r.Misfits == 0 && r.Equal == r.Watchers
}

// outcomes returns the result of every watcher.
func (r *run) outcomes() (all []*clients.Outcome) {
	for w := range r.everyWatcher() {
		w.trail.End()
		v := w.trail.Judge(r.expected, judge.Selection(w.sel))
		o := &clients.Outcome{
			Number: len(all), State: w.trail.Objects(), Resumed: w.reconnects, Relisted: w.relists,
			Conflated: w.trail.Conflated, Misfits: int(w.trail.Disordered + v.Lost), Lost: w.lost,
		}
		if v.Failure != nil && o.Misfits == 0 {
			o.Misfits = 1
		}
		o.Delivered.Store(w.delivered.Load())
		all = append(all, o)
	}
	for _, c := range r.history.clients {
		all = append(all, c.Result())
	}
	return all
}

// replayed makes the result, and compares the states if the run was completed.
func (r *run) replayed(ctx context.Context) (*Replayed, error) {
	h := r.history
	if r.expected == nil { // interrupted before everything was written
		r.expect()
	}
	all := r.outcomes()
	rep := &Replayed{
		Interrupted: ctx.Err() != nil, Written: int(h.written.Load()), NoOps: h.noOps, Took: r.took,
		Watchers: h.Watchers, Lost: losses(all), Latency: r.handedOver(), Continued: h.start,
	}
	if h.Resume != nil {
		for i := range h.Resume.Watchers {
			rep.DeliveredBefore += h.Resume.Watchers[i].Delivered
		}
	}
	for _, o := range all {
		rep.Delivered += o.Delivered.Load()
		rep.Conflated += o.Conflated
		rep.Resumed += o.Resumed
		rep.Relisted += o.Relisted
		rep.Misfits += o.Misfits
	}
	if rep.Interrupted {
		return rep, nil
	}
	return rep, r.compare(ctx, rep, all)
}

// handedOver returns the latency of watchers that are not slow.
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

// lossReasons are the names of the errors with which watches end.
var lossReasons = errorNames{
	{engine.ErrExpired, "expired"},
	{engine.ErrSlowConsumer, "slow consumer"},
	{engine.ErrDeadline, "deadline"},
	{engine.ErrEngineClosed, "engine closed"},
	{engine.ErrNotReady, "not ready"},
}

func lossReason(err error) string {
	if earlier, ok := errors.AsType[*EarlierLoss](err); ok {
		return earlier.Reason
	}
	return lossReasons.of(err)
}

// losses counts the lost watchers by reason, the most frequent first.
func losses(all []*clients.Outcome) (lost []Loss) {
	for _, o := range all {
		if o.Lost == nil {
			continue
		}
		reason := lossReason(o.Lost)
		i := slices.IndexFunc(lost, func(l Loss) bool { return l.Reason == reason })
		if i < 0 {
			i = len(lost)
			lost = append(lost, Loss{Reason: reason, Err: o.Lost})
		}
		lost[i].Watchers++
	}
	slices.SortStableFunc(lost, func(a, b Loss) int { return cmp.Compare(b.Watchers, a.Watchers) })
	return lost
}

// maxDifferences is how many differences a report holds.
const maxDifferences = 10

func (r *Replayed) differ(what, where string) {
	if len(r.Differences) < maxDifferences {
		r.Differences = append(r.Differences, what+": "+where)
	}
}

// compare compares the backend's state with that of the history, and the states of the
// engine and of the watchers with the backend's.
func (r *run) compare(ctx context.Context, rep *Replayed, all []*clients.Outcome) error {
	h := r.history
	rep.Objects = len(h.finalState)
	final := trace.State{}
	for _, c := range h.Changes {
		final.Apply(c)
	}
	if d := states.TraceDifference(h.finalState, r.selected(final)); d != "" {
		rep.differ("the backend and the trace", d)
	}
	for _, view := range []struct {
		name string
		read engine.Read
	}{{"cached", engine.Cached()}, {"latest", engine.Latest()}} {
		list, err := r.engine.List(ctx, engine.ListOptions{Fields: h.Fields, Read: view.read})
		if err != nil {
			return err
		}
		if d := states.Difference(states.Of(list.Items), h.finalState); d != "" {
			rep.differ("the engine ("+view.name+") and the backend", d)
		}
	}
	for _, o := range all {
		rep.compareOutcome(o, h.finalState)
	}
	for _, inf := range h.informers {
		r.compareLister(rep, inf)
	}
	return nil
}

// compareOutcome compares a watcher's state, unless it is lost.
func (r *Replayed) compareOutcome(o *clients.Outcome, truth states.Objects) {
	if o.Lost != nil {
		return
	}
	if r.State == nil {
		r.State = make(trace.State, len(o.State))
		for key, object := range o.State {
			r.State[key] = object.Value.Version
		}
	}
	if d := states.Difference(o.State, truth); d != "" {
		r.differ(fmt.Sprintf("watcher %d and the backend", o.Number), d)
		return
	}
	r.Equal++
}

// compareLister compares an informer's state with the backend's.
func (r *run) compareLister(rep *Replayed, inf *informer.SharedInformer[content.Item]) {
	listed := states.Objects{}
	for _, o := range inf.List(nil) {
		if store.Matches(r.history.selected, store.Header(o)) {
			listed[o.Key] = o
		}
	}
	if d := states.Difference(listed, r.history.finalState); d != "" {
		rep.differ(fmt.Sprintf("the lister of %s and the backend", inf.Name()), d)
	}
}

// backendState returns the selected objects of the backend, without the engine.
func (r *run) backendState(ctx context.Context) (states.Objects, error) {
	list, err := r.storage.List(ctx, backend.ListOptions{})
	if err != nil {
		return nil, err
	}
	selected := slices.DeleteFunc(list.Items, func(o *store.Object) bool { return !store.Matches(r.history.selected, o) })
	return states.Of(store.AsObjects[engine.Object[content.Item]](selected)), nil
}

// selected returns the part of a trace's state that the watchers select.
func (r *run) selected(state trace.State) trace.State {
	part := trace.State{}
	for key, version := range state {
		if r.selects(key) {
			part[key] = version
		}
	}
	return part
}

// selects reports whether the watchers of a history select the file that a key
// names.
func (r *run) selects(key string) bool {
	if r.history.selected.Everything() {
		return true
	}
	schema := content.Config(r.plan).Schema()
	o := schema.New()
	o.Key = key
	*schema.Pointer(o).(*content.Item) = content.NewMaker(&r.plan.Objects, 0, 0).File(key, "")
	schema.Describe(o)
	return store.Matches(r.history.selected, o)
}
