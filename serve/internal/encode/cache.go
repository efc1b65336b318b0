package encode

import (
	"container/list"
	"errors"
	"math"
	"sync"
	"weak"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Cache keeps the bytes of objects, so that each state of an object is encoded once
// for all its readers. Its size is bounded: the oldest encodings go first. It is safe
// for concurrent use.
type Cache struct {
	limit int

	mu       sync.Mutex
	wholes   map[State]*encoding
	partials map[partialKey]*encoding
	oldest   list.List // of *encoding, in the order of their making
	size     int
	hits     uint64
	misses   uint64
}

// partialKey is a partial [State]. It does not keep the object, which may be far larger than its
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

// NewCache returns a cache of at most limit bytes, or of one encoding that is larger.
func NewCache(limit int) *Cache {
	return &Cache{limit: limit, wholes: map[State]*encoding{}, partials: map[partialKey]*encoding{}}
}

// ForEvent returns the bytes of an item for an event of a watch, and keeps them.
func (c *Cache) ForEvent(state State) ([]byte, error) {
	return c.read(c.entry(state, math.MaxInt), state)
}

// ForRead returns the bytes of an item for a get or a list. It keeps new ones only while the
// cache is less than half full, since lists would otherwise drive out the encodings that
// watches share.
func (c *Cache) ForRead(state State) ([]byte, error) {
	entry := c.entry(state, c.limit/2)
	if entry == nil {
		return state.Encode()
	}
	return c.read(entry, state)
}

// entry returns the entry of a state. If there is none, it makes one, whose bytes have yet to be
// made, or returns nil if the cache has most bytes or more.
func (c *Cache) entry(state State, most int) *encoding {
	if state.Shape == accept.Partial {
		return entryOf(c, c.partials, partialKey{state.Item.Weak(), state.Item.Kind(), state.Lean}, most)
	}
	return entryOf(c, c.wholes, state, most)
}

func entryOf[K comparable](c *Cache, entries map[K]*encoding, key K, most int) *encoding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := entries[key]; entry != nil {
		c.hits++
		return entry
	}
	c.misses++
	if c.size >= most {
		return nil
	}
	entry := &encoding{drop: func() { delete(entries, key) }}
	entries[key] = entry
	return entry
}

// read returns the bytes of a state's entry, which its first reader makes.
func (c *Cache) read(entry *encoding, state State) ([]byte, error) {
	entry.once.Do(func() {
		returned := false
		defer func() {
			if !returned {
				entry.err = &usercode.PanicError{Func: "MarshalJSON", Key: state.Item.Key(), Value: usercode.ErrGoexit}
			}
			c.keep(entry)
		}()
		entry.text, entry.err = state.Encode()
		returned = true
	})
	return entry.text, entry.err
}

// keep counts a new entry and drops the oldest above the limit. An error is not kept, so that the next
// reader may get the bytes, unless it is that of a panic: code that panics is not called for each reader.
func (c *Cache) keep(entry *encoding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry.err != nil && !errors.Is(entry.err, usercode.ErrPanic) {
		entry.drop()
		return
	}
	c.oldest.PushBack(entry)
	c.size += entry.cost()
	for c.size > c.limit && c.oldest.Len() > 1 {
		old := c.oldest.Remove(c.oldest.Front()).(*encoding)
		c.size -= old.cost()
		old.drop()
	}
}

// cost is the memory that an entry takes: its text, and about 256 bytes of structures.
func (e *encoding) cost() int { return len(e.text) + 256 }

// Stats returns how often bytes were kept already, how often they had to be made, and how many bytes are kept.
func (c *Cache) Stats() (hits, misses uint64, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits, c.misses, c.size
}
