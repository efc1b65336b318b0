package load

import (
	"iter"

	"github.com/watchmill/watchmill/sim/judge"
)

// maxBroken is how many broken invariants a report holds.
const maxBroken = 10

// judgement is what the trails add up to.
type judgement struct {
	verdicts map[*watcher]judge.Verdict
	lost     uint64
	broken   []string
}

// expect works out what every watcher has to see. Everything is written.
func (r *run) expect() {
	selections := func(yield func(judge.Selection) bool) {
		for w := range r.everyWatcher() {
			if !yield(judge.Selection(w.sel)) {
				return
			}
		}
	}
	r.expected = judge.Expect(selections, &r.ledger)
	for w := range r.everyWatcher() {
		if all := r.expected.Revisions(judge.Selection(w.sel)); len(all) > 0 {
			w.need = all[len(all)-1]
		}
	}
}

// judge compares every trail with what the watcher had to see.
func (r *run) judge() *judgement {
	if r.expected == nil { // interrupted before everything was written
		r.expect()
	}
	j := &judgement{verdicts: map[*watcher]judge.Verdict{}}
	for w := range r.everyWatcher() {
		w.trail.End()
		v := w.trail.Judge(r.expected, judge.Selection(w.sel))
		if w.read {
			v.Lost += w.trail.Outdated(r.expected, judge.Selection(w.sel))
		}
		j.verdicts[w] = v
		j.lost += v.Lost
		if v.Failure != nil && len(j.broken) < maxBroken {
			j.broken = append(j.broken, v.Failure.Error())
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
