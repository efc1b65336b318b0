package bolt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// decodeAll decodes the record of each object in the newest state that is not decoded
// yet, and sorts the keys meanwhile.
func (l *loading) decodeAll() error {
	l.places = nil
	l.later = make([]*store.Object, l.last-l.oldest)
	records := l.wanted()
	l.total = max(l.total, l.done+len(records))
	var sorting sync.WaitGroup
	sorting.Go(l.sort)
	defer sorting.Wait()
	return newDecoding(&l.backend.values, l.decoded).decodeRecords(l.read, records, l.progress)
}

// wanted returns the records of the newest state that are not decoded yet, in the order
// of their revisions, of which those after trimmed have no gap.
func (l *loading) wanted() []wanted {
	records := make([]wanted, 0, min(uint64(len(l.versions)), l.last-l.trimmed))
	history := make([]int, l.last-l.trimmed) // has an index of versions, and one more
	for place := range l.versions {
		switch at := &l.versions[place]; {
		case at.newest == 0 || at.newestObject.object != nil:
		case at.newest <= l.trimmed:
			records = append(records, wanted{at.newest, at.key, place})
		default:
			history[at.newest-l.trimmed-1] = place + 1
		}
	}
	slices.SortFunc(records, func(x, y wanted) int { return cmp.Compare(x.revision, y.revision) })
	for _, next := range history {
		if next > 0 {
			at := &l.versions[next-1]
			records = append(records, wanted{at.newest, at.key, next - 1})
		}
	}
	return records
}

// sort fills in order.
func (l *loading) sort() {
	l.order = make([]placed, 0, len(l.versions)-len(l.free))
	for place := range l.versions {
		if at := &l.versions[place]; !at.none() {
			l.order = append(l.order, placed{at.key, place})
		}
	}
	slices.SortFunc(l.order, func(x, y placed) int { return strings.Compare(x.key, y.key) })
}

// decoded puts an object in its place, and records what is wrong with it. It is called
// by several goroutines.
func (l *loading) decoded(w wanted, o *store.Object, undecodable *backend.UndecodableError) {
	size, err := 0, error(nil)
	if undecodable == nil {
		size, err = l.measure(o)
	}
	at := &l.versions[w.place]
	at.newestObject = loaded{o, size}
	if at.oldestObject != nil {
		store.ShareAttributes(at.oldestObject, o)
	}
	if undecodable == nil && w.revision > l.oldest {
		l.later[w.revision-l.oldest-1] = o
	}
	if undecodable == nil && err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if undecodable != nil {
		l.undecodable = append(l.undecodable, undecodable)
	}
	if l.failed == nil {
		l.failed = err
	}
}

// finish makes the objects the backend's state, unless the backend was closed meanwhile,
// or some could not be decoded and Config.OnUndecodable is Fail.
func (l *loading) finish(bounds journal.Bounds) error {
	b := l.backend
	slices.SortFunc(l.undecodable, func(x, y *backend.UndecodableError) int { return cmp.Compare(x.Revision, y.Revision) })
	switch {
	case l.failed != nil:
		return l.failed
	case len(l.undecodable) > 0 && b.config.OnUndecodable == Fail:
		return fmt.Errorf("%d objects cannot be decoded, such as this: set OnUndecodable to Keep to open the others: %w", len(l.undecodable), l.undecodable[0])
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return store.ErrClosed
	}
	b.loaded = true
	b.tree.Load(l.state())
	if len(l.undecodable) > 0 {
		b.undecodable = undecodables{}
		for _, u := range l.undecodable {
			b.undecodable[u.Key] = u
		}
	}
	b.revision = store.Revision(bounds.Last)
	b.floor, b.first = store.Revision(bounds.Floor), store.Revision(bounds.First)
	b.window.Reset(b.revision)
	if l.oldest < bounds.Last {
		b.remember(l.past())
	}
	return nil
}

// state returns the objects of the newest state in order, and adds those that expire to
// the queue.
func (l *loading) state() []*store.Object {
	objects := make([]*store.Object, 0, len(l.order))
	for _, at := range l.order {
		o := l.versions[at.place].newestObject
		if o.object == nil {
			continue
		}
		objects = append(objects, o.object)
		if !o.object.Expires.IsZero() {
			l.backend.expiries.Add(o.object, o.size)
		}
	}
	return objects
}

// past returns the index of the oldest state.
func (l *loading) past() *pastIndex {
	index := newPastIndex(store.Revision(l.oldest), len(l.order))
	index.later = l.later
	for _, to := range l.order {
		if at := &l.versions[to.place]; at.oldest != 0 {
			index.add(at.key, at.oldest, at.oldestObject)
		}
	}
	return index
}
