package serve

import (
	"cmp"
	"container/list"
	"encoding/json"
	"math"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// encodings keeps the bytes of objects, so that each state of an object is encoded once
// for all its readers. Its size is bounded: the oldest encodings go first.
type encodings struct {
	limit int

	mu     sync.Mutex
	byItem map[encodingKey]*encoding
	oldest list.List // of *encoding, in the order of their making
	size   int
	hits   uint64
	misses uint64
}

// encodingKey is a state of an object in a form: whole or partial, and with or without
// managed fields.
type encodingKey struct {
	item  registry.Item
	shape shape
	lean  bool
}

// encoding is the bytes of one state, which its first reader makes.
type encoding struct {
	key  encodingKey
	once sync.Once
	text []byte
	err  error
}

func newEncodings(limit int) *encodings {
	return &encodings{limit: limit, byItem: map[encodingKey]*encoding{}}
}

// of returns the bytes of an item in a form, and keeps them.
func (e *encodings) of(key encodingKey) ([]byte, error) {
	return e.read(e.entry(key, math.MaxInt))
}

// peek returns the bytes of an item for a get or a list. It keeps new ones only while the
// cache is less than half full, since lists would otherwise drive out the encodings that
// watches share.
func (e *encodings) peek(key encodingKey) ([]byte, error) {
	entry := e.entry(key, e.limit/2)
	if entry == nil {
		return key.encode()
	}
	return e.read(entry)
}

// entry returns the entry of a key. If there is none, it makes one, whose bytes have yet to be
// made, or returns nil if the cache has most bytes or more.
func (e *encodings) entry(key encodingKey, most int) *encoding {
	e.mu.Lock()
	defer e.mu.Unlock()
	if entry := e.byItem[key]; entry != nil {
		e.hits++
		return entry
	}
	e.misses++
	if e.size >= most {
		return nil
	}
	entry := &encoding{key: key}
	e.byItem[key] = entry
	return entry
}

// read returns the bytes of an entry, which its first reader makes.
func (e *encodings) read(entry *encoding) ([]byte, error) {
	entry.once.Do(func() {
		returned := false
		defer func() {
			if !returned {
				entry.err = &usercode.PanicError{Func: "MarshalJSON", Key: entry.key.item.Key(), Value: usercode.ErrGoexit}
			}
			e.keep(entry)
		}()
		entry.text, entry.err = entry.key.encode()
		returned = true
	})
	return entry.text, entry.err
}

// keep counts a new entry and drops the oldest above the limit.
func (e *encodings) keep(entry *encoding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.oldest.PushBack(entry)
	e.size += entry.cost()
	for e.size > e.limit && e.oldest.Len() > 1 {
		old := e.oldest.Remove(e.oldest.Front()).(*encoding)
		e.size -= old.cost()
		delete(e.byItem, old.key)
	}
}

// cost is the memory that an entry takes: its text, and about 256 bytes of structures.
func (e *encoding) cost() int { return len(e.text) + 256 }

func (e *encodings) stats() (hits, misses uint64, bytes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hits, e.misses, e.size
}

// encode returns the item as JSON. A panic of the kind's own encoding is an error, also for
// the readers that share it. Its other errors are such that clients do not repeat the request, which
// would fail again, and may be a write that was done.
func (k encodingKey) encode() (text []byte, err error) {
	panicked := usercode.Call("MarshalJSON", k.item.Key(), func() {
		switch {
		case k.shape == partial:
			text, err = encodePartial(k.item, k.lean)
		case k.lean:
			text, err = k.item.LeanJSON()
		default:
			text, err = k.item.JSON()
		}
	})
	if err != nil {
		err = apierrors.NewInternalError(err)
	}
	return text, cmp.Or(panicked, err)
}

// The kind and the version of an item's metadata.
const (
	partialKind    = "PartialObjectMetadata"
	partialVersion = metaGroup + "/v1"
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
