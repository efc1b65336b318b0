package bolt

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/usercode"
)

// coldReader reads history from the file for one watch that is behind memory.
//
//	file ──▶ fill, in a goroutine that ends with its run ──▶ ready ──▶ Next
//	                        ▲                                  │
//	                        └───────── when it is half empty ──┘
//
// The backend's lock guards all but recent, which only fill uses.
type coldReader struct {
	watcher *watcher
	limits  coldLimits
	// at is the revision up to which the file was read.
	at store.Revision
	// ready are events that were read, taken is how many of them were handed out.
	ready []store.Event
	taken int
	// filling: a goroutine reads.
	filling bool
	// waiting: the consumer found nothing, and is to be notified.
	waiting bool
	// err ends the watch after the events in ready, unless memory has what follows.
	err error
	// bare is the revision up to which the events in ready are without Prev.
	bare store.Revision
	// recent has objects of earlier events by their revisions, to be the Prev of later
	// events without reading the file. recentBytes is the size of their values.
	recent      map[uint64]*store.Object
	recentBytes int
}

// newColdReader reads for w from where it is.
func newColdReader(w *watcher) *coldReader {
	return &coldReader{watcher: w, limits: cold, at: w.Through, recent: map[uint64]*store.Object{}}
}

// maxRecent is how many objects recent has before it is emptied.
const maxRecent = 8192

// coldLimits bound what is read from the file ahead of a watch.
type coldLimits struct {
	// run is how many records are read at once, and runBytes how many bytes of values end a
	// run early.
	run, runBytes int
	// recentBytes is how many bytes of values recent has before it is emptied.
	recentBytes int
}

var cold = coldLimits{run: 1024, runBytes: 4 << 20, recentBytes: 16 << 20}

// take returns up to limit events, the revision that the watch reaches with them, and
// whether there is nothing more to come until the next run. The caller holds the lock.
func (c *coldReader) take(limit int) (events []store.Event, through store.Revision, done bool, err error) {
	left := c.ready[c.taken:]
	if len(left) == 0 {
		if c.err != nil {
			return nil, 0, false, c.err
		}
		c.waiting = true
		return nil, c.at, !c.filling, nil
	}
	n := min(len(left), limit)
	if left[0].Revision <= c.bare && left[n-1].Revision > c.bare {
		n = slices.IndexFunc(left, func(ev store.Event) bool { return ev.Revision > c.bare })
	}
	events = left[:n:n]
	c.taken += len(events)
	if c.taken == len(c.ready) {
		return events, c.at, !c.filling, nil
	}
	return events, events[len(events)-1].Revision, false, nil
}

// low reports whether to start the next run: half of what was ready after the last one was
// handed out, none is being read, and the watch has not failed. So two runs are ready at
// most, however few large objects a run has.
func (c *coldReader) low() bool {
	return !c.filling && c.err == nil && 2*c.taken >= len(c.ready)
}

// start reads a run in a goroutine of its own. The caller holds the lock.
func (c *coldReader) start() {
	c.filling = true
	c.watcher.backend.running.Go(c.fill)
}

// fill reads a run. If user code ends the goroutine, the watch ends.
func (c *coldReader) fill() {
	w, b := c.watcher, c.watcher.backend
	b.mu.Lock()
	run := &coldRead{reader: c, at: c.at, bare: w.noPrev && c.at+store.Revision(c.limits.run) < b.revision, index: b.indexes.ofNew()}
	b.mu.Unlock()
	var err error = &usercode.PanicError{Func: "Codec or Schema", Value: usercode.ErrGoexit}
	defer func() { c.add(run, err) }()
	err = b.file.journal.Read(context.Background(), b.name, run.read)
	if run.failed != nil {
		err = run.failed
	}
}

// add adds what a run has read to ready, and notifies the consumer if it waits.
func (c *coldReader) add(run *coldRead, err error) {
	w, b := c.watcher, c.watcher.backend
	b.mu.Lock()
	c.ready = append(c.ready[c.taken:len(c.ready):len(c.ready)], run.events...)
	c.taken = 0
	c.at, c.err, c.filling = run.at, err, false
	if run.bare {
		c.bare = run.at
	}
	wake := c.waiting
	c.waiting = false
	b.mu.Unlock()
	if wake {
		w.Wake()
	}
}

// coldRead is one run.
type coldRead struct {
	reader *coldReader
	events []store.Event
	at     store.Revision
	state  *tree.View
	index  *pastIndex // has objects that New has read, if it is not forgotten
	failed error      // ends the watch after events
	// bare: the events are read without Prev, which halves the reading. Such a run ends
	// before the newest revision, with which the consumer may be given the state.
	bare  bool
	bytes int
	n     int
}

