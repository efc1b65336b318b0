package judge

import (
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// Listing is a list that a reader of a load has made, in constant space. Page judges each page as
// it comes, and Judge the whole list once everything is written. It belongs to one goroutine at a
// time.
type Listing[T any] struct {
	// Read bounds the revision of the list. A Newest of zero is not a bound.
	Read[T]
	// Limit is the most objects that a page may have; zero means any number.
	Limit int

	// at is the revision of the first page, valid once there was one.
	at    store.Revision
	begun bool
	// last is the key of the last object, and received are the revisions of all.
	last     string
	received digest
}

// Page adds the next page. It returns a [*Failure] if the page is not of the revision of the first,
// which must be within the bounds, if it has too many objects, if they do not follow those before
// in key order, or if one of them is newer than the list.
func (l *Listing[T]) Page(page *engine.List[T]) error {
	switch {
	case l.begun && page.Revision != l.at:
		return Failed(ReadState, l.Name, "a page is of revision %d, the first was of %d", page.Revision, l.at)
	case page.Revision < l.Oldest, l.Newest > 0 && page.Revision > l.Newest:
		return Failed(l.Mode, l.Name, "it is of revision %d, not from %d to %s", page.Revision, l.Oldest, l.upper())
	case l.Limit > 0 && len(page.Items) > l.Limit:
		return Failed(ReadState, l.Name, "a page has %d objects, the most is %d", len(page.Items), l.Limit)
	}
	l.at, l.begun = page.Revision, true
	for _, o := range page.Items {
		switch {
		case o.Key <= l.last:
			return Failed(ReadState, l.Name, "its keys are not in order: %q follows %q", o.Key, l.last)
		case o.Revision > l.at:
			return Failed(ReadState, l.Name, "%s is in it, and it is of revision %d", identity(o), l.at)
		}
		l.last, l.received = o.Key, l.received.plus(o.Revision)
	}
	return nil
}

// upper describes the upper bound of the revision.
func (l *Listing[T]) upper() string {
	if l.Newest == 0 {
		return "the newest"
	}
	return fmt.Sprint(l.Newest)
}

// Judge returns a [*Failure] if the list, after every page was added, is not what the selection
// shows of the state at its revision. The selection must be one of those given to [Expect].
func (l *Listing[T]) Judge(x *Expected, sel Selection) error {
	switch want := x.bySelection[sel].state(l.at); {
	case l.received.count != want.count:
		return Failed(ReadState, l.Name, "it has %d objects as the state at revision %d, when there were %d for it", l.received.count, l.at, want.count)
	case l.received != want:
		return Failed(ReadState, l.Name, "it has as many objects as the state at revision %d as there were for it, but others", l.at)
	}
	return nil
}
