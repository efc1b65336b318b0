package dispatcher

import (
	"cmp"
	"slices"

	"github.com/watchmill/watchmill/store"
)

// exclusions is the buckets by exclusion.
type exclusions struct {
	byText map[string]*exclusion
	// active are those with groups in their buckets, to iterate fast.
	active []*exclusion
}

// exclusion is an exclusion that filters of the index have. Its bucket holds those of
// their groups that are found by it: each group is found by one exclusion of its filter.
type exclusion struct {
	store.Exclusion
	bucket
	at      int // in exclusions.active, while there are groups in the bucket
	filters int // how many groups have it in their filters
}

// obtain returns the bucket of an exclusion for one more filter that has it, creating it
// if necessary.
func (e *exclusions) obtain(x store.Exclusion) *exclusion {
	shared := e.byText[x.String()]
	if shared == nil {
		shared = &exclusion{Exclusion: x}
		shared.emptied = func() { e.deactivate(shared) }
		e.byText[x.String()] = shared
	}
	shared.filters++
	return shared
}

// release undoes obtain, and drops the exclusion with the last filter that has it.
func (e *exclusions) release(x *exclusion) {
	if x.filters--; x.filters == 0 {
		delete(e.byText, x.String())
	}
}

// activate has objects checked against an exclusion. The caller then adds its first
// group.
func (e *exclusions) activate(x *exclusion) {
	x.at = len(e.active)
	e.active = append(e.active, x)
}

// deactivate undoes activate.
func (e *exclusions) deactivate(x *exclusion) {
	last := len(e.active) - 1
	e.active[x.at] = e.active[last]
	e.active[x.at].at = x.at
	e.active[last] = nil
	e.active = e.active[:last]
}

// mostShared chooses the exclusion that most filters have: an object that does not meet
// it rules out all groups in its bucket at once.
func mostShared(all []*exclusion) *exclusion {
	return slices.MaxFunc(all, func(a, b *exclusion) int { return cmp.Compare(a.filters, b.filters) })
}
