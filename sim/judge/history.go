package judge

import (
	"maps"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// First is the revision of empty storage.
const First store.Revision = 1

// History is the simplest form of versioned storage: all changes in order, and the
// versions of each key. Make one with [NewHistory].
type History[T any] struct {
	equal    func(a, b T) bool
	log      []change[T]
	versions map[string][]version[T]
	// witnessed are the revisions that the engine received as events. It can only have
	// found the others by listing.
	witnessed []bool
	// joined are the revisions that storage shows as the one after them: those of a
	// transaction except its last.
	joined map[store.Revision]bool
	// parent is the history that this one forked from at revision forked.
	parent *History[T]
	forked store.Revision
}

// change is one write as storage acknowledged it. Now is the value after it, was
// the one before; nil if there is none. Emitted values are in now alone. Created
// is when the object came to be that it is about.
type change[T any] struct {
	kind     store.EventType
	key      string
	now, was *T
	created  store.Revision
}

// version is what a key held from revision since on; nil for nothing. The object
// came to be at created.
type version[T any] struct {
	since, created store.Revision
	value          *T
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

// Shown returns the revision that storage shows a change at rev to have.
func (h *History[T]) Shown(rev store.Revision) store.Revision {
	for h.joined[rev] {
		rev++
	}
	return rev
}

// Before returns the newest revision that is shown at or before rev: a consumer
// that stands at rev has nothing of what happens at one revision beyond.
func (h *History[T]) Before(rev store.Revision) store.Revision {
	for h.joined[rev] {
		rev--
	}
	return rev
}

// Own returns the revision of the change of a key that is shown at rev, or rev if
// nothing happened to the key there.
func (h *History[T]) Own(key string, rev store.Revision) store.Revision {
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

// Delete notes that the object under key was deleted.
func (h *History[T]) Delete(key string) store.Revision {
	return h.add(change[T]{kind: store.Deleted, key: key})
}

// Emit notes that value passed through without becoming state.
func (h *History[T]) Emit(key string, value T) store.Revision {
	return h.add(change[T]{kind: store.Emitted, key: key, now: &value})
}

func (h *History[T]) add(c change[T]) store.Revision {
	rev := h.Newest() + 1
	c.created = rev
	if c.kind != store.Emitted {
		was := h.at(c.key, h.Newest())
		if c.was = was.value; was.value != nil {
			c.created = was.created
		}
		h.versions[c.key] = append(h.versions[c.key], version[T]{since: rev, created: c.created, value: c.now})
	}
	h.log, h.witnessed = append(h.log, c), append(h.witnessed, false)
	return rev
}

// Newest returns the newest revision.
func (h *History[T]) Newest() store.Revision { return First + store.Revision(len(h.log)) }

// Witness notes that the engine was given the change at rev as it happened, by a
// watch that had lost nothing before. What it has in common with the history
// that it forked from was witnessed there too.
func (h *History[T]) Witness(rev store.Revision) {
	if h.parent != nil && rev <= h.forked {
		h.parent.Witness(rev)
	}
	if rev > First && rev <= h.Newest() {
		h.witnessed[rev-First-1] = true
	}
}

// Given notes what a watch handed to the engine: it was given the events as they
// happened, up to the first that does not have the revision after the one
// before.
func (h *History[T]) Given(batch backend.Batch) {
	for i, ev := range batch.Events {
		if ev.Revision != batch.After+store.Revision(i)+1 {
			return
		}
		h.Witness(ev.Revision)
	}
}

// Witnessed reports whether the engine was given rev as it happened.
func (h *History[T]) Witnessed(rev store.Revision) bool {
	return rev == First || rev <= h.Newest() && h.witnessed[rev-First-1]
}

// Keys returns all keys that there ever were, in order.
func (h *History[T]) Keys() []string { return slices.Sorted(maps.Keys(h.versions)) }

// Get returns the newest value under key, and the revision that it has had it
// since; ok is false if there is none.
func (h *History[T]) Get(key string) (value T, rev store.Revision, ok bool) {
	return h.At(key, h.Newest())
}

// At is Get at revision rev.
func (h *History[T]) At(key string, rev store.Revision) (value T, since store.Revision, ok bool) {
	v := h.at(key, rev)
	if v.value == nil {
		return value, 0, false
	}
	return *v.value, v.since, true
}

// Fork returns the history of a storage that went back to rev: all up to it
// happened, what came after did not. The two change independently from then on.
func (h *History[T]) Fork(rev store.Revision) *History[T] {
	f := NewHistory(h.equal)
	f.parent, f.forked = h, rev
	for at := First + 1; at <= min(rev, h.Newest()); at++ {
		f.add(*h.change(at))
		f.witnessed[at-First-1] = h.Witnessed(at)
	}
	return f
}

// Replay calls the functions for the changes up to rev, in order.
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

// change returns what happened at rev, which is above First.
func (h *History[T]) change(rev store.Revision) *change[T] { return &h.log[rev-First-1] }

// at returns what key held at rev.
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
	return v.value != nil && o.Revision == v.since && o.Created == v.created && h.equal(o.Value, *v.value)
}

// seen is what a selection shows of a change: whether it does, as which type,
// and with which value.
func (c *change[T]) seen(selects func(T) bool) (kind store.EventType, value *T, ok bool) {
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

// State is the keys of a state with the revisions of their objects.
type State map[string]store.Revision

// Keys returns the keys in order.
func (s State) Keys() []string { return slices.Sorted(maps.Keys(s)) }

// State returns what a selection shows of the state at rev.
func (h *History[T]) State(rev store.Revision, selects func(T) bool) State {
	s := State{}
	for key := range h.versions {
		if v := h.at(key, rev); v.value != nil && selects(*v.value) {
			s[key] = v.since
		}
	}
	return s
}

// missed returns the first revision in (after, through] that was witnessed and that
// the selection shows, zero if there is none.
func (h *History[T]) missed(after, through store.Revision, selects func(T) bool, witnessed func(store.Revision) bool) store.Revision {
	for rev := after + 1; rev <= through; rev++ {
		if _, _, shown := h.change(rev).seen(selects); shown && witnessed(rev) {
			return rev
		}
	}
	return 0
}
