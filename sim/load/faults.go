package load

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
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
	steps []step
	// happened has what has happened, of the plan's faults with the indexes in of.
	happened []report.Fault
	of       []int
	// panicked counts the handlers that have panicked, by index in happened.
	panicked map[int]*atomic.Uint64
}

// step is the start of a fault, or the end of one that lasts.
type step struct {
	at     time.Duration
	moment int // index in the timeline
	ends   bool
}

func newFaults(r *run) *faults {
	f := &faults{run: r, panicked: map[int]*atomic.Uint64{}}
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
	active := map[int]*faulty.Fault{} // by moment
	records := map[int]int{}          // by moment: index in happened
	defer func() {
		for moment, begun := range active {
			f.end(records[moment], begun)
		}
	}()
	for _, s := range f.steps {
		if f.run.stopwatch.until(ctx, f.run.stopwatch.at(s.at)) != nil {
			return
		}
		if s.ends {
			f.end(records[s.moment], active[s.moment])
			delete(active, s.moment)
			continue
		}
		index := f.run.plan.Timeline[s.moment].Fault
		fault := &f.run.plan.Faults[index]
		now := f.run.stopwatch.elapsed().Seconds()
		record := len(f.happened)
		records[s.moment] = record
		f.of = append(f.of, index)
		f.happened = append(f.happened, report.Fault{Name: fault.Name, Kind: string(fault.Kind), At: now, Until: now})
		if fault.Kind.Lasts() {
			active[s.moment] = f.run.storage.Begin(fault)
			continue
		}
		f.happened[record].Struck = uint64(f.injectOnce(ctx, fault, s.moment))
	}
}

// end ends a fault that lasts.
func (f *faults) end(record int, fault *faulty.Fault) {
	f.run.storage.End(fault)
	f.happened[record].Until = f.run.stopwatch.elapsed().Seconds()
	f.happened[record].Struck = fault.Hits()
}

// reports returns what happened, and remarks on the faults that struck nothing each time, and so
// have tested nothing. It is called when all handlers have ended.
func (f *faults) reports() (happened []report.Fault, remarks []string) {
	struck := map[int]uint64{}
	for i := range f.happened {
		if panicked := f.panicked[i]; panicked != nil {
			f.happened[i].Struck = panicked.Load()
		}
		struck[f.of[i]] += f.happened[i].Struck
	}
	for _, index := range slices.Sorted(maps.Keys(struck)) {
		if fault := &f.run.plan.Faults[index]; struck[index] == 0 {
			remarks = append(remarks, fmt.Sprintf("the fault %s, at %v, struck nothing", fault.Name, fault.At))
		}
	}
	return f.happened, remarks
}

// injectOnce injects a fault that does not last, and returns how many watches or watchers it
// hit; for a compaction or a jump of the clock, one. Handlers that are to panic are counted
// when they do.
func (f *faults) injectOnce(ctx context.Context, fault *scenario.Fault, moment int) int {
	switch fault.Kind {
	case scenario.FaultBreak:
		return f.run.storage.Break()
	case scenario.FaultRelist:
		return f.run.storage.ExpireWatches()
	case scenario.FaultCompact:
		if err := f.run.storage.Forget(ctx); err != nil {
			f.run.failure(fault.Name, err)
			return 0
		}
		return 1
	case scenario.FaultJump:
		f.run.clock.jump(fault.Jump)
		return 1
	}
	return f.disturbWatchers(fault, moment)
}

// disturbWatchers makes the fault's share of watchers panic or reconnect, and returns how many
// reconnect.
func (f *faults) disturbWatchers(fault *scenario.Fault, moment int) (struck int) {
	panicked := &atomic.Uint64{}
	if fault.Kind == scenario.FaultPanic {
		f.panicked[len(f.happened)-1] = panicked
	}
	for _, g := range f.run.groups {
		if fault.Group != "" && fault.Group != g.spec.Name {
			continue
		}
		for _, w := range g.all {
			if !f.hits(fault, moment, w) {
				continue
			}
			switch interrupt := w.interrupt.Load(); {
			case fault.Kind == scenario.FaultPanic && g.spec.Consumer == scenario.Handler:
				w.panicNext.Store(panicked)
			case fault.Kind == scenario.FaultReconnect && interrupt != nil:
				(*interrupt)(errReconnect)
				struck++
			}
		}
	}
	return struck
}

// hits reports whether the fault hits a watcher. The result depends only on the seed, the
// fault's share, the moment and the watcher's name.
func (f *faults) hits(fault *scenario.Fault, moment int, w *watcher) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(w.name())) // cannot fail
	c := scenario.Randomly(fault.Share, f.run.plan.Seed+h.Sum64())
	return fault.Share >= 1 || c.Holds("", uint64(moment))
}
