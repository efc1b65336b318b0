package load

import (
	"fmt"
	"iter"

	"github.com/watchmill/watchmill/sim/load/internal/audit"
	"github.com/watchmill/watchmill/sim/scenario"
)

// maxBroken is how many broken invariants a report holds.
const maxBroken = 10

// judgement is what the trails add up to.
type judgement struct {
	verdicts map[*watcher]audit.Verdict
	lost     uint64
	broken   []string
}

// expect works out what every watcher has to see. Everything is written.
func (r *run) expect() {
	selections := func(yield func(scenario.Selection) bool) {
		for w := range r.everyWatcher() {
			if !yield(w.sel) {
				return
			}
		}
	}
	r.expected = audit.Expect(selections, &r.ledger)
	for w := range r.everyWatcher() {
		if all := r.expected.Revisions(w.sel); len(all) > 0 {
			w.need = all[len(all)-1]
		}
	}
}

// judge compares every trail with what the watcher had to see.
func (r *run) judge() *judgement {
	if r.expected == nil { // interrupted before everything was written
		r.expect()
	}
	j := &judgement{verdicts: map[*watcher]audit.Verdict{}}
	for w := range r.everyWatcher() {
		w.trail.End()
		v := r.expected.Verdict(w.sel, &w.trail)
		if w.read {
			v.Lost += r.expected.Ignorance(w.sel, &w.trail)
		}
		j.verdicts[w] = v
		j.lost += v.Lost
		if v.Broken != "" && len(j.broken) < maxBroken {
			j.broken = append(j.broken, fmt.Sprintf("%s %s", w.name(), v.Broken))
		}
	}
	for _, g := range r.mirrors {
		if broken := g.faulty(); broken != "" {
			j.broken = append(j.broken, broken)
		}
	}
	return j
}

// everyWatcher ranges over all watchers, group by group.
func (r *run) everyWatcher() iter.Seq[*watcher] {
	return func(yield func(*watcher) bool) {
		for _, g := range r.groups {
			for _, w := range g.all {
				if !yield(w) {
					return
				}
			}
		}
	}
}
