package audit

import (
	"iter"
	"slices"

	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
)

// Expected is what had to be seen, by selection.
type Expected struct {
	ledger *Ledger
	by     map[scenario.Selection]*audience
	// exact are those that fix one field to a value, by field and value; keyed
	// those of one object. The others are asked one by one.
	exact  map[[2]string][]*audience
	fixed  []string
	keyed  map[string][]*audience
	others []*audience
	// newest is the last write of each key's state, once it is asked for.
	newest map[string]Entry
}

// Expect computes what watchers of each selection must see: each change of an object
// that it selects after the change, or before it. Afterwards only gaps may be added to
// the ledger.
func Expect(selections iter.Seq[scenario.Selection], l *Ledger) *Expected {
	x := &Expected{
		ledger: l, by: map[scenario.Selection]*audience{},
		exact: map[[2]string][]*audience{}, keyed: map[string][]*audience{},
	}
	for sel := range selections {
		x.add(sel)
	}
	x.read(l.inOrder())
	return x
}

// Revisions returns, in order, what watchers of one of Expect's selections must see. It
// must not be changed.
func (x *Expected) Revisions(sel scenario.Selection) []store.Revision { return x.by[sel].revisions }

// add makes the audience that selects so, if there is none yet.
func (x *Expected) add(sel scenario.Selection) {
	if x.by[sel] != nil {
		return
	}
	a := newAudience(sel)
	x.by[sel] = a
	if a.key != "" {
		x.keyed[a.key] = append(x.keyed[a.key], a)
		return
	}
	for _, r := range a.fields.Requirements() {
		if value, exact := a.fields.RequiresExactMatch(r.Field); exact {
			x.exact[[2]string{r.Field, value}] = append(x.exact[[2]string{r.Field, value}], a)
			if !slices.Contains(x.fixed, r.Field) {
				x.fixed = append(x.fixed, r.Field)
			}
			return
		}
	}
	x.others = append(x.others, a)
}

// held is an object as it is at present.
type held struct {
	attrs    *content.Attributes
	revision store.Revision
}

// read goes through what was written.
func (x *Expected) read(entries []Entry) {
	present := map[string]held{}
	for _, e := range entries {
		before := present[e.Key]
		switch {
		case e.Emitted:
			before = held{}
		case e.Attrs == nil:
			delete(present, e.Key)
		default:
			present[e.Key] = held{e.Attrs, e.Revision}
		}
		for a := range x.near(e.Key, before.attrs, e.Attrs) {
			a.see(e, before)
		}
	}
}

// see adds a write to what the audience had to see, if it is for it.
func (a *audience) see(e Entry, before held) {
	was, is := a.matches(e.Key, before.attrs), a.matches(e.Key, e.Attrs)
	if !was && !is {
		return
	}
	if was {
		a.present.remove(before.revision)
	}
	if is && !e.Emitted {
		a.present.add(e.Revision)
	}
	a.expect(e.Revision)
}

// near returns the audiences that a change may concern, each once.
func (x *Expected) near(key string, before, after *content.Attributes) map[*audience]struct{} {
	found := map[*audience]struct{}{}
	add := func(list []*audience) {
		for _, a := range list {
			found[a] = struct{}{}
		}
	}
	add(x.others)
	add(x.keyed[key])
	for _, attrs := range []*content.Attributes{before, after} {
		if attrs == nil {
			continue
		}
		for _, field := range x.fixed {
			add(x.exact[[2]string{field, attrs.Fields[field]}])
		}
	}
	return found
}
