package serve

import (
	"container/list"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/watchmill/watchmill/registry"
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

// encodingKey is a state of an object in a form.
type encodingKey struct {
	item  registry.Item
	shape shape
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

// of returns the bytes of an item, whole or partial, and keeps them.
func (e *encodings) of(item registry.Item, as shape) ([]byte, error) {
	key := encodingKey{item, as}
	e.mu.Lock()
	entry := e.byItem[key]
	if entry == nil {
		e.misses++
		entry = &encoding{key: key}
		e.byItem[key] = entry
	} else {
		e.hits++
	}
	e.mu.Unlock()
	entry.once.Do(func() {
		entry.text, entry.err = encode(item, as)
		e.keep(entry)
	})
	return entry.text, entry.err
}

// peek returns the bytes of an item for a get or a list. It keeps new ones only while the
// cache is less than half full, since lists would otherwise drive out the encodings that
// watches share.
func (e *encodings) peek(item registry.Item, as shape) ([]byte, error) {
	e.mu.Lock()
	entry, room := e.byItem[encodingKey{item, as}], e.size < e.limit/2
	e.mu.Unlock()
	if entry == nil && !room {
		return encode(item, as)
	}
	return e.of(item, as)
}

// keep counts a new entry and drops the oldest above the limit.
func (e *encodings) keep(entry *encoding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byItem[entry.key] != entry {
		return
	}
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

// encode returns an item as JSON.
func encode(item registry.Item, as shape) ([]byte, error) {
	if as != partial {
		return item.JSON()
	}
	return encodePartial(item, true)
}

// encodePartial returns an item's metadata as a PartialObjectMetadata, with apiVersion
// and kind if named is true.
func encodePartial(item registry.Item, named bool) ([]byte, error) {
	p := meta.AsPartialObjectMetadata(item.Meta())
	if rev := item.Revision(); rev > 0 {
		p.ResourceVersion = rev.String()
	}
	if named {
		p.Kind, p.APIVersion = "PartialObjectMetadata", metaGroup+"/v1"
	}
	return json.Marshal(p)
}