// read reads a run in a view of the log. If records that it needs are deleted there, the watch
// ends, though readers may not know yet that their history is discarded.
func (r *coldRead) read(v journal.View) error {
	if bounds := v.Bounds(); uint64(r.at) < bounds.Trimmed {
		return &store.ExpiredError{Requested: r.at, Oldest: store.Revision(bounds.Oldest())}
	}
	now, err := r.reader.watcher.backend.snapshot()
	if err != nil {
		return err
	}
	r.state = now.State()
	err = v.Scan(uint64(r.at), uint64(now.Revision), func(revision uint64, rec journal.Record) (bool, error) {
		return r.take(v, revision, rec)
	})
	if err == nil && !r.full() && r.failed == nil {
		// Records that were published after the view was taken are not in it.
		r.at = max(r.at, min(now.Revision, store.Revision(v.Bounds().Last)))
	}
	return err
}

// take makes an event of a record, unless the watch does not cover it.
func (r *coldRead) take(v journal.View, revision uint64, rec journal.Record) (more bool, err error) {
	r.n++
	r.bytes += len(rec.Value)
	s := r.storedAt(revision, rec)
	if store.HasPrefix(s.key, r.reader.watcher.Prefix) {
		ev, err := r.event(v, s)
		var unknown *backend.UndecodableError
		if errors.As(err, &unknown) && r.reader.watcher.backend.config.OnUndecodable == Fail {
			r.failed = err
			return false, nil
		}
		if err != nil && unknown == nil {
			return false, err
		}
		r.events = append(r.events, ev)
	}
	r.at = store.Revision(revision)
	return !r.full(), nil
}

// full reports whether the run has as much as it may.
func (r *coldRead) full() bool {
	return r.n >= r.reader.limits.run || r.bytes >= r.reader.limits.runBytes
}

// storedAt returns a record of the file, which it refers to, with the key that the
// backend has for it already.
func (r *coldRead) storedAt(revision uint64, rec journal.Record) stored {
	s := stored{revision: revision, record: rec}
	if o := r.index.written(store.Revision(revision)); o != nil {
		s.key = o.Key
	} else {
		s.key = string(rec.Key)
	}
	return s
}

// event returns the event of a record. With a [*backend.UndecodableError] it has
// zero values where they are not known.
func (r *coldRead) event(v journal.View, s stored) (store.Event, error) {
	b, rec := r.reader.watcher.backend, s.record
	ev := store.Event{Type: eventType(rec), Revision: store.Revision(s.revision)}
	var unknown, prevUnknown, err error
	if r.bare && ev.Type == store.Deleted {
		err = schemaCall(s.key, func() { ev.Object = b.values.header(s) })
		return ev, err
	}
	if rec.Prev != 0 && !r.bare {
		if ev.Prev, prevUnknown, err = r.object(v, rec.Prev); err != nil {
			return ev, err
		}
	}
	if ev.Type == store.Deleted {
		err = schemaCall(s.key, func() { ev.Object = b.values.schema.Gone(ev.Prev, ev.Revision, rec.Written) })
		return ev, cmp.Or(err, prevUnknown)
	}
	ev.Object, unknown, err = r.decode(s, ev.Prev)
	return ev, cmp.Or(err, errors.Join(unknown, prevUnknown))
}

// schemaCall calls functions of the schema, whose panic the journal would take for damage of
// the file.
func schemaCall(key string, call func()) error { return usercode.Call("Schema", key, call) }

// object returns the object of a revision: one that was just read, or is the
// newest, or from the file.
func (r *coldRead) object(v journal.View, revision uint64) (o *store.Object, unknown, err error) {
	if o := r.reader.recent[revision]; o != nil {
		return o, nil, nil
	}
	b := r.reader.watcher.backend
	rec, found, err := v.Get(revision)
	if err == nil && !found {
		err = b.corrupt(revision, "the record is missing")
	}
	if err != nil {
		return nil, nil, err
	}
	r.bytes += len(rec.Value)
	return r.decode(r.storedAt(revision, rec), nil)
}

// decode returns the object of a record. An object of the index, or of the newest record of
// a key, is shared with the state, so it must not be changed. Any other is decoded and kept
// in recent, and shares equal attributes with prev and with the state's object, which saves
// memory.
func (r *coldRead) decode(s stored, prev *store.Object) (o *store.Object, unknown, err error) {
	if o := r.index.written(store.Revision(s.revision)); o != nil {
		return o, nil, nil
	}
	newest := r.state.Get(s.key)
	if newest != nil && uint64(newest.Revision) == s.revision {
		return newest, nil, nil
	}
	var undecodable *backend.UndecodableError
	err = schemaCall(s.key, func() { o, undecodable = r.reader.watcher.backend.values.decode(s.kept()) })
	if err != nil {
		return nil, nil, err
	}
	if undecodable != nil {
		return o, undecodable, nil
	}
	store.ShareAttributes(o, prev)
	store.ShareAttributes(o, newest)
	r.reader.keep(o, s)
	return o, nil, nil
}

// keep adds the object of a record to recent.
func (c *coldReader) keep(o *store.Object, s stored) {
	size := len(s.record.Value)
	if len(c.recent) >= maxRecent || c.recentBytes+size > c.limits.recentBytes {
		clear(c.recent)
		c.recentBytes = 0
	}
	c.recent[s.revision] = o
	c.recentBytes += size
}
