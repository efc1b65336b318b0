package reflector_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// thing is what the source stores.
type thing struct {
	store.Object
	Value string
}

func newThing(header store.Object, value string) *store.Object {
	return &(&thing{header, value}).Object
}

// value returns the value behind a header.
func value(o *store.Object) string { return store.As[thing](o).Value }

// gone returns a copy of o as the object of its deletion.
func gone(o *store.Object, rev store.Revision) *store.Object {
	c := *store.As[thing](o)
	c.Revision = rev
	return &c.Object
}

// source is storage in memory with faults on demand. It counts what is open, so
// that tests can find leaks.
type source struct {
	traits backend.Traits

	mu       sync.Mutex
	rev      store.Revision
	floor    store.Revision // history up to here is compacted
	objects  map[string]*store.Object
	history  []store.Event
	watches  []*watch // open
	calls    []string // every List and Watch, as it was asked
	faults   map[string][]func() error
	onList   func(ctx context.Context) error // runs in List, outside the lock
	onWatch  func(ctx context.Context) error // likewise in Watch
	inFlight int                             // calls now
	overlaps int                             // calls that began while another was in flight
	reclosed int                             // watches closed that were not open
}

func newSource() *source {
	return &source{objects: map[string]*store.Object{}, faults: map[string][]func() error{}}
}

// fail makes the next calls of what ("list", "watch", "next" or "close") fail
// with the errors, one each; nil lets one call pass.
func (s *source) fail(what string, errs ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range errs {
		s.faults[what] = append(s.faults[what], func() error { return err })
	}
}

// explode makes the next call of what panic.
func (s *source) explode(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[what] = append(s.faults[what], func() error { panic(what + " exploded") })
}

// fault takes the next fault of what and returns it; the caller must not hold
// the lock.
func (s *source) fault(what string) error {
	s.mu.Lock()
	faults := s.faults[what]
	if len(faults) == 0 {
		s.mu.Unlock()
		return nil
	}
	s.faults[what] = faults[1:]
	s.mu.Unlock()
	return faults[0]()
}

func (s *source) put(key, value string) {
	s.mu.Lock()
	prev := s.objects[key]
	s.rev++
	event := store.Event{Type: store.Added, Revision: s.rev, Prev: prev}
	event.Object = newThing(store.Object{Key: key, Revision: s.rev, Created: s.rev}, value)
	if prev != nil {
		event.Type, event.Object.Created = store.Modified, prev.Created
	}
	s.objects[key] = event.Object
	s.commit(event)
}

func (s *source) remove(key string) {
	s.mu.Lock()
	prev := s.objects[key]
	s.rev++
	delete(s.objects, key)
	s.commit(store.Event{Type: store.Deleted, Revision: s.rev, Prev: prev, Object: gone(prev, s.rev)})
}

// progress moves the revision on without an event.
func (s *source) progress(n store.Revision) {
	s.mu.Lock()
	s.rev += n
	s.commit()
}

// commit unlocks and tells the watches.
func (s *source) commit(events ...store.Event) {
	s.history = append(s.history, events...)
	watches := slices.Clone(s.watches)
	s.mu.Unlock()
	for _, w := range watches {
		w.notify()
	}
}

// compact forgets all history.
func (s *source) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floor, s.history = s.rev, nil
}

// disturb ends all open watches with err.
func (s *source) disturb(err error) {
	s.mu.Lock()
	for _, w := range s.watches {
		w.err = err
	}
	s.commit()
}

// lose makes the open watches overlook what they have not delivered yet.
func (s *source) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.at = s.rev
	}
}

// rewind makes the open watches repeat the last n revisions.
func (s *source) rewind(n store.Revision) {
	s.mu.Lock()
	for _, w := range s.watches {
		w.at -= n
	}
	s.commit()
}

func (s *source) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *source) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}

