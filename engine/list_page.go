package engine

import (
	"context"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// listSnapshot reads one page of snap.
func listSnapshot(snap *store.Snapshot, q query) *listed {
	state := snap.State()
	list := &listed{backend.List{Revision: snap.Revision, Items: []*store.Object{}}, timelineOf(snap.Timeline())}
	if q.filter.Everything() && q.limit == 0 && q.after == "" {
		list.Items = state.AppendTo(make([]*store.Object, 0, state.Len()), "")
		return list
	}
	for o := range store.Select(state, q.filter, q.after) {
		if !addTo(&list.List, o, q) {
			break
		}
	}
	return list
}

// addTo puts o on the page or, if that is full, counts it as remaining. It reports
// whether to continue.
func addTo(l *backend.List, o *store.Object, q query) bool {
	if q.limit == 0 || len(l.Items) < q.limit {
		l.Items = append(l.Items, o)
		return true
	}
	if l.Continue == "" {
		l.Continue = backend.Token{Revision: l.Revision, Start: l.Items[q.limit-1].Key}.Encode()
	}
	if q.filter.HasSelector() {
		l.Remaining = -1
		return false
	}
	l.Remaining++
	return true
}

// selectorPage is how many objects to read at once from the backend for a selector, which
// may match few of them.
const selectorPage = 1000

// listBackend reads one page from the backend, which has no selectors: with one, it reads
// pages until enough objects have matched. It reads the timeline before the first page:
// if storage is replaced in between, no watch continues the list.
func (e *core) listBackend(ctx context.Context, q query) (*listed, error) {
	opts := q.backendOptions()
	timeline, err := e.storageTimeline(ctx)
	if err != nil {
		return nil, err
	}
	list := &listed{backend.List{Items: []*store.Object{}}, timelineOf(timeline)}
	for full := false; !full; {
		page, err := e.storage.List(ctx, opts)
		if err != nil {
			return nil, err
		}
		list.Revision = page.Revision
		full = addPage(&list.List, page, q)
		opts.Continue, opts.Revision = page.Continue, 0
	}
	if q.read.mode == notOlderThan && list.Revision < q.read.revision {
		return nil, &FutureError{Requested: q.read.revision, Current: list.Revision}
	}
	return list, nil
}

// backendOptions asks the backend for its first page.
func (q query) backendOptions() backend.ListOptions {
	opts := backend.ListOptions{Prefix: q.filter.Prefix(), Start: q.start, Limit: q.limit}
	switch {
	case q.filter.Key() != "":
		opts.Prefix, opts.Limit = q.filter.Key(), 1 // the key itself is the first under it
	case q.limit > 0 && q.filter.HasSelector():
		opts.Limit = max(q.limit, selectorPage)
	}
	if q.read.mode == exactly {
		opts.Revision = q.read.revision
	}
	if q.continued {
		opts.Continue = backend.Token{Revision: opts.Revision, Start: q.after}.Encode()
		opts.Revision = 0
	}
	return opts
}

// addPage puts the matches of a backend's page on the list and reports whether
// the list is done.
func addPage(l, page *backend.List, q query) bool {
	for _, o := range page.Items {
		if store.Matches(q.filter, o) && !addTo(l, o, q) {
			return true
		}
	}
	if q.filter.Key() != "" {
		return true
	}
	if q.limit > 0 && len(l.Items) == q.limit && !q.filter.HasSelector() {
		l.Remaining, l.Continue = page.Remaining, page.Continue
		return true
	}
	return page.Continue == ""
}
