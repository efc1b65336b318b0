package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// usualPage is for how many objects a list has room at first, if it need not be all.
const usualPage = 32

// listSnapshot reads one page of snap.
func (e *core) listSnapshot(snap *window.Snapshot, q query) *listed {
	state := snap.State()
	list := &listed{List: backend.List{Revision: snap.Revision}, timeline: timelineOf(snap.Timeline())}
	if q.filter.Everything() && q.limit == 0 && q.after == "" {
		list.Items = state.AppendTo(make([]*store.Object, 0, state.Len()), "")
		e.countList(store.Attribute{}, len(list.Items), len(list.Items))
		return list
	}
	list.Items = make([]*store.Object, 0, usualPage)
	candidates, fetched := tree.CandidatesOf(state, q.filter, q.after), 0
	if candidates.Match && q.limit == 0 {
		list.Items = slices.AppendSeq(list.Items, candidates.Objects)
		e.countList(candidates.Index, len(list.Items), len(list.Items))
		return list
	}
	for o := range candidates.Objects {
		fetched++
		if (candidates.Match || store.Matches(q.filter, o)) && !addTo(list, o, q) {
			break
		}
	}
	e.countList(candidates.Index, fetched, len(list.Items))
	if list.more && !q.filter.HasSelector() {
		list.Remaining = state.Count(q.filter.Prefix(), list.Items[q.limit-1].Key)
	}
	e.setToken(list)
	return list
}

// addTo puts o on the page or, if that is full, notes that there is more: with a selector it is
// not known how much. It reports whether to continue.
func addTo(l *listed, o *store.Object, q query) bool {
	if q.limit == 0 || len(l.Items) < q.limit {
		l.Items = append(l.Items, o)
		return true
	}
	l.more, l.Remaining = true, -1
	return false
}

// selectorPage is how many objects to read at once from the backend for a selector, which
// may match few of them.
const selectorPage = 1000

// listBackend reads one page from the backend, which has no selectors: with one, it reads
// pages until enough objects have matched. It reads the timeline before the first page:
// if storage is replaced in between, no watch and no page continues the list. A list of
// more than one page fails with [ErrExpired] if the timeline is another one after the last.
func (e *core) listBackend(ctx context.Context, q query) (*listed, error) {
	opts := q.backendOptions()
	timeline, err := e.storageTimeline(ctx)
	if err != nil {
		return nil, err
	}
	if !e.continuesOn(q, timeline) {
		return nil, &ExpiredError{Requested: q.read.revision}
	}
	list := &listed{List: backend.List{Items: []*store.Object{}}, timeline: timelineOf(timeline)}
	pages := 0
	for full := false; !full; pages++ {
		page, err := e.storage.List(ctx, opts)
		if err != nil {
			return nil, e.translateStorage(q.expired(err))
		}
		list.Revision = page.Revision
		full = addPage(list, page, q)
		opts.Continue, opts.Revision = page.Continue, 0
	}
	if q.read.mode == notOlderThan && list.Revision < q.read.revision {
		return nil, &FutureError{Requested: q.read.revision, Current: list.Revision}
	}
	if q.continued || pages > 1 {
		if err := e.stillOn(ctx, timeline, list.Revision); err != nil {
			return nil, err
		}
	}
	e.setToken(list)
	return list, nil
}

// expired returns the error of a page of the backend's as that of the page of q. A token in it
// continues after the previous page: what this one has read already is not returned.
func (q query) expired(err error) error {
	offer, is := errors.AsType[*backend.ExpiredContinueError](err)
	switch {
	case !is:
		return err
	case !q.continued:
		return offer.Expired
	}
	return &backend.ExpiredContinueError{Expired: offer.Expired, Continue: backend.Token{Start: q.after}.Encode()}
}

// stillOn returns an [ErrExpired] for revision rev if storage has left timeline t.
func (e *core) stillOn(ctx context.Context, t store.Timeline, rev Revision) error {
	now, err := e.storageTimeline(ctx)
	if err == nil && now != t {
		err = &ExpiredError{Requested: rev}
	}
	return err
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
func addPage(l *listed, page *backend.List, q query) bool {
	for _, o := range page.Items {
		if store.Matches(q.filter, o) && !addTo(l, o, q) {
			return true
		}
	}
	if q.filter.Key() != "" {
		return true
	}
	if q.limit > 0 && len(l.Items) == q.limit && !q.filter.HasSelector() {
		l.Remaining, l.more = page.Remaining, page.Continue != ""
		return true
	}
	return page.Continue == ""
}
