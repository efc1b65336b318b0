package judge

import (
	"iter"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

// Selection is what a watch selects: valid selectors, a prefix and a key, each
// "" for all.
type Selection struct {
	Labels, Fields, Prefix, Key string
}

// Expected is what the watches of a number of selections must see of a [Ledger], computed in
// one pass over the writes. It belongs to one goroutine at a time.
type Expected struct {
	ledger      *Ledger
	bySelection map[Selection]*selected
	// byKey are the selections of one key. Those without a key that require one value of
	// a field are in byField, by field and value, and fields are the names of these
	// fields. The others are compared with every write.
	byField map[[2]string][]*selected
	fields  []string
	byKey   map[string][]*selected
	others  []*selected
	// newest is the last write of each key other than emitted values, computed when it is
	// first used.
	newest map[string]Entry
}

// Expect computes what watches of each selection must see: each change of an
// object that the selection matches before or after the change. After the call only
// [Ledger.Gap] may change the ledger.
func Expect(selections iter.Seq[Selection], l *Ledger) *Expected {
	x := &Expected{
		ledger: l, bySelection: map[Selection]*selected{},
		byField: map[[2]string][]*selected{}, byKey: map[string][]*selected{},
	}
	for sel := range selections {
		x.add(sel)
	}
	x.read(l.inOrder())
	return x
}

// Revisions returns, in order, the revisions that watches of sel, one of the selections given
// to Expect, must see. The caller must not change the slice.
func (x *Expected) Revisions(sel Selection) []store.Revision { return x.bySelection[sel].revisions }

func (x *Expected) add(sel Selection) {
	if x.bySelection[sel] != nil {
		return
	}
	s := newSelected(sel)
	x.bySelection[sel] = s
	if s.key != "" {
		x.byKey[s.key] = append(x.byKey[s.key], s)
		return
	}
	for _, r := range s.fields.Requirements() {
		if value, exact := s.fields.RequiresExactMatch(r.Field); exact {
			x.byField[[2]string{r.Field, value}] = append(x.byField[[2]string{r.Field, value}], s)
			if !slices.Contains(x.fields, r.Field) {
				x.fields = append(x.fields, r.Field)
			}
			return
		}
	}
	x.others = append(x.others, s)
}

// read adds the entries, which are in order, to the selections that match them.
func (x *Expected) read(entries []Entry) {
	state := map[string]*Entry{}
	for i := range entries {
		e := &entries[i]
		before, after := state[e.Key], e
		switch {
		case e.Emitted:
			before = nil
		case e.Deleted:
			delete(state, e.Key)
			after = nil
		default:
			state[e.Key] = e
		}
		for s := range x.candidates(e.Key, before, after) {
			s.change(e, before, after)
		}
	}
}

// candidates returns the selections that may match an object before or after its change.
func (x *Expected) candidates(key string, before, after *Entry) map[*selected]struct{} {
	found := map[*selected]struct{}{}
	add := func(list []*selected) {
		for _, s := range list {
			found[s] = struct{}{}
		}
	}
	add(x.others)
	add(x.byKey[key])
	for _, e := range []*Entry{before, after} {
		if e == nil {
			continue
		}
		for _, field := range x.fields {
			add(x.byField[[2]string{field, e.Fields[field]}])
		}
	}
	return found
}

// selected is what a selection shows of the writes: the revisions, in order, the
// digests of the first n of them, and the state after each.
type selected struct {
	labels      labels.Selector
	fields      fields.Selector
	prefix, key string

	revisions []store.Revision
	digests   []digest
	states    []digest
	newest    digest // of the states, while writes are read
}

// digest is a set of revisions in constant space: how many there are, and the sum
// of their hashes.
type digest struct{ count, sum uint64 }

func (d digest) plus(rev store.Revision) digest { return digest{d.count + 1, d.sum + hash(rev)} }

func (d digest) without(rev store.Revision) digest { return digest{d.count - 1, d.sum - hash(rev)} }

func (d digest) minus(other digest) digest { return digest{d.count - other.count, d.sum - other.sum} }

// hash spreads a revision over all bits, so that different sets of equally many revisions
// hardly ever have the same sum.
func hash(rev store.Revision) uint64 {
	x := uint64(rev) * 0x9e3779b97f4a7c15
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

func newSelected(sel Selection) *selected {
	s := &selected{
		prefix: sel.Prefix, key: sel.Key, labels: labels.Everything(), fields: fields.Everything(),
		digests: []digest{{}}, states: []digest{{}},
	}
	if parsed, err := labels.Parse(sel.Labels); err == nil {
		s.labels = parsed
	}
	if parsed, err := fields.ParseSelector(sel.Fields); err == nil {
		s.fields = parsed
	}
	return s
}

// matches reports whether the selection matches the object after the write e; false if e is
// nil or a deletion.
func (s *selected) matches(e *Entry) bool {
	return e != nil && !e.Deleted && (s.key == "" || s.key == e.Key) && store.HasPrefix(e.Key, s.prefix) &&
		s.labels.Matches(e.Labels) && s.fields.Matches(e.Fields)
}

// change adds the write e, if the selection matches the object before or after it.
func (s *selected) change(e, before, after *Entry) {
	was, is := s.matches(before), s.matches(after)
	if !was && !is {
		return
	}
	if was {
		s.newest = s.newest.without(before.Revision)
	}
	if is && !e.Emitted {
		s.newest = s.newest.plus(e.Revision)
	}
	s.revisions = append(s.revisions, e.Revision)
	s.digests = append(s.digests, s.digests[len(s.digests)-1].plus(e.Revision))
	s.states = append(s.states, s.newest)
}

// until returns how many of the revisions are at most rev.
func (s *selected) until(rev store.Revision) int {
	return sort.Search(len(s.revisions), func(i int) bool { return s.revisions[i] > rev })
}

// state returns the selected state at a revision.
func (s *selected) state(at store.Revision) digest { return s.states[s.until(at)] }

// within returns the selected revisions in (after, through].
func (s *selected) within(after, through store.Revision) digest {
	from := s.until(after)
	return s.digests[max(from, s.until(through))].minus(s.digests[from])
}

// visible returns what within returns, without the revisions in gaps, which have none in common.
func (s *selected) visible(after, through store.Revision, gaps []gap) digest {
	d := s.within(after, through)
	for _, g := range gaps {
		d = d.minus(s.within(max(g.after, after), min(g.through, through)))
	}
	return d
}
