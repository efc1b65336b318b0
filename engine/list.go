package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// ErrInvalidList is what every error of contradictory list options is.
var ErrInvalidList = errors.New("invalid list options")

// ListOptions says what to list. The zero value lists everything, linearizably.
type ListOptions struct {
	// Key lists at most one object. Prefix lists the keys under a path; not
	// both.
	Key, Prefix string
	// Labels and Fields are selectors. The first that fixes an indexed field or
	// label to a value narrows what is looked at.
	Labels, Fields string
	// Limit is the most objects of a page; zero means all. With [Cached] it is
	// ignored: the whole list costs no more.
	Limit int
	// Continue asks for the page after; see [List]. The state is that of the
	// first page, whatever Read says, which must be left out.
	Continue string
	// Read says how fresh the list must be; zero means [Latest].
	Read Read
}

// List is one page of objects, in key order.
type List[T any] struct {
	// Revision is what the state was read at: watch from here to go on.
	Revision Revision
	// Items is never nil.
	Items []*Object[T]
	// Continue asks for the next page; "" on the last.
	Continue string
	// Remaining is the number of objects after this page, -1 if a selector makes
	// that unknown.
	Remaining int
}

// List returns objects in key order, from the cache if it can serve what is
// asked. From the cache it takes no lock, and delays no writer.
//
// Errors: [ErrInvalidList], [ErrInvalidSelector], [ErrInvalidKey],
// [ErrInvalidContinue], [ErrExpired] if the revision is no longer kept,
// [ErrFuture] if it is not reached in time, [ErrNotReady], [ErrEngineClosed],
// ctx's cause, or what the backend met.
func (e *Engine[T]) List(ctx context.Context, opts ListOptions) (*List[T], error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	q, err := newQuery(opts)
	if err != nil {
		return nil, err
	}
	if !e.cfg.cached() {
		return e.listBackend(ctx, q)
	}
	if err := e.parts.cache.Check(e.host.Clock().Now()); errors.Is(err, watchcache.ErrNotReady) && q.cheap() {
		return e.listBackend(ctx, q)
	}
	e.counts.lists.Add(1)
	snap, err := e.snapshotFor(ctx, q)
	switch {
	case err == nil:
		return listSnapshot(snap, q), nil
	case e.backendMayKnow(q, err):
		e.counts.fallbacks.Add(1)
		return e.listBackend(ctx, q)
	}
	return nil, err
}

// query is ListOptions made plain.
type query struct {
	filter *store.Filter
	read   Read
	after  string
	limit  int
}

func newQuery(opts ListOptions) (query, error) {
	invalid := func(problem string) error { return fmt.Errorf("%w: %s", ErrInvalidList, problem) }
	if opts.Limit < 0 {
		return query{}, invalid("Limit is negative; zero lists everything")
	}
	if opts.Read.mode == exactly && opts.Read.revision == 0 {
		return query{}, invalid("Read is Exactly(0); give a revision that a write or a list returned")
	}
	filter, err := store.NewFilter(store.FilterOptions{Key: opts.Key, Prefix: opts.Prefix, Labels: opts.Labels, Fields: opts.Fields})
	if err != nil {
		return query{}, err
	}
	q := query{filter: filter, read: opts.Read, limit: opts.Limit}
	if q.read.mode == cached {
		q.limit = 0
	}
	if opts.Continue == "" {
		return q, nil
	}
	if opts.Read != Latest() {
		return query{}, invalid("Read cannot be set beside Continue, which holds the state already; leave it out")
	}
	return q.continued(opts.Continue, opts.Prefix)
}

// continued moves the query to the page after token.
func (q query) continued(token, prefix string) (query, error) {
	scan, err := backend.ListOptions{Prefix: prefix, Limit: q.limit, Continue: token}.Scan()
	if err != nil {
		return query{}, err
	}
	q.after = scan.After
	if scan.Revision > 0 {
		q.read = Exactly(scan.Revision)
	}
	return q, nil
}

// cheap reports whether the backend can answer without reading everything.
func (q query) cheap() bool { return q.limit > 0 && !q.filter.HasSelector() }

