package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// Engine is a decorator over a backend: it serves reads and watches from a
// cache that it keeps current, and passes writes through. Make one with [New].
type Engine[T any] struct {
	cfg     Config[T]
	schema  store.Schema[T]
	host    *Host
	ownHost bool
	storage *backend.Storage[T]
	// ownBackend is closed with the engine; nil if the backend was given.
	ownBackend backend.Backend[T]

	published store.Published[T]
	feed      watcher.Feed[T]
	top       *actors.Ref[adopt[T]]
	stopped   chan struct{}
	parts     parts[T]
	counts    counts
	sources   followers

	// life ends with the engine; leave ends it.
	life  context.Context
	leave context.CancelCauseFunc

	closing sync.Once
	closed  atomic.Bool
	failed  error
}

// parts are the handles of the engine's actors, set once while it starts.
type parts[T any] struct {
	dispatcher *actors.Ref[dispatcher.Message[T]]
	cache      *watchcache.Cache[T]
	reflector  *reflector.Ref[T]
}

// New starts an engine. It returns before the first list is done: until then
// Create, Update, Delete and Get work, Watch waits, and List waits or is served
// by the backend. Close the engine when done.
//
// Errors: [ErrConfig], for fields of the engine's own as a [*ConfigError];
// [ErrEngineClosed] if the host is closed.
func New[T any](cfg Config[T]) (*Engine[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	e := &Engine[T]{cfg: cfg.withDefaults(), stopped: make(chan struct{})}
	e.schema = e.cfg.schema()
	e.life, e.leave = context.WithCancelCause(context.Background())
	if err := e.openHost(); err != nil {
		return nil, err
	}
	if err := e.openBackend(); err != nil {
		e.release()
		return nil, err
	}
	if err := e.start(); err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

func (e *Engine[T]) openHost() (err error) {
	if e.host = e.cfg.Host; e.host == nil {
		e.host, err = NewHost(HostConfig{})
		e.ownHost = true
	}
	return err
}

func (e *Engine[T]) openBackend() error {
	b := e.cfg.Backend
	if b == nil {
		var err error
		b, err = memory.New(e.schema, memory.Options{Clock: e.host.Clock()})
		if err != nil {
			return err
		}
		e.ownBackend = b
	}
	e.storage = backend.NewStorage(b, e.schema)
	return nil
}

// release closes what New has opened.
func (e *Engine[T]) release() error {
	var first error
	if e.ownBackend != nil {
		first = e.ownBackend.Close()
	}
	if e.ownHost {
		if err := e.host.Close(); first == nil {
			first = err
		}
	}
	return first
}

// Close ends every watch with [ErrEngineClosed] and returns when nothing of the
// engine is left. If a handler does not return it gives up after the host's
// CloseTimeout with an error that names what still runs. Calls after it fail
// with ErrEngineClosed. Closing again, or meanwhile, waits for the first Close
// and returns what it did.
func (e *Engine[T]) Close() error {
	e.closing.Do(func() {
		e.closed.Store(true)
		e.top.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), e.host.timeout)
		defer cancel()
		err := e.host.await(ctx, e.stopped)
		if err != nil {
			err = fmt.Errorf("close engine %s: %w", e.cfg.Name, e.top.StillRunning(err))
		}
		if released := e.release(); released != nil {
			err = released
		}
		e.failed = err
	})
	return e.failed
}

// open returns nil, or ErrEngineClosed once Close was called.
func (e *Engine[T]) open() error {
	if e.closed.Load() {
		return ErrEngineClosed
	}
	return nil
}

// Host returns what the engine runs on.
func (e *Engine[T]) Host() *Host { return e.host }

// Backend returns where the engine's objects live.
func (e *Engine[T]) Backend() backend.Backend[T] { return e.storage.Backend() }
