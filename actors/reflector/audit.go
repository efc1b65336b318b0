package reflector

import (
	"sort"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// auditBatch checks that a batch continues from last, the revision of the
// previous update. It returns the first problem, and how many of the events are of
// revisions that are whole before it. With contiguous, a missing revision is a problem.
func auditBatch(b backend.Batch, last store.Revision, contiguous bool) (int, *LostError) {
	if lost := auditBounds(b, last); lost != nil {
		return 0, lost
	}
	at, key := last, ""
	for i, event := range b.Events {
		if lost := auditEvent(event, at, key, b.Through, contiguous); lost != nil {
			return whole(b.Events[:i], event.Revision, contiguous), lost
		}
		at, key = event.Revision, event.Key()
	}
	if contiguous && at != b.Through {
		return len(b.Events), skipped(at, b.Through, "the batch claims to be complete up to a revision whose events are missing")
	}
	return len(b.Events), nil
}

// whole returns how many of the events, before one at rev that is a problem, are of revisions
// that are whole. With contiguous each is one.
func whole(events []store.Event, rev store.Revision, contiguous bool) int {
	if contiguous {
		return len(events)
	}
	return sort.Search(len(events), func(i int) bool { return events[i].Revision >= rev })
}

func auditBounds(b backend.Batch, last store.Revision) *LostError {
	switch {
	case b.After > last:
		return skipped(last, b.After, "the batch starts at a later revision")
	case b.After < last:
		return repeated(last, b.After, "the batch starts at an earlier revision")
	case b.Through < last:
		return repeated(last, b.Through, "the batch ends before it starts")
	}
	return nil
}

// auditEvent checks an event against its predecessor, which changed key at
// revision at. Only storage that is not contiguous may change several keys in
// one revision.
func auditEvent(e store.Event, at store.Revision, key string, through store.Revision, contiguous bool) *LostError {
	switch {
	case e.Object == nil:
		return skipped(at, e.Revision, "an event has no object")
	case e.Revision < at, e.Revision == at && (contiguous || key == "" || e.Key() == key):
		return repeated(at, e.Revision, "an event has a revision that is not new")
	case e.Revision > through:
		return repeated(at, e.Revision, "an event lies beyond its batch")
	case contiguous && e.Revision != at+1:
		return skipped(at, e.Revision, "there is a hole before an event")
	}
	return nil
}

func skipped(last, found store.Revision, detail string) *LostError {
	return &LostError{Reason: Skipped, Last: last, Found: found, Detail: detail}
}

func repeated(last, found store.Revision, detail string) *LostError {
	return &LostError{Reason: Repeated, Last: last, Found: found, Detail: detail}
}

// replacedMeanwhile returns the error of a list during which storage was replaced or went back.
func replacedMeanwhile(first store.Revision, page *backend.List) *TornListError {
	return &TornListError{Want: first, Got: page.Revision, Detail: "storage became another one meanwhile"}
}

// auditPage checks a page against the options of its request and against the
// revision of the list's first page (its own, if it is the first).
func auditPage(page *backend.List, asked backend.ListOptions, first store.Revision) error {
	torn := func(detail string) error { return &TornListError{Want: first, Got: page.Revision, Detail: detail} }
	if page.Revision != first {
		return torn("a page was read at another revision")
	}
	if page.Continue != "" && page.Continue == asked.Continue {
		return torn("a page's continue token leads to the same page")
	}
	for _, object := range page.Items {
		if object == nil {
			return torn("an object is missing")
		}
		if object.Revision > page.Revision {
			return torn("object " + object.Key + " is newer than its list")
		}
	}
	return nil
}
