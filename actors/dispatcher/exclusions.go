package dispatcher

import (
	"cmp"
	"slices"

	"github.com/watchmill/watchmill/store"
)

// exclusions is the buckets by exclusion.
type exclusions struct {
	byText map[string]*exclusion
	// asked are those with groups in their buckets, to iterate fast.
	asked []*exclusion
}

// exclusion is an exclusion that filters of the index have. Its bucket holds those of
// their groups that are found by it: each group is found by one exclusion of its filter.
type exclusion struct {
	store.Exclusion
	bucket
	at      int // in exclusions.asked, while there are groups in the bucket
	filters int // how many groups have it in their filters
}

// obtain returns the bucket of an exclusion for one more filter that has it, creating it
// if necessary.
func (e *exclusions) obtain(x store.Exclusion) *exclusion {
	shared := e.byText[x.String()]
	if shared == nil {
		shared = &exclusion{Exclusion: x}
		shared.emptied = func() { e.dismiss(shared) }
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

// ask begins to ask an exclusion, which the caller adds the first group to.
func (e *exclusions) ask(x *exclusion) {
	x.at = len(e.asked)
	e.asked = append(e.asked, x)
}

// dismiss undoes ask.
func (e *exclusions) dismiss(x *exclusion) {
	last := len(e.asked) - 1
	e.asked[x.at] = e.asked[last]
	e.asked[x.at].at = x.at
	e.asked[last] = nil
	e.asked = e.asked[:last]
}

// mostShared chooses the exclusion that most filters have: an object that does not meet
// it rules out all groups in its bucket at once.
func mostShared(all []*exclusion) *exclusion {
	return slices.MaxFunc(all, func(a, b *exclusion) int { return cmp.Compare(a.filters, b.filters) })
}
