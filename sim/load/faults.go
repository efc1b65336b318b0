package load

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// faults injects the faults of the timeline. It belongs to one goroutine, and its fields are
// valid when that has ended.
type faults struct {
	run *run
	// steps are the starts and ends of faults, in order.
	steps    []step
	happened []*occurrence
}

// occurrence is a fault that has begun.
type occurrence struct {
	report.Fault
	of *scenario.Fault
	// lasting is the fault of the storage, nil for one of a moment, and panicked counts the
	// handlers that have panicked.
	lasting  *faulty.Fault
	panicked atomic.Uint64
}

// step is the start of a fault, or the end of one that lasts.
type step struct {
	at     time.Duration
	moment int // index in the timeline
	ends   bool
}

func newFaults(r *run) *faults {
	f := &faults{run: r}
	for i, m := range r.plan.Timeline {
		f.steps = append(f.steps, step{at: m.At, moment: i})
		if r.plan.Faults[m.Fault].Kind.Lasts() {
			f.steps = append(f.steps, step{at: m.Until, moment: i, ends: true})
		}
	}
	slices.SortStableFunc(f.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return f
}

// inject injects the faults when they are due. At the end, or when ctx is done, it removes
// all that still last.
func (f *faults) inject(ctx context.Context) {
	lasting := map[int]*occurrence{} // by moment
	defer func() {
		for _, o := range lasting {
			f.end(o)
		}
	}()
	for _, s := range f.steps {
		if f.run.stopwatch.Until(ctx, f.run.stopwatch.At(s.at)) != nil {
			return
		}
		if s.ends {
			f.end(lasting[s.moment])
			delete(lasting, s.moment)
			continue
		}
		fault := &f.run.plan.Faults[f.run.plan.Timeline[s.moment].Fault]
		now := f.run.stopwatch.Elapsed().Seconds()
		o := &occurrence{of: fault, Fault: report.Fault{Name: fault.Name, Kind: string(fault.Kind), At: now, Until: now}}
		f.happened = append(f.happened, o)
		if fault.Kind.Lasts() {
			o.lasting = f.run.storage.Begin(fault)
			lasting[s.moment] = o
			continue
		}
		o.Struck = uint64(f.injectOnce(ctx, o, s.moment))
	}
}

// end ends a fault that lasts.
func (f *faults) end(o *occurrence) {
	f.run.storage.End(o.lasting)
	o.Until, o.Struck = f.run.stopwatch.Elapsed().Seconds(), o.lasting.Hits()
}

// reports returns what happened, and remarks on the faults that struck nothing each time, and so
// have tested nothing. It is called when all handlers have ended.
func (f *faults) reports() (happened []report.Fault, remarks []string) {
	struck := map[*scenario.Fault]uint64{}
	for _, o := range f.happened {
		o.Struck += o.panicked.Load()
		happened = append(happened, o.Fault)
		struck[o.of] += o.Struck
	}
	for i := range f.run.plan.Faults {
		fault := &f.run.plan.Faults[i]
		if n, begun := struck[fault]; begun && n == 0 {
			remarks = append(remarks, fmt.Sprintf("the fault %s, at %v, struck nothing", fault.Name, fault.At))
		}
	}
	return happened, remarks
}

// injectOnce injects a fault that does not last, and returns how many watches or watchers it
// hit; for a compaction or a jump of the clock, one. Handlers that are to panic are counted
// when they do.
func (f *faults) injectOnce(ctx context.Context, o *occurrence, moment int) int {
	switch o.of.Kind {
	case scenario.FaultBreak:
		return f.run.storage.Break()
	case scenario.FaultRelist:
		return f.run.storage.ExpireWatches()
	case scenario.FaultCompact:
		if err := f.run.storage.Forget(ctx); err != nil {
			f.run.failure(o.Name, err)
			return 0
		}
		return 1
	case scenario.FaultJump:
		f.run.clock.Jump(o.of.Jump)
		return 1
	}
	return f.disturbWatchers(o, moment)
}

// disturbWatchers makes the fault's share of watchers panic or reconnect, and returns how many
// reconnect.
func (f *faults) disturbWatchers(o *occurrence, moment int) (struck int) {
	fault := o.of
	for w := range f.run.everyWatcher() {
		if !f.hits(fault, moment, w) {
			continue
		}
		switch interrupt := w.interrupt.Load(); {
		case fault.Kind == scenario.FaultPanic && w.group.spec.Consumer == scenario.Handler:
			w.panicNext.Store(&o.panicked)
		case fault.Kind == scenario.FaultReconnect && interrupt != nil:
			(*interrupt)(errReconnect)
			struck++
		}
	}
	return struck
}

// hits reports whether the fault hits a watcher. The result depends only on the seed, the
// fault's group and share, the moment and the watcher's name.
func (f *faults) hits(fault *scenario.Fault, moment int, w *watcher) bool {
	if fault.Group != "" && fault.Group != w.group.spec.Name {
		return false
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(w.name())) // cannot fail
	c := scenario.Randomly(fault.Share, f.run.plan.Seed+h.Sum64())
	return fault.Share >= 1 || c.Holds("", uint64(moment))
}
