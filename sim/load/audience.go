package load

import (
	"fmt"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
)

// audience is what everybody who selects the same had to see: the revisions, in
// order, and the sums of the first n of them.
type audience struct {
	labels      labels.Selector
	fields      fields.Selector
	prefix, key string

	revisions []store.Revision
	sums      []uint64
}

func newAudience(sel scenario.Selection) *audience {
	a := &audience{prefix: sel.Prefix, key: sel.Key, labels: labels.Everything(), fields: fields.Everything(), sums: []uint64{0}}
	// They have been parsed before, for the plan to be valid.
	if parsed, err := labels.Parse(sel.Labels); err == nil {
		a.labels = parsed
	}
	if parsed, err := fields.ParseSelector(sel.Fields); err == nil {
		a.fields = parsed
	}
	return a
}

// matches reports whether an object is selected; nil attributes are of none.
func (a *audience) matches(key string, attrs *attrs) bool {
	return attrs != nil && (a.key == "" || a.key == key) && store.HasPrefix(key, a.prefix) &&
		a.labels.Matches(attrs.labels) && a.fields.Matches(attrs.fields)
}

// expect notes that the audience had to see a revision.
func (a *audience) expect(rev store.Revision) {
	a.revisions = append(a.revisions, rev)
	a.sums = append(a.sums, a.sums[len(a.sums)-1]+scramble(rev))
}

// within returns how many revisions were to be seen in (after, through], and
// their sum.
func (a *audience) within(after, through store.Revision) (events, sum uint64) {
	above := func(rev store.Revision) int {
		return sort.Search(len(a.revisions), func(i int) bool { return a.revisions[i] > rev })
	}
	from, to := above(after), max(above(after), above(through))
	return uint64(to - from), a.sums[to] - a.sums[from]
}

// audiences are all of them, found by what they select.
type audiences struct {
	by map[scenario.Selection]*audience
	// exact are those that fix one field to a value, by field and value; keyed
	// those of one object. The others are asked one by one.
	exact  map[[2]string][]*audience
	fixed  []string
	keyed  map[string][]*audience
	others []*audience
}

func newAudiences() *audiences {
	return &audiences{by: map[scenario.Selection]*audience{}, exact: map[[2]string][]*audience{}, keyed: map[string][]*audience{}}
}

// of returns the audience that selects so.
func (as *audiences) of(sel scenario.Selection) *audience {
	if a := as.by[sel]; a != nil {
		return a
	}
	a := newAudience(sel)
	as.by[sel] = a
	if a.key != "" {
		as.keyed[a.key] = append(as.keyed[a.key], a)
		return a
	}
	for _, r := range a.fields.Requirements() {
		if value, exact := a.fields.RequiresExactMatch(r.Field); exact {
			as.exact[[2]string{r.Field, value}] = append(as.exact[[2]string{r.Field, value}], a)
			if !slices.Contains(as.fixed, r.Field) {
				as.fixed = append(as.fixed, r.Field)
			}
			return a
		}
	}
	as.others = append(as.others, a)
	return a
}

// judge goes through the ledger and has each audience expect what it had to see:
// a change of an object that it selects after the change, or before it.
func (as *audiences) judge(l *ledger) {
	l.sort()
	present := map[string]*attrs{}
	for _, e := range l.entries {
		before := present[e.key]
		if e.emitted {
			before = nil
		} else if present[e.key] = e.attrs; e.attrs == nil {
			delete(present, e.key)
		}
		for a := range as.near(e.key, before, e.attrs) {
			if a.matches(e.key, before) || a.matches(e.key, e.attrs) {
				a.expect(e.revision)
			}
		}
	}
}

// near returns the audiences that a change may concern, each once.
func (as *audiences) near(key string, before, after *attrs) map[*audience]struct{} {
	found := map[*audience]struct{}{}
	add := func(list []*audience) {
		for _, a := range list {
			found[a] = struct{}{}
		}
	}
	add(as.others)
	add(as.keyed[key])
	for _, attrs := range []*attrs{before, after} {
		if attrs == nil {
			continue
		}
		for _, field := range as.fixed {
			add(as.exact[[2]string{field, attrs.fields[field]}])
		}
	}
	return found
}

// verdict is what a trail is found to lack, or to have too much.
type verdict struct {
	lost   uint64
	broken string
}

// need returns the last revision that had to be seen, zero if there is none.
func (a *audience) need() store.Revision {
	if len(a.revisions) == 0 {
		return 0
	}
	return a.revisions[len(a.revisions)-1]
}

// due returns how many revisions of a stretch could be seen, and their sum: all
// that had to be, but for gaps.
func (a *audience) due(s stretch, gaps [][2]store.Revision) (events, sum uint64) {
	events, sum = a.within(s.after, s.through)
	for _, g := range gaps {
		missing, gone := a.within(max(g[0], s.after), min(g[1], s.through))
		events, sum = events-missing, sum-gone
	}
	return events, sum
}

// verdict compares a trail with what had to be seen.
func (a *audience) verdict(t *trail, gaps [][2]store.Revision) (v verdict) {
	v.broken = t.broken
	for _, s := range t.closed {
		events, sum := a.due(s, gaps)
		switch {
		case s.events < events:
			v.lost += events - s.events
		case s.events > events && v.broken == "":
			v.broken = excess(s, events)
		case s.events == events && s.sum != sum && v.broken == "":
			v.broken = others(s)
		}
	}
	return v
}

func excess(s stretch, expected uint64) string {
	return fmt.Sprintf("saw %d events in revisions %d to %d, of which %d are for it", s.events, s.after+1, s.through, expected)
}

func others(s stretch) string {
	return fmt.Sprintf("saw as many events in revisions %d to %d as are for it, but others", s.after+1, s.through)
}
