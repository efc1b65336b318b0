package bolt

import (
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/internal/waiting"
)

// stage has the changes of the group of writes that is being committed, which become
// visible when they are durable. Only the goroutine that commits uses it.
type stage struct {
	// objects has the changed objects by key, nil for a deleted one.
	objects map[string]*store.Object
	// revision is the newest.
	revision store.Revision
	// records has the encoded records. The next group uses it again.
	records []byte
	// trimmed is the revision up to which records of discarded history had been deleted when
	// there was last no space.
	trimmed uint64
}

const (
	// minRecords is the size of stage.records, and maxRecords the largest that is used
	// again, in bytes.
	minRecords = 4 << 10
	maxRecords = 2 * commit.MaxBytes
)

// add encodes a record. Its result is valid until the group is committed.
func (s *stage) add(r journal.Record, revision store.Revision) []byte {
	if size := r.Size(); cap(s.records)-len(s.records) < size {
		// Records before it stay where they are.
		s.records = make([]byte, 0, max(size, min(2*cap(s.records), maxRecords), minRecords))
	}
	start := len(s.records)
	s.records = r.AppendTo(s.records, uint64(revision))
	return s.records[start:len(s.records):len(s.records)]
}

// reset forgets what is staged.
func (s *stage) reset() {
	clear(s.objects)
	s.revision, s.records = 0, s.records[:0]
	if cap(s.records) > maxRecords {
		s.records = nil
	}
}

// commitLog is a Backend as the queue of commits sees it. Users do not get its methods.
type commitLog Backend

func (b *Backend) commitLog() commit.Log { return (*commitLog)(b) }

// Commit makes the durable changes visible to readers and watches.
func (l *commitLog) Commit(publish func()) {
	b := (*Backend)(l)
	b.stage.reset()
	if b.show(publish) {
		b.file.upkeep.start()
	}
}

// show is Commit without the upkeep, and reports whether there is work for that. It sets the alarms last: the
// clock may end the goroutine, and the next commit sets them.
func (b *Backend) show(publish func()) (surplus bool) {
	var woken []*waiting.Follower
	defer func() { waiting.WakeAll(woken) }()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	publish()
	b.latest.Store(nil)
	b.window.Trim(b.history.clock)
	woken = b.waiting.Take()
	oldest := uint64(b.oldest())
	surplus = b.history.surplus(oldest, uint64(b.revision), b.history.clock, false) > oldest
	if !b.trim.IsSet() {
		b.trim.SetIn(b.config.Retain.MinAge)
	}
	b.expire.SetTo(b.expiries, b.history.clock)
	return surplus
}

// Rollback discards the staged changes.
func (l *commitLog) Rollback() { l.stage.reset() }

// Prepare reads what the writes of a group replace. Only the goroutine that commits
// changes the state, so that they need not read it again.
func (l *commitLog) Prepare(read func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage.revision = l.revision
	read()
}

// durable is an object under a key, nil if there is none, without the staged changes.
type durable struct {
	object  *store.Object
	at      store.Revision // the state that has it
	unknown bool           // its value cannot be decoded
	closed  bool           // the backend is closed, so nothing is known
}

// durable returns the object under key. The caller holds the lock.
func (b *Backend) durable(key string) durable {
	if b.closed {
		return durable{closed: true}
	}
	o := b.find(key)
	return durable{object: o, at: b.revision, unknown: b.undecodable.of(o) != nil}
}

// staged returns the object under key after the staged changes, nil if there is none,
// whether its value is unknown, and the revision of the next change. It fails with
// [store.ErrClosed].
func (b *Backend) staged(key string, before durable) (o *store.Object, unknown bool, next store.Revision, err error) {
	if before.closed {
		return nil, false, 0, store.ErrClosed
	}
	next = b.stage.revision + 1
	if o, changed := b.stage.objects[key]; changed {
		return o, false, next, nil
	}
	return before.object, before.unknown, next, nil
}

// change is an event on its way into the file.
type change struct {
	event store.Event
	// size is the bytes of the object that the event replaces or deletes, own those of
	// the new one.
	size, own int
	// bytes is the length of the record.
	bytes int
}

// put stages an event, which has the next revision, with its encoded value. It returns the
// bytes of the record.
func (b *Backend) put(batch *journal.Batch, ev store.Event, value encoded) (size int) {
	o := ev.Object
	r := journal.Record{
		Kind: journal.Put, Tag: value.tag, Sealed: value.sealed,
		Created: uint64(o.Created), Written: o.Written, Key: []byte(o.Key), Value: value.data,
	}
	switch ev.Type {
	case store.Deleted:
		r.Kind = journal.Delete
		b.stage.objects[o.Key] = nil
	case store.Emitted:
		r.Kind = journal.Emit
	default:
		r.Expires = o.Expires
		b.stage.objects[o.Key] = o
	}
	if ev.Prev != nil {
		r.Prev = uint64(ev.Prev.Revision)
	}
	b.stage.revision = ev.Revision
	data := b.stage.add(r, ev.Revision)
	batch.Entries = append(batch.Entries, journal.Entry{Log: b.name, Revision: uint64(ev.Revision), Data: data})
	return len(data)
}

// apply is the only place that changes the state. The caller holds the lock.
func (b *Backend) apply(c change) {
	o, prev := c.event.Object, c.event.Prev
	b.size = c.size
	b.window.Append(c.event, o.Written)
	if prev != nil {
		b.expiries.Remove(prev)
	}
	switch c.event.Type {
	case store.Added, store.Modified:
		b.tree.Put(o)
		b.recent = o
		if !o.Expires.IsZero() {
			b.expiries.Add(o, c.own)
		}
	case store.Deleted:
		b.tree.Delete(o.Key)
		b.recent = nil
	}
	b.revision = c.event.Revision
	b.history.add(uint64(b.revision), int64(c.bytes), o.Written)
}
