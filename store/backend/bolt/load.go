package bolt

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
	"github.com/watchmill/watchmill/usercode"
)

// load reads the log: the newest state, and the size of the history. It also keeps the
// oldest state for a while, since an engine lists that next, which would take another scan
// of the log:
//
//	base ──────────┬──▶ scan ──▶ newest record of each key ──▶ decode those that are not yet
//	               └──▶ decode, while the history is scanned
//	history ───────────▶ scan
//
// scan finds the newest record of each key. All of the base is decoded: most of it belongs
// to the oldest state or to the newest, and decoding runs while the history is scanned. Each
// read between two waits for a decoder has a view of its own. All have the same records,
// since nothing is written to the log, or deleted from it, before it is loaded.
func (b *Backend) load(bounds journal.Bounds) error {
	now, err := expiry.Now(b.clock)
	if err != nil {
		return err
	}
	b.stage.trimmed = bounds.Trimmed
	l := newLoading(b, now)
	if err := l.scan(bounds); err != nil {
		return err
	}
	if err := l.decodeAll(); err != nil {
		return err
	}
	return l.finish(bounds)
}

type loading struct {
	backend *Backend
	// trimmed is the revision up to which only the base is left, oldest the oldest revision
	// whose state is known, last the newest.
	trimmed, oldest, last uint64
	// versions has an entry for each object of the two states, as far as the log has been
	// read, so that it does not grow with the objects that come and go. places has the index
	// of each key's entry, and free those of entries without an object.
	versions []versions
	places   map[string]int
	free     []int
	// order has the indexes of the objects' versions in the order of their keys.
	order []placed
	// later has the object of each revision after oldest that is the newest of its key: 8
	// bytes for each change of the history.
	later   []*store.Object
	started time.Time

	done, total int
	// mute: OnProgress has panicked, and is not called any more.
	mute bool

	mu          sync.Mutex // guards all below while objects are decoded
	base        []loadedBase
	undecodable []*backend.UndecodableError
	failed      error
}

// versions has the revisions of one key's records in the oldest and the newest state, zero
// where the object does not exist.
type versions struct {
	key string
	// newest is the record in the newest state, oldest the one in the oldest.
	newest, oldest uint64
	// newestObject is the object of newest, oldestObject that of oldest; nil until they
	// are decoded.
	newestObject loaded
	oldestObject *store.Object
}

// loaded is an object with its size, which only an object that expires has.
type loaded struct {
	object *store.Object
	size   int
}

// loadedBase is an object of the base, with the index of its key's versions at the time.
type loadedBase struct {
	loaded
	place int
}

// placed is the index of a key's versions.
type placed struct {
	key   string
	place int
}

// progressRun is how many records are read between two calls of OnProgress.
const progressRun = 10_000

func newLoading(b *Backend, now time.Time) *loading {
	return &loading{backend: b, started: now}
}

// read calls fn with a view of the log.
func (l *loading) read(fn func(journal.View) error) error {
	return l.backend.file.journal.Read(context.Background(), l.backend.name, fn)
}

// scan reads the whole log, and decodes the base meanwhile. A value of it that cannot be
// decoded is decoded again where it is needed, and is an error there. Records after the log's last are
// of a commit that failed when it was synced.
func (l *loading) scan(bounds journal.Bounds) error {
	l.trimmed, l.oldest, l.last = bounds.Trimmed, bounds.Oldest(), bounds.Last
	l.total = 2 * int(bounds.Last-bounds.Trimmed)
	l.backend.history.add(l.oldest, 0, l.started)
	d := newDecoding(&l.backend.values, l.decodedBase)
	defer d.running.Wait() // even if reading panics
	after := uint64(0)
	for more := true; more; {
		run := d.nextRun()
		more = false
		err := l.read(func(v journal.View) error {
			l.begin(v)
			return v.Scan(after, l.last, func(revision uint64, r journal.Record) (bool, error) {
				place, err := l.follow(revision, r)
				if err == nil && revision <= l.trimmed {
					run.add(wanted{revision, l.versions[place].key, place}, r)
				}
				after, more = revision, run.isFull()
				return !more, err
			})
		})
		if err != nil {
			return err
		}
		d.start(run, !more)
	}
	_ = d.wait()
	l.placeBase()
	return nil
}

// begin makes room for the base, before the first record. The base that is in the log is later than the bounds say if
// the deletion of history failed when it was synced.
func (l *loading) begin(v journal.View) {
	if l.places == nil {
		base := v.Base()
		l.trimmed = v.Bounds().Trimmed
		l.places, l.versions = make(map[string]int, base), make([]versions, 0, base)
		l.base = make([]loadedBase, 0, base)
	}
}

// decodedBase keeps an object of the base. It is called by several goroutines.
func (l *loading) decodedBase(w wanted, o *store.Object, undecodable *backend.UndecodableError) {
	size, err := l.measure(o)
	if undecodable != nil || err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base = append(l.base, loadedBase{loaded{o, size}, w.place})
}

// placeBase puts the objects of the base in their places.
func (l *loading) placeBase() {
	for _, b := range l.base {
		at := &l.versions[b.place]
		if at.oldest == uint64(b.object.Revision) {
			at.oldestObject = b.object
		}
		if at.newest == uint64(b.object.Revision) {
			at.newestObject = b.loaded
		}
	}
	l.base = nil
}

// measure returns the size of an object that expires.
func (l *loading) measure(o *store.Object) (size int, err error) {
	if o.Expires.IsZero() {
		return 0, nil
	}
	return backend.Measure(&l.backend.values.schema, o)
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
// previous record. It returns the index of the object's versions.
func (l *loading) follow(revision uint64, r journal.Record) (place int, err error) {
	l.progress()
	b := l.backend
	if revision > l.oldest {
		b.history.add(revision, int64(r.Size()), l.started)
	}
	if r.Kind == journal.Emit {
		return 0, nil
	}
	place = l.placeOf(r.Key)
	at := &l.versions[place]
	switch last := at.newest; {
	case last != 0 && r.Prev != last:
		return 0, b.corrupt(revision, fmt.Sprintf("%q does not continue its record of revision %d", r.Key, last))
	case last == 0 && r.Prev != 0 && revision > l.trimmed && r.Kind == journal.Put:
		return 0, b.corrupt(revision, fmt.Sprintf("%q did not exist, and continues another object's revision %d", r.Key, r.Prev))
	case r.Kind == journal.Delete && last == 0:
		return 0, b.corrupt(revision, fmt.Sprintf("%q is deleted, and did not exist", r.Key))
	case r.Kind == journal.Delete:
		at.newest = 0
	default:
		at.newest = revision
	}
	if revision <= l.oldest {
		at.oldest = at.newest
	}
	if at.none() {
		l.release(place)
	}
	return place, nil
}

// none reports whether the object exists in neither state.
func (v *versions) none() bool { return v.newest == 0 && v.oldest == 0 }

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
