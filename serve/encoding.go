package serve

import (
	"cmp"
	"container/list"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"weak"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// encodings keeps the bytes of objects, so that each state of an object is encoded once
// for all its readers. Its size is bounded: the oldest encodings go first.
type encodings struct {
	limit int

	mu       sync.Mutex
	wholes   map[encodable]*encoding
	partials map[partialKey]*encoding
	oldest   list.List // of *encoding, in the order of their making
	size     int
	hits     uint64
	misses   uint64
}

// encodable is a state of an object in a form: whole or partial, and with or without
// managed fields.
type encodable struct {
	item  registry.Item
	shape accept.Shape
	lean  bool
}

// partialKey is a partial encodable. It does not keep the object, which may be far larger than its
// metadata. Whole ones have no such key, since making one takes a tenth of the time of a delivery.
type partialKey struct {
	object weak.Pointer[store.Object]
	kind   *registry.Kind // differs between an object and its scale, which shows less of the metadata
	lean   bool
}

// encoding is the bytes of one state, which its first reader makes.
type encoding struct {
	drop func() // takes it out of the map
	once sync.Once
	text []byte
	err  error
}

func newEncodings(limit int) *encodings {
	return &encodings{limit: limit, wholes: map[encodable]*encoding{}, partials: map[partialKey]*encoding{}}
}

// forEvent returns the bytes of an item for an event of a watch, and keeps them.
func (e *encodings) forEvent(state encodable) ([]byte, error) {
	return e.read(e.entry(state, math.MaxInt), state)
}

// forRead returns the bytes of an item for a get or a list. It keeps new ones only while the
// cache is less than half full, since lists would otherwise drive out the encodings that
// watches share.
func (e *encodings) forRead(state encodable) ([]byte, error) {
	entry := e.entry(state, e.limit/2)
	if entry == nil {
		return state.encode()
	}
	return e.read(entry, state)
}

// entry returns the entry of a state. If there is none, it makes one, whose bytes have yet to be
// made, or returns nil if the cache has most bytes or more.
func (e *encodings) entry(state encodable, most int) *encoding {
	if state.shape == accept.Partial {
		return entryOf(e, e.partials, partialKey{state.item.Weak(), state.item.Kind(), state.lean}, most)
	}
	return entryOf(e, e.wholes, state, most)
}

func entryOf[K comparable](e *encodings, entries map[K]*encoding, key K, most int) *encoding {
	e.mu.Lock()
	defer e.mu.Unlock()
	if entry := entries[key]; entry != nil {
		e.hits++
		return entry
	}
	e.misses++
	if e.size >= most {
		return nil
	}
	entry := &encoding{drop: func() { delete(entries, key) }}
	entries[key] = entry
	return entry
}

// read returns the bytes of a state's entry, which its first reader makes.
func (e *encodings) read(entry *encoding, state encodable) ([]byte, error) {
	entry.once.Do(func() {
		returned := false
		defer func() {
			if !returned {
				entry.err = &usercode.PanicError{Func: "MarshalJSON", Key: state.item.Key(), Value: usercode.ErrGoexit}
			}
			e.keep(entry)
		}()
		entry.text, entry.err = state.encode()
		returned = true
	})
	return entry.text, entry.err
}

// keep counts a new entry and drops the oldest above the limit. An error is not kept, so that the next
// reader may get the bytes, unless it is that of a panic: code that panics is not called for each reader.
func (e *encodings) keep(entry *encoding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if entry.err != nil && !errors.Is(entry.err, usercode.ErrPanic) {
		entry.drop()
		return
	}
	e.oldest.PushBack(entry)
	e.size += entry.cost()
	for e.size > e.limit && e.oldest.Len() > 1 {
		old := e.oldest.Remove(e.oldest.Front()).(*encoding)
		e.size -= old.cost()
		old.drop()
	}
}

// cost is the memory that an entry takes: its text, and about 256 bytes of structures.
func (e *encoding) cost() int { return len(e.text) + 256 }

func (e *encodings) stats() (hits, misses uint64, bytes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hits, e.misses, e.size
}

// encode returns the item as JSON. A panic of the kind's own encoding is an error, even for
// the readers that share it. Its other errors are such that clients do not repeat the request, which
// would fail again, and may be a write that was done.
func (s encodable) encode() (text []byte, err error) {
	panicked := usercode.Call("MarshalJSON", s.item.Key(), func() {
		switch {
		case s.shape == accept.Partial:
			text, err = encodePartial(s.item, s.lean)
		case s.lean:
			text, err = s.item.LeanJSON()
		default:
			text, err = s.item.JSON()
		}
	})
	if err != nil && !errors.Is(err, usercode.ErrPanic) {
		err = apierrors.NewInternalError(err)
	}
	return text, cmp.Or(panicked, err)
}

// The kind and the version of an item's metadata.
const (
	partialKind    = "PartialObjectMetadata"
	partialVersion = metav1.GroupName + "/v1"
)

// encodePartial returns an item's metadata as a PartialObjectMetadata, without managed
// fields if lean.
func encodePartial(item registry.Item, lean bool) ([]byte, error) {
	p := meta.AsPartialObjectMetadata(item.Meta())
	if rev := item.Revision(); rev > 0 {
		p.ResourceVersion = rev.String()
	}
	if lean {
		p.ManagedFields = nil
	}
	p.Kind, p.APIVersion = partialKind, partialVersion
	return json.Marshal(p)
}
