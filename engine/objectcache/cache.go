package objectcache

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/ownhost"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/usercode"
)

// Cache holds the referenced objects, and follows each of them. Make one with [New].
// All methods are safe for concurrent use.
type Cache[T any] struct{ core cacheCore }

// cacheCore is the untyped core of the façade: a [cache]. It is an interface to save
// compile time: each package that mentions Cache[Secret] would otherwise compile the
// methods of every generic type reachable through struct fields.
type cacheCore interface {
	acquire(key string) (refCore, error)
	stats() Stats
	hostOf() *engine.Host
	close() error
}

// New starts a cache. It is empty and costs one idle actor. Close it when done.
//
// Errors: [ErrConfig]; [ErrClosed] if the host is closed.
func New[T any](cfg Config[T]) (*Cache[T], error) {
	core, err := newCore(cfg.settings())
	if err != nil {
		return nil, err
	}
	return &Cache[T]{core}, nil
}

// Acquire returns a reference to the object under key, whether it exists or not. The
// first reference to a key makes the cache follow it. Acquire does not wait for the
// object; [Ref.Get] does. Release the reference when done.
//
// Errors: [ErrInvalidKey], [ErrClosed].
func (c *Cache[T]) Acquire(key string) (*Ref[T], error) {
	core, err := c.core.acquire(key)
	if err != nil {
		return nil, err
	}
	return &Ref[T]{core}, nil
}

// Host returns the cache's host.
func (c *Cache[T]) Host() *engine.Host { return c.core.hostOf() }

// Stats returns the current numbers. It takes time proportional to the number of
// keys.
func (c *Cache[T]) Stats() Stats { return c.core.stats() }

// Close stops all Reflectors and waits until they have ended. Waiting Gets and all later
// calls fail with [ErrClosed]; references need not be released any more. If the source
// does not return although its context is cancelled, Close fails after the host's
// CloseTimeout, with an error that names what still runs; that still ends when the source
// returns. Closing again waits again. A function of the configuration may call it: there it
// does not wait, and the error is [engine.ErrInHandler].
func (c *Cache[T]) Close() error { return c.core.close() }

// cache is the untyped [Cache].
type cache struct {
	cfg        settings
	host       *engine.Host
	ownHost    *ownhost.Host
	clock      clock.Clock
	epoch      time.Time // when the cache was made
	supervisor *actors.Ref[message]
	// stopped is closed when the actors are gone.
	stopped     chan struct{}
	stoppedOnce sync.Once

	// reflectors is how many Reflectors there are, starts how many were started.
	reflectors atomic.Int64
	starts     atomic.Uint64

	mu sync.Mutex
	// entries are those with references, or with a Reflector that has not ended.
	entries map[string]*entry
	closed  bool

	closing sync.Once
}

// newCore is New without the type.
func newCore(cfg settings) (cacheCore, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	c := &cache{cfg: cfg, stopped: make(chan struct{}), entries: make(map[string]*entry)}
	var err error
	if c.host, c.ownHost, err = ownhost.Of(cfg.host); err != nil {
		return nil, err
	}
	c.clock = c.host.Clock()
	c.epoch = c.clock.Now()
	c.supervisor = actors.Spawn(engine.SystemOf(c.host), c.cfg.name, func() actors.Behavior[message] {
		return &supervisor{cache: c, children: make(map[actors.ID]*entry)}
	}, actors.Options{})
	if !c.supervisor.Tell(begin{}) {
		return nil, fmt.Errorf("%w: its host is closed", ErrClosed)
	}
	return c, nil
}

func (c *cache) acquire(key string) (refCore, error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	e, recheck := c.count(key)
	if e == nil {
		return nil, about(key, ErrClosed)
	}
	if recheck {
		c.recheck(e)
	}
	return &reference{cache: c, entry: e}, nil
}

// count counts a reference to key, creating the entry if necessary. It returns nil if
// the cache is closed, and whether a recheck is needed.
func (c *cache) count(key string) (e *entry, recheck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false
	}
	if e = c.entries[key]; e == nil {
		e = newEntry(key)
		c.entries[key] = e
	}
	return e, e.acquire()
}

func (c *cache) close() error {
	c.closing.Do(func() {
		c.shut()
		c.supervisor.Stop()
	})
	if actors.InTurn() {
		c.ownHost.CloseAfter(c.stopped)
		return c.stillRunning(engine.ErrInHandler)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.host.CloseTimeout())
	defer cancel()
	if err := c.host.Await(ctx, c.stopped); err != nil {
		c.ownHost.CloseAfter(c.stopped)
		return c.stillRunning(err)
	}
	return c.ownHost.Close()
}

// stillRunning returns the error of a Close that stops waiting for that cause.
func (c *cache) stillRunning(cause error) error {
	return fmt.Errorf("close object cache %s: %w", c.cfg.name, c.supervisor.StillRunning(cause))
}

func (c *cache) hostOf() *engine.Host { return c.host }

// actorsGone lets Close return.
func (c *cache) actorsGone() { c.stoppedOnce.Do(func() { close(c.stopped) }) }

// shut refuses new references and closes the entries.
func (c *cache) shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, e := range c.entries {
		e.close()
	}
	c.entries = nil
}

// forget drops an entry without Reflector unless it has references.
func (c *cache) forget(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !e.referenced() && c.entries[e.key] == e {
		delete(c.entries, e.key)
	}
}

// recheck makes the supervisor recheck the entry, unless it is about to.
func (c *cache) recheck(e *entry) {
	if !e.rechecking.Swap(true) {
		c.supervisor.Tell(recheck{e})
	}
}

// now is the time since the cache was made: the difference of two times, which
// on the real clock does not jump when that is set.
func (c *cache) now() time.Duration { return c.clock.Now().Sub(c.epoch) }

// report calls OnError. A panic in it is logged.
func (c *cache) report(err error) {
	if panicked := usercode.Call("Config.OnError", "", func() { c.cfg.onError(err) }); panicked != nil {
		engine.SystemOf(c.host).Logger().Error("OnError failed", "reason", panicked, "error", err)
	}
}

// Stats are the current numbers of a cache.
type Stats struct {
	// References is how many have not been released. Keys is how many keys the
	// cache holds: those with references, and those whose Reflector is stopping
	// because they have none any more. Both are 0 once the cache is closed.
	References, Keys int
	// Synced is how many keys can be read without waiting, Immutable how many of these
	// are immutable objects that are no longer followed.
	Synced, Immutable int
	// Idle is how many keys are referenced but not followed until the next Get.
	Idle int
	// Reflectors is how many there are, including those that are stopping: never
	// two for one key.
	Reflectors int
	// Starts is how many Reflectors have been started.
	Starts uint64
}

func (c *cache) stats() Stats {
	s := Stats{Reflectors: int(c.reflectors.Load()), Starts: c.starts.Load()}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		s.add(e.count())
	}
	return s
}

// count returns the number of references and the phase.
func (e *entry) count() (refs int, p phase) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refs, e.view.Load().phase
}

func (s *Stats) add(refs int, p phase) {
	s.Keys++
	if refs == 0 {
		return // the supervisor is about to forget it
	}
	s.References += refs
	switch p {
	case frozen:
		s.Immutable++
		s.Synced++
	case live:
		s.Synced++
	case stopped, lost:
		s.Idle++
	}
}