// snapshotFor returns the cache's state as fresh, or as old, as the query asks.
func (e *Engine[T]) snapshotFor(ctx context.Context, q query) (*store.Snapshot[T], error) {
	needed := q.read.revision
	switch q.read.mode {
	case exactly:
		return e.stateAt(ctx, q.read.revision)
	case latest:
		current, err := e.storage.Backend().Revision(ctx)
		if err != nil {
			return nil, err
		}
		needed = current
	}
	if err := e.fresh(ctx, needed); err != nil {
		return nil, err
	}
	return e.published.Load(), nil
}

// backendMayKnow reports whether the backend may answer what the cache could
// not: a state that the window does not hold, or the newest one that the cache
// does not reach in time.
func (e *Engine[T]) backendMayKnow(q query, err error) bool {
	switch q.read.mode {
	case exactly:
		return errors.Is(err, ErrExpired)
	case latest:
		return errors.Is(err, ErrFuture)
	}
	return false
}

// listSnapshot reads one page of snap.
func listSnapshot[T any](snap *store.Snapshot[T], q query) *List[T] {
	list := &List[T]{Revision: snap.Revision, Items: []*Object[T]{}}
	if q.filter.Everything() && q.limit == 0 && q.after == "" {
		list.Items = snap.State.AppendTo(make([]*Object[T], 0, snap.State.Len()), "")
		return list
	}
	for o := range store.Select(snap.State, q.filter, q.after) {
		if !list.add(o, q) {
			break
		}
	}
	return list
}

// add puts o on the page, or behind it if the page is full. It reports whether
// to go on.
func (l *List[T]) add(o *Object[T], q query) bool {
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

// listBackend reads one page from the backend, which knows no selectors: with
// one, pages are read until enough matched.
func (e *Engine[T]) listBackend(ctx context.Context, q query) (*List[T], error) {
	opts := backend.ListOptions{Prefix: q.filter.Prefix(), Limit: q.limit}
	if q.filter.Key() != "" {
		opts.Prefix = q.filter.Key()
	}
	if q.read.mode == exactly {
		opts.Revision = q.read.revision
	}
	if q.after != "" {
		opts.Continue = backend.Token{Revision: opts.Revision, Start: q.after}.Encode()
		opts.Revision = 0
	}
	list := &List[T]{Items: []*Object[T]{}}
	for {
		page, err := e.storage.List(ctx, opts)
		if err != nil {
			return nil, err
		}
		list.Revision = page.Revision
		if done := list.addPage(page, q); done || page.Continue == "" {
			return list, e.tooEarly(q, list.Revision)
		}
		opts.Continue, opts.Revision = page.Continue, 0
	}
}

// addPage puts the matches of a backend's page on the list and reports whether
// it is full.
func (l *List[T]) addPage(page *backend.List[T], q query) bool {
	for _, o := range page.Items {
		if store.Matches(q.filter, o) && !l.add(o, q) {
			return true
		}
	}
	if q.limit > 0 && len(l.Items) == q.limit && !q.filter.HasSelector() {
		l.Remaining, l.Continue = page.Remaining, page.Continue
		return true
	}
	return false
}

// tooEarly reports a state from the backend that is older than asked for.
func (e *Engine[T]) tooEarly(q query, current Revision) error {
	if q.read.mode == notOlderThan && current < q.read.revision {
		return &FutureError{Requested: q.read.revision, Current: current}
	}
	return nil
}

// ByIndex returns the cached objects whose indexed field or label has value, in
// key order. Index is a name given in [Config].Index or [Config].IndexLabels; a
// name given in both is the field's.
//
// Errors: [ErrUnknownIndex], [ErrNotReady], [ErrEngineClosed], ctx's cause.
func (e *Engine[T]) ByIndex(ctx context.Context, index, value string) ([]*Object[T], error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	attribute, err := e.attribute(index)
	if err != nil {
		return nil, err
	}
	if err := e.fresh(ctx, 0); err != nil {
		return nil, err
	}
	found, err := e.published.Load().State.ByIndex(attribute, value, "", "")
	if err != nil {
		return nil, err
	}
	objects := []*Object[T]{}
	for o := range found {
		objects = append(objects, o)
	}
	return objects, nil
}

func (e *Engine[T]) attribute(index string) (store.Attribute, error) {
	declared := e.cfg.indexes()
	for _, a := range declared {
		if a.Name == index {
			return a, nil
		}
	}
	return store.Attribute{}, fmt.Errorf("%w: %q; Config declares %v", ErrUnknownIndex, index, declared)
}
