package judge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// First is the revision of empty storage.
const First store.Revision = 1

// History is the simplest form of versioned storage: all changes in order, and the
// versions of each key. Make one with [NewHistory]. It is not safe for concurrent use.
type History[T any] struct {
	equal    func(a, b T) bool
	log      []change[T]
	versions map[string][]version[T]
	// received are the revisions that the engine received as events. It can only have
	// found the others by listing.
	received []bool
	// joined are the revisions that storage shows as a later one: all of a transaction
	// except its last.
	joined map[store.Revision]bool
	// parent is the history that this one forked from at revision forked.
	parent *History[T]
	forked store.Revision
}

// change is one write that storage acknowledged. Now is the value after it and was the
// value before it; nil if there is none. An emitted value is in now. Created is the
// revision at which the object was created. Written is when the change was made, zero if that is
// not known. Expires is when the object expires after it, and expired when the object before it would have.
type change[T any] struct {
	kind                      store.EventType
	key                       string
	now, was                  *T
	created                   store.Revision
	written, expires, expired time.Time
}

// version is the value of a key from revision since on; nil if there is no object. The
// object was created at revision created.
type version[T any] struct {
	since, created store.Revision
	value          *T
	// written and expires are as in change.
	written, expires time.Time
}

// NewHistory returns the history of empty storage. Equal compares values.
func NewHistory[T any](equal func(a, b T) bool) *History[T] {
	return &History[T]{equal: equal, versions: map[string][]version[T]{}, joined: map[store.Revision]bool{}}
}

// Join notes that the last n changes, of different keys, happened at one revision,
// which is shown as that of the last.
func (h *History[T]) Join(n int) {
	for rev := h.Newest() - store.Revision(n) + 1; rev < h.Newest(); rev++ {
		h.joined[rev] = true
	}
}

// Shown returns the revision with which storage shows the change at rev.
func (h *History[T]) Shown(rev store.Revision) store.Revision {
	for h.joined[rev] {
		rev++
	}
	return rev
}

// Before returns the newest revision at or before rev that storage shows. A consumer whose
// position is rev has no change of a transaction that rev is inside of.
func (h *History[T]) Before(rev store.Revision) store.Revision {
	for h.joined[rev] {
		rev--
	}
	return rev
}

// RevisionOf returns the revision of the change to key that storage shows at rev, or rev if no
// change to key is shown there.
func (h *History[T]) RevisionOf(key string, rev store.Revision) store.Revision {
	for at := rev; h.joined[rev-1] && at > First && at <= h.Newest() && (at == rev || h.joined[at]); at-- {
		if h.change(at).key == key {
			return at
		}
	}
	return rev
}

// Put notes that value was written under key and returns the revision that
// storage must have given it.
func (h *History[T]) Put(key string, value T) store.Revision {
	return h.add(change[T]{kind: store.Added, key: key, now: &value})
}

// Delete notes that the object under key was deleted, and returns the revision of that.
func (h *History[T]) Delete(key string) store.Revision {
	return h.add(change[T]{kind: store.Deleted, key: key})
}

// Emit notes that value was emitted, without becoming state, and returns the revision of
// that.
func (h *History[T]) Emit(key string, value T) store.Revision {
	return h.add(change[T]{kind: store.Emitted, key: key, now: &value})
}

func (h *History[T]) add(c change[T]) store.Revision {
	rev := h.Newest() + 1
	c.created = rev
	if c.kind != store.Emitted {
		was := h.at(c.key, h.Newest())
		c.was = was.value
		if was.value != nil {
			c.created = was.created
		}
		h.versions[c.key] = append(h.versions[c.key], version[T]{since: rev, created: c.created, value: c.now})
	}
	h.log, h.received = append(h.log, c), append(h.received, false)
	return rev
}

// Date notes when the newest change was made and, if it has stored an object with a TTL, when that expires. The
// times of a change without a date are not judged.
func (h *History[T]) Date(written, expires time.Time) {
	c := h.change(h.Newest())
	c.written, c.expires, c.expired = written, expires, h.at(c.key, h.Newest()-1).expires
	if c.kind == store.Added {
		v := &h.versions[c.key][len(h.versions[c.key])-1]
		v.written, v.expires = written, expires
	}
}

// Newest returns the newest revision.
func (h *History[T]) Newest() store.Revision { return First + store.Revision(len(h.log)) }

// MarkReceived notes that the engine received the change at rev as an event, from a watch that
// had lost nothing before. If rev is from before the fork of this history, its parent notes
// it, too.
func (h *History[T]) MarkReceived(rev store.Revision) {
	if h.parent != nil && rev <= h.forked {
		h.parent.MarkReceived(rev)
	}
	if rev > First && rev <= h.Newest() {
		h.received[rev-First-1] = true
	}
}

// MarkReceivedBatch notes the batch that a watch of storage delivered to the engine. The engine has
// received its events up to the first whose revision does not follow the one before.
func (h *History[T]) MarkReceivedBatch(batch backend.Batch) {
	for i, ev := range batch.Events {
		if ev.Revision != batch.After+store.Revision(i)+1 {
			return
		}
		h.MarkReceived(ev.Revision)
	}
}

