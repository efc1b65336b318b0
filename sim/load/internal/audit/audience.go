package audit

import (
	"sort"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
)

// audience is what all watchers with the same selector must see: the revisions, in
// order, the sums of the first n of them, and the selected state after each.
type audience struct {
	labels      labels.Selector
	fields      fields.Selector
	prefix, key string

	revisions []store.Revision
	sums      []uint64
	states    []tally
	present   tally // while revisions are added: the newest of the states
}

// tally stands for objects that there are: how many, and what the revisions of
// their states add up to.
type tally struct{ objects, sum uint64 }

func (t *tally) add(rev store.Revision) {
	t.objects++
	t.sum += scramble(rev)
}

func (t *tally) remove(rev store.Revision) {
	t.objects--
	t.sum -= scramble(rev)
}

func newAudience(sel scenario.Selection) *audience {
	a := &audience{prefix: sel.Prefix, key: sel.Key, labels: labels.Everything(), fields: fields.Everything(), sums: []uint64{0}, states: []tally{{}}}
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
func (a *audience) matches(key string, attrs *content.Attributes) bool {
	return attrs != nil && (a.key == "" || a.key == key) && store.HasPrefix(key, a.prefix) &&
		a.labels.Matches(attrs.Labels) && a.fields.Matches(attrs.Fields)
}

// expect notes that the audience had to see a revision, behind which what it
// selects is what is present.
func (a *audience) expect(rev store.Revision) {
	a.revisions = append(a.revisions, rev)
	a.sums = append(a.sums, a.sums[len(a.sums)-1]+scramble(rev))
	a.states = append(a.states, a.present)
}

// until returns how many of the revisions are not above one.
func (a *audience) until(rev store.Revision) int {
	return sort.Search(len(a.revisions), func(i int) bool { return a.revisions[i] > rev })
}

// at returns what there is for the audience at a revision.
func (a *audience) at(rev store.Revision) tally { return a.states[a.until(rev)] }

// within returns how many revisions were to be seen in (after, through], and
// their sum.
func (a *audience) within(after, through store.Revision) (events, sum uint64) {
	from, to := a.until(after), max(a.until(after), a.until(through))
	return uint64(to - from), a.sums[to] - a.sums[from]
}

// due returns how many revisions of a stretch could be seen, and their sum: all
// that had to be, but for gaps.
func (a *audience) due(s stretch, gaps []gap) (events, sum uint64) {
	events, sum = a.within(s.after, s.through)
	for _, g := range gaps {
		missing, gone := a.within(max(g.after, s.after), min(g.through, s.through))
		events, sum = events-missing, sum-gone
	}
	return events, sum
}