// tidy demands that a Reflector that has ended left nothing open, and closed each
// watch once.
func (s *source) tidy(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.watches, "watches left open")
	require.Zero(t, s.reclosed, "watches closed again")
	require.Zero(t, s.overlaps, "calls at a time")
}

func (s *source) Traits() backend.Traits { return s.traits }

// call notes a call; the returned function notes its end.
func (s *source) call(format string, args ...any) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
	if s.inFlight > 0 {
		s.overlaps++
	}
	s.inFlight++
	return func() {
		s.mu.Lock()
		s.inFlight--
		s.mu.Unlock()
	}
}

// List's continue tokens are "revision:offset"; a page of a compacted revision
// has expired.
func (s *source) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	defer s.call("list %q limit=%d continue=%q", opts.Prefix, opts.Limit, opts.Continue)()
	if s.onList != nil {
		if err := s.onList(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.fault("list"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &backend.List{Revision: s.rev, Items: s.under(opts.Prefix)}
	if opts.Continue != "" {
		var offset int
		_, _ = fmt.Sscanf(opts.Continue, "%d:%d", &list.Revision, &offset)
		if list.Revision < s.floor {
			return nil, &store.ExpiredError{Requested: list.Revision, Oldest: s.floor}
		}
		list.Items = list.Items[offset:]
		opts.Limit += offset
	}
	if opts.Limit > 0 && len(s.under(opts.Prefix)) > opts.Limit {
		left := len(s.under(opts.Prefix)) - opts.Limit
		list.Items = list.Items[:len(list.Items)-left] // its capacity is not the reader's
		list.Remaining = left
		list.Continue = list.Revision.String() + ":" + strconv.Itoa(opts.Limit)
	}
	return list, nil
}

// under returns the objects under prefix in key order; the caller holds the
// lock.
func (s *source) under(prefix string) []*store.Object {
	items := []*store.Object{}
	for key, o := range s.objects {
		if store.HasPrefix(key, prefix) {
			items = append(items, o)
		}
	}
	slices.SortFunc(items, func(a, b *store.Object) int { return cmp.Compare(a.Key, b.Key) })
	return items
}

func (s *source) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	defer s.call("watch %q from=%d", opts.Prefix, opts.From)()
	if s.onWatch != nil {
		if err := s.onWatch(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.fault("watch"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if opts.From < s.floor {
		return nil, &store.ExpiredError{Requested: opts.From, Oldest: s.floor}
	}
	if opts.From > s.rev {
		return nil, &store.FutureError{Requested: opts.From, Current: s.rev}
	}
	w := &watch{source: s, prefix: opts.Prefix, notify: opts.Notify, at: opts.From}
	s.watches = append(s.watches, w)
	return w, nil
}

// watch is an open watch; source's lock guards it.
type watch struct {
	source *source
	prefix string
	notify func()
	at     store.Revision
	err    error
}

func (w *watch) Next(limit int) (backend.Batch, error) {
	if err := w.source.fault("next"); err != nil {
		return backend.Batch{}, err
	}
	s := w.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.err != nil {
		return backend.Batch{}, w.err
	}
	if w.at < s.floor {
		return backend.Batch{}, &store.ExpiredError{Requested: w.at, Oldest: s.floor}
	}
	b := backend.Batch{After: w.at, Through: s.rev}
	for _, event := range s.history {
		if event.Revision <= w.at || !store.HasPrefix(event.Key(), w.prefix) {
			continue
		}
		if len(b.Events) == limit {
			b.Through = b.Events[limit-1].Revision
			break
		}
		b.Events = append(b.Events, event)
	}
	w.at = b.Through
	return b, nil
}

func (w *watch) Close() {
	s := w.source
	s.mu.Lock()
	if !slices.Contains(s.watches, w) {
		s.reclosed++
	}
	s.watches = slices.DeleteFunc(s.watches, func(other *watch) bool { return other == w })
	s.mu.Unlock()
	_ = s.fault("close")
}
