package load

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"time"

	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store/backend/faulty"
)

// faults makes the timeline happen. It belongs to one goroutine; what happened
// is read when that has ended.
type faults struct {
	run *run
	// turns are the beginnings and ends, in order.
	turns    []turn
	happened []report.Fault
}

// turn is when a fault begins, or one that lasts ends.
type turn struct {
	at     time.Duration
	moment int // index in the timeline
	ends   bool
}

func newFaults(r *run) *faults {
	f := &faults{run: r}
	for i, m := range r.plan.Timeline {
		f.turns = append(f.turns, turn{at: m.At, moment: i})
		if r.plan.Faults[m.Fault].Kind.Lasts() {
			f.turns = append(f.turns, turn{at: m.Until, moment: i, ends: true})
		}
	}
	slices.SortStableFunc(f.turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return f
}

// happen lets the faults happen when they are due. In the end none holds.
func (f *faults) happen(ctx context.Context) {
	holding := map[int]*faulty.Fault{} // by moment
	records := map[int]int{}           // likewise: index in happened
	defer func() {
		for moment, st := range holding {
			f.over(records[moment], st)
		}
	}()
	for _, t := range f.turns {
		if f.run.watch.until(ctx, f.run.watch.at(t.at)) != nil {
			return
		}
		fault := &f.run.plan.Faults[f.run.plan.Timeline[t.moment].Fault]
		if t.ends {
			f.over(records[t.moment], holding[t.moment])
			delete(holding, t.moment)
			continue
		}
		now := f.run.watch.elapsed().Seconds()
		records[t.moment] = len(f.happened)
		f.happened = append(f.happened, report.Fault{Name: fault.Name, Kind: string(fault.Kind), At: now, Until: now})
		if fault.Kind.Lasts() {
			holding[t.moment] = f.run.storage.Begin(fault)
			continue
		}
		f.happened[records[t.moment]].Struck = uint64(f.strike(ctx, fault, t.moment))
	}
}

// over ends a fault that holds.
func (f *faults) over(record int, st *faulty.Fault) {
	f.run.storage.End(st)
	f.happened[record].Until = f.run.watch.elapsed().Seconds()
	f.happened[record].Struck = st.Hits()
}

// strike does a fault of a moment, and returns how many watches it struck.
func (f *faults) strike(ctx context.Context, fault *scenario.Fault, moment int) int {
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
	return f.strikeWatchers(fault, moment)
}

// strikeWatchers has the fault's share of watchers panic or reconnect.
func (f *faults) strikeWatchers(fault *scenario.Fault, moment int) (struck int) {
	for _, g := range f.run.groups {
		if fault.Group != "" && fault.Group != g.spec.Name {
			continue
		}
		for _, w := range g.all {
			if !f.falls(fault, moment, w) {
				continue
			}
			switch kick := w.kick.Load(); {
			case fault.Kind == scenario.FaultPanic && g.spec.Consumer == scenario.Handler:
				w.panicNext.Store(true)
				struck++
			case fault.Kind == scenario.FaultReconnect && kick != nil:
				(*kick)(errReconnect)
				struck++
			}
		}
	}
	return struck
}

// falls reports whether the fault falls on a watcher: by the seed, the moment and
// the watcher alone.
func (f *faults) falls(fault *scenario.Fault, moment int, w *watcher) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(w.name())) // cannot fail
	c := scenario.Randomly(fault.Share, f.run.plan.Seed+h.Sum64())
	return fault.Share >= 1 || c.Holds("", uint64(moment))
}
