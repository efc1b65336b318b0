package apiextensions

import (
	"context"
	"sync"
	"time"

	"github.com/watchmill/watchmill/registry"
)

// othersKnowAfter is how long servers that share storage may take to learn that a definition is being
// deleted. Until then they create objects of its kind.
const othersKnowAfter = 2 * time.Second

// creations are the writes under way that may create objects of a kind. An object that is created
// while the last ones are deleted would stay in storage that lasts, and be there when the kind is
// defined again.
type creations struct {
	// shared: other servers may create objects, too.
	shared bool

	mu       sync.Mutex
	underWay int
	// ended is when the definition was found to be deleted; zero before.
	ended time.Time
}

// begin counts a write, until the function that it returns is called.
func (c *creations) begin() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended.IsZero() {
		return func() {} // it creates nothing
	}
	c.underWay++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.underWay--
	}
}

// allowed reports whether objects may be created.
func (c *creations) allowed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended.IsZero()
}

// end forbids the creation of objects, and reports whether none can be created any more.
func (c *creations) end(now time.Time) (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.IsZero() {
		c.ended = now
	}
	return c.underWay == 0 && (!c.shared || now.Sub(c.ended) >= othersKnowAfter)
}

// counted is a resource whose writes are counted.
type counted struct {
	registry.Resource
	creations *creations
}

func (c counted) Create(ctx context.Context, namespace string, body []byte, opts registry.WriteOptions) (registry.Item, error) {
	defer c.creations.begin()()
	return c.Resource.Create(ctx, namespace, body, opts)
}

func (c counted) Update(ctx context.Context, key string, change func(live registry.Item) ([]byte, error), opts registry.WriteOptions) (it registry.Item, created bool, err error) {
	defer c.creations.begin()()
	return c.Resource.Update(ctx, key, change, opts)
}

func (c counted) Apply(ctx context.Context, key string, config []byte, opts registry.WriteOptions) (it registry.Item, created bool, err error) {
	defer c.creations.begin()()
	return c.Resource.Apply(ctx, key, config, opts)
}
