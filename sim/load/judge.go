package load

import (
	"fmt"
	"slices"
)

// maxBroken is how many broken invariants a report holds.
const maxBroken = 10

// judgement is what the trails add up to.
type judgement struct {
	verdicts map[*watcher]verdict
	lost     uint64
	broken   []string
}

// expect works out what every watcher has to see. Everything is written.
func (r *run) expect() {
	r.audiences = newAudiences()
	for w := range r.everyWatcher() {
		r.audiences.of(w.sel)
	}
	r.audiences.judge(r.storage.ledger)
}

// judge compares every trail with what the watcher had to see.
func (r *run) judge() *judgement {
	if r.audiences == nil { // interrupted before everything was written
		r.expect()
	}
	j := &judgement{verdicts: map[*watcher]verdict{}}
	for w := range r.everyWatcher() {
		w.trail.end()
		v := r.audiences.of(w.sel).verdict(&w.trail, r.storage.ledger.gaps)
		j.verdicts[w] = v
		j.lost += v.lost
		if v.broken != "" && len(j.broken) < maxBroken {
			j.broken = append(j.broken, fmt.Sprintf("%s %s", w.name(), v.broken))
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
func (r *run) everyWatcher() func(yield func(*watcher) bool) {
	return func(yield func(*watcher) bool) {
		for _, g := range r.groups {
			if !every(g.all, yield) {
				return
			}
		}
	}
}

func every(all []*watcher, yield func(*watcher) bool) bool {
	return !slices.ContainsFunc(all, func(w *watcher) bool { return !yield(w) })
}

// callersOf returns the group of writers or readers of that name.
func (r *run) callersOf(kind, name string) *callers {
	for _, g := range r.callers {
		if g.kind == kind && g.name == name {
			return g
		}
	}
	return nil
}

// groupCallers makes the groups of writers and readers.
func (r *run) groupCallers() {
	for _, w := range r.plan.Writers {
		newCallers(r, "writers", w.Name, w.Count)
	}
	for _, rd := range r.plan.Readers {
		newCallers(r, "readers", rd.Name, rd.Count)
	}
}
