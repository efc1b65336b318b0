package bolt

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/usercode"
)

// load reads the log: the newest state, and the size of the history. It also keeps the
// index of the oldest state, since an engine lists that next, which would take another
// scan of the log.
func (b *Backend) load(bounds journal.Bounds) error {
	l := newLoading(b)
	err := b.file.journal.Read(context.Background(), b.name, func(v journal.View) error {
		if err := l.scan(v); err != nil {
			return err
		}
		return l.decodeAll(v)
	})
	if err != nil {
		return err
	}
	return l.finish(bounds)
}

type loading struct {
	backend *Backend
	// oldest is the oldest revision whose state is known.
	oldest uint64
	// versions has an entry for each object of the two states, as far as the log has been
	// read, so that it does not grow with the objects that come and go. places has the index
	// of each key's entry, and free those of entries without an object.
	versions []versions
	places   map[string]int
	free     []int
	// order has the indexes of the objects' versions in the order of their keys.
	order   []int
	started time.Time

	done, total int
	// mute: OnProgress has panicked, and is not called any more.
	mute bool

	mu          sync.Mutex // guards undecodable and failed while objects are decoded
	undecodable []*backend.UndecodableError
	failed      error
}

// versions has the revisions of one key's records in two states, zero where the object
// does not exist.
type versions struct {
	key string
	// newest is the record in the newest state, past the one in the oldest.
	newest, past uint64
	loaded
}

// loaded is an object with its size.
type loaded struct {
	object *store.Object
	size   int
}

// progressRun is how many records are read between two calls of OnProgress.
const progressRun = 10_000

func newLoading(b *Backend) *loading {
	return &loading{backend: b, places: map[string]int{}, started: b.clock.Now()}
}

// scan reads the whole log.
func (l *loading) scan(v journal.View) error {
	l.oldest = v.Bounds().Oldest()
	l.total = 2 * int(v.Bounds().Last-v.Bounds().Trimmed)
	return v.Scan(0, math.MaxUint64, l.follow)
}

// progress counts a record. A panic in OnProgress is contained here, since the journal
// would take it for damage of the file.
func (l *loading) progress() {
	tell := l.backend.config.OnProgress
	if l.done++; l.done%progressRun != 0 || tell == nil || l.mute {
		return
	}
	if err := usercode.Call("Config.OnProgress", "", func() { tell(l.done, max(l.done, l.total)) }); err != nil {
		l.mute = true
		l.backend.file.failed(err)
	}
}

// follow takes the next record of the log, and checks that it continues the object's
// previous record.
func (l *loading) follow(revision uint64, r journal.Record) (bool, error) {
	l.progress()
	b := l.backend
	b.history.add(revision, int64(r.Size()), l.started)
	if r.Kind == journal.Emit {
		return true, nil
	}
	place := l.placeOf(r.Key)
	at := &l.versions[place]
	switch last := at.newest; {
	case last != 0 && r.Prev != last:
		return false, b.corrupt(revision, fmt.Sprintf("%q does not continue its record of revision %d", r.Key, last))
	case r.Kind == journal.Delete && last == 0:
		return false, b.corrupt(revision, fmt.Sprintf("%q is deleted, and did not exist", r.Key))
	case r.Kind == journal.Delete:
		at.newest = 0
	default:
		at.newest = revision
	}
	if revision <= l.oldest {
		at.past = at.newest
	}
	if at.none() {
		l.release(place)
	}
	return true, nil
}

// none reports whether the object exists in neither state.
func (v *versions) none() bool { return v.newest == 0 && v.past == 0 }

// placeOf returns the index of a key's entry.
func (l *loading) placeOf(key []byte) int {
	place, known := l.places[string(key)]
	if known {
		return place
	}
	if last := len(l.free) - 1; last >= 0 {
		place, l.free = l.free[last], l.free[:last]
	} else {
		place = len(l.versions)
		l.versions = append(l.versions, versions{})
	}
	l.versions[place].key = string(key)
	l.places[l.versions[place].key] = place
	return place
}

// release frees the entry of an object that exists no more.
func (l *loading) release(place int) {
	delete(l.places, l.versions[place].key)
	l.versions[place] = versions{}
	l.free = append(l.free, place)
}

// decodeAll decodes the record of each object in the newest state, and sorts the keys
// meanwhile.
func (l *loading) decodeAll(v journal.View) error {
	l.places = nil
	d := &decoding{values: &l.backend.values, read: l.progress, done: l.decoded}
	for place, at := range l.versions {
		if at.newest != 0 {
			d.records = append(d.records, wanted{at.newest, at.key, place})
		}
	}
	slices.SortFunc(d.records, func(x, y wanted) int { return cmp.Compare(x.revision, y.revision) })
	l.total = max(l.total, l.done+len(d.records))
	var sorting sync.WaitGroup
	sorting.Go(l.sort)
	defer sorting.Wait()
	return d.from(v)
}

// sort fills in order.
func (l *loading) sort() {
	l.order = make([]int, 0, len(l.versions)-len(l.free))
	for place := range l.versions {
		if !l.versions[place].none() {
			l.order = append(l.order, place)
		}
	}
	slices.SortFunc(l.order, func(x, y int) int { return cmp.Compare(l.versions[x].key, l.versions[y].key) })
}

// decoded puts an object in its place, and records what is wrong with it. It is called
// by several goroutines.
func (l *loading) decoded(w wanted, o *store.Object, undecodable *backend.UndecodableError) {
	size, err := 0, error(nil)
	if undecodable == nil && !o.Expires.IsZero() {
		size, err = backend.Measure(&l.backend.values.schema, o)
	}
	l.versions[w.place].loaded = loaded{o, size}
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

// finish makes the objects the backend's state, unless some could not be decoded and
// Config.OnUndecodable is Fail.
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
	b.tree.Load(l.state())
	if len(l.undecodable) > 0 {
		b.undecodable = map[string]*backend.UndecodableError{}
		for _, u := range l.undecodable {
			b.undecodable[u.Key] = u
		}
	}
	b.revision = store.Revision(bounds.Last)
	b.floor, b.first = store.Revision(bounds.Floor), store.Revision(bounds.First)
	b.history.drop(uint64(b.oldest()))
	b.window.Reset(b.revision)
	if l.oldest < bounds.Last {
		b.remember(l.past())
	}
	return nil
}

// state returns the objects of the newest state in order, and adds those that expire to
// the queue.
func (l *loading) state() []*store.Object {
	var objects []*store.Object
	for _, place := range l.order {
		o := l.versions[place].loaded
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
	index := &pastIndex{revision: store.Revision(l.oldest)}
	for _, place := range l.order {
		if at := &l.versions[place]; at.past != 0 {
			index.keys, index.records = append(index.keys, at.key), append(index.records, at.past)
		}
	}
	return index
}