// Received reports whether the engine received the change at rev as an event.
func (h *History[T]) Received(rev store.Revision) bool {
	return rev == First || rev <= h.Newest() && h.received[rev-First-1]
}

// Keys returns all keys that ever had an object, in order.
func (h *History[T]) Keys() []string { return slices.Sorted(maps.Keys(h.versions)) }

// Get returns the newest value under key and the revision at which it was written; ok is
// false if there is none.
func (h *History[T]) Get(key string) (value T, rev store.Revision, ok bool) {
	return h.At(key, h.Newest())
}

// At returns the value under key at revision rev and the revision at which it was written;
// ok is false if there is none.
func (h *History[T]) At(key string, rev store.Revision) (value T, since store.Revision, ok bool) {
	v := h.at(key, rev)
	if v.value == nil {
		return value, 0, false
	}
	return *v.value, v.since, true
}

// Fork returns the history of a storage that went back to rev, which has the changes up to
// rev and none after it. The two then change independently, except that revisions up to rev
// that are received in the fork are received in h, too. The changes up to rev are not dated in
// the fork.
func (h *History[T]) Fork(rev store.Revision) *History[T] {
	f := NewHistory(h.equal)
	f.parent, f.forked = h, rev
	for at := First + 1; at <= min(rev, h.Newest()); at++ {
		c := *h.change(at)
		c.written = time.Time{}
		f.add(c)
		f.received[at-First-1] = h.Received(at)
	}
	return f
}

// JudgeTimeline returns a [*Failure] of [OneTimeline] if what continues the history before
// is of another one, h. Where names the watch or the page.
func (h *History[T]) JudgeTimeline(where string, before *History[T]) error {
	if h == before {
		return nil
	}
	return Failed(OneTimeline, where, "it continues a list of the history that storage had up to revision %d, and is of one that differs after %d", before.Newest(), h.forked)
}

// Replay calls put, emit or remove for each change up to rev, in order. It returns the first
// error of these.
func (h *History[T]) Replay(rev store.Revision, put, emit func(key string, value T) error, remove func(key string) error) error {
	for at := First + 1; at <= min(rev, h.Newest()); at++ {
		c := h.change(at)
		var err error
		switch c.kind {
		case store.Deleted:
			err = remove(c.key)
		case store.Emitted:
			err = emit(c.key, *c.now)
		default:
			err = put(c.key, *c.now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// change returns the change at rev, which is above First.
func (h *History[T]) change(rev store.Revision) *change[T] { return &h.log[rev-First-1] }

// at returns the version of key at rev; the zero version if there was none.
func (h *History[T]) at(key string, rev store.Revision) version[T] {
	versions := h.versions[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].since <= rev {
			return versions[i]
		}
	}
	return version[T]{}
}

// same reports whether o is the object of a version.
func (h *History[T]) same(o *engine.Object[T], v version[T]) bool {
	return v.value != nil && o.Revision == v.since && o.Created == v.created && h.equal(o.Value, *v.value) && v.dates(o)
}

// dates reports whether o has the times of a version, as far as these are known.
func (v *version[T]) dates(o *engine.Object[T]) bool { return haveTimes(o, v.written, v.expires) }

// haveTimes reports whether o was written and expires at these times, or that is not known.
func haveTimes[T any](o *engine.Object[T], written, expires time.Time) bool {
	return written.IsZero() || o.Written.Equal(written) && o.Expires.Equal(expires)
}

// times describes when o was written and expires.
func times[T any](o *engine.Object[T]) string {
	return fmt.Sprintf("written at %v, expires at %v", o.Written, o.Expires)
}

// selectedAs returns how a selection shows a change: with which type and value. It returns false
// if the selection does not show it.
func (c *change[T]) selectedAs(selects func(T) bool) (kind store.EventType, value *T, ok bool) {
	before, after := c.was != nil && selects(*c.was), c.now != nil && selects(*c.now)
	switch {
	case c.kind == store.Emitted:
		return store.Emitted, c.now, after
	case before && after:
		return store.Modified, c.now, true
	case after:
		return store.Added, c.now, true
	case before:
		return store.Deleted, c.was, true
	}
	return 0, nil, false
}

// State has the revision of each object of a state, by key.
type State map[string]store.Revision

// Keys returns the keys in order.
func (s State) Keys() []string { return slices.Sorted(maps.Keys(s)) }

// State returns the selected objects of the state at rev.
func (h *History[T]) State(rev store.Revision, selects func(T) bool) State {
	s := State{}
	for key := range h.versions {
		if v := h.at(key, rev); v.value != nil && selects(*v.value) {
			s[key] = v.since
		}
	}
	return s
}

// missed returns the first revision in (after, through] that was received and that the
// selection shows, so that a watch must have an event of it; zero if there is none.
func (h *History[T]) missed(after, through store.Revision, selects func(T) bool, received func(store.Revision) bool) store.Revision {
	for rev := after + 1; rev <= through; rev++ {
		if _, _, shown := h.change(rev).selectedAs(selects); shown && received(rev) {
			return rev
		}
	}
	return 0
}
