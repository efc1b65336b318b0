package engine

import (
	"context"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/store/window"
)

// Engine serves reads and watches of a backend's objects from a cache, and passes
// writes through. Make one with [New]. All methods are safe for concurrent use.
type Engine[T any] struct{ core engineCore }

// engineCore is the untyped core of the façade. It is an interface, as are
// [watchCore] and [topicCore], to save compile time: a package that mentions
// Engine[Pod] would otherwise compile the methods of every generic type reachable
// through struct fields.
type engineCore interface {
	create(ctx context.Context, draft *store.Object, opts CreateOptions) (*store.Object, error)
	put(ctx context.Context, draft *store.Object, opts PutOptions) (*store.Object, error)
	update(ctx context.Context, key string, change backend.UpdateFunc, opts UpdateOptions) (*store.Object, error)
	replace(ctx context.Context, draft *store.Object, revision Revision) (*store.Object, error)
	modify(ctx context.Context, key string, change backend.ModifyFunc, opts ModifyOptions) (*store.Object, error)
	remove(ctx context.Context, key string, opts DeleteOptions, validate backend.ValidateFunc) (*store.Object, error)
	emit(ctx context.Context, draft *store.Object) (Revision, error)
	get(ctx context.Context, key string, opts GetOptions) (*store.Object, error)
	list(ctx context.Context, opts ListOptions) (*listed, error)
	byIndex(ctx context.Context, index, value string) ([]*store.Object, error)
	startWatch(ctx context.Context, opts WatchOptions, handle func(*watcher.Delivery)) (watchCore, error)
	process(ctx context.Context, opts WatchOptions, policy ErrorPolicy, handle func(context.Context, store.Event) error) (watchCore, error)
	newest() Revision
	waitFor(ctx context.Context, rev Revision) error
	waitReady(ctx context.Context) error
	ensureReached(ctx context.Context, rev Revision) error
	compact(ctx context.Context, rev Revision) error
	verify(ctx context.Context) error
	asSource() backend.ListerWatcher
	readiness() Readiness
	stats() Stats
	watches() []WatchInfo
	hostOf() *Host
	reportUncached(err error)
	storageBelow() backend.Backend
	writer() backend.Backend
	inCache(key string) *store.Object
	storeID(ctx context.Context) (string, error)
	timelineNow(ctx context.Context) (Timeline, error)
	drain(ctx context.Context) error
	close() error
	livenessOf() *liveness
}

// core is the untyped [Engine].
type core struct {
	cfg    settings
	schema *store.Schema
	host   *host
	// tokenID tells the engine's continue tokens from those of others.
	tokenID uint64
	ownHost *Host // closed with the engine; nil if the host was given
	storage *backend.Storage
	// ownBackend is closed with the engine; nil if the backend was given.
	ownBackend backend.Backend

	published window.Published
	feed      watcher.Feed
	registry  watcher.Registry
	ends      ends
	root      *actors.Ref[startUncached]
	stopped   chan struct{}
	parts     parts
	counts    counts
	// began is the revision that storage had when the engine was made, at which the
	// cache's history begins; zero if storage keeps history, or reading its revision is
	// I/O.
	began        Revision
	acknowledged acknowledged

	// serving is the parent of handlers' contexts, and bounds the verifier's calls. It ends as
	// soon as Close is called, which waits for both.
	serving     context.Context
	stopServing context.CancelCauseFunc

	draining atomic.Pointer[draining] // nil until Drain is called
	dropped  droppedAtClose
	liveness *liveness
	closing  closing
	// storageEnded: a call has found storage closed, which it stays.
	storageEnded atomic.Bool
}

// parts are the handles of the engine's actors, set once while it starts.
type parts struct {
	dispatcher *actors.Ref[dispatcher.Message]
	cache      *watchcache.Cache
	reflector  *reflector.Ref
}

// New starts an engine. It does not wait for the first list: until then
// Create, Update, Delete and Get work, Watch waits, and List waits or is served
// by the backend. Close the engine when done.
//
// Errors: [ErrConfig], for fields of the engine's own as a [*ConfigError];
// [ErrEngineClosed] if the host is closed.
func New[T any](cfg Config[T]) (*Engine[T], error) {
	if err := validateFunctions(&cfg); err != nil {
		return nil, err
	}
	core, err := newEngineCore(settingsOf(&cfg))
	if err != nil {
		return nil, err
	}
	e := &Engine[T]{core}
	reportLeak(e, core.livenessOf())
	return e, nil
}

// newEngineCore is newCore with an interface result; see [engineCore].
//
//go:noinline
func newEngineCore(cfg settings) (engineCore, error) { return newCore(cfg) }

// newCore is New without the type.
func newCore(cfg settings) (*core, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	e := &core{cfg: cfg, schema: &cfg.schema, stopped: make(chan struct{}), closing: closing{over: make(chan struct{})}}
	if cfg.cached() {
		e.counts.cacheLists = make([]cacheLists, 1+len(cfg.indexes))
	}
	e.serving, e.stopServing = context.WithCancelCause(context.Background())
	if err := e.openHost(); err != nil {
		return nil, err
	}
	e.tokenID = e.host.newID()
	e.liveness = &liveness{engine: cfg.name, logger: e.host.leakLogger}
	err := e.openBackend()
	if err == nil {
		err = e.spawn()
	}
	if err != nil {
		ctx, cancel := e.host.closeTime()
		defer cancel()
		_ = e.release(ctx) // nothing of it was used, so err matters more
		return nil, err
	}
	e.host.addEngine(e)
	return e, nil
}

func (e *core) openHost() (err error) {
	shared := e.cfg.host
	if shared == nil {
		if shared, err = NewHost(HostConfig{}); err != nil {
			return err
		}
		e.cfg.host, e.ownHost = shared, shared
	}
	e.host = coreOf(shared)
	return nil
}

func (e *core) openBackend() error {
	b := e.cfg.backend
	if b == nil {
		var err error
		b, err = memory.New(*e.schema, memory.Options{
			Clock: e.host.system.Clock(), Indexes: e.cfg.stateIndexes(), Retain: e.cfg.retain(),
			FirstRevision: e.cfg.firstRevision,
		})
		if err != nil {
			return configError(err)
		}
		e.ownBackend = b
	}
	e.storage = backend.NewStorage(b, *e.schema)
	e.verifyShared(b.Traits())
	if !b.Traits().KeepsHistory {
		e.began = e.currentRevision(context.Background())
	}
	if e.ownBackend != nil && e.cfg.cached() {
		// Memory holds the history after a list with State, so nothing is dropped before the
		// Reflector has begun.
		_, err := b.List(context.Background(), backend.ListOptions{State: true})
		return err
	}
	return nil
}

// alive returns nil, or ErrEngineClosed once Close was called.
func (e *core) alive() error {
	if e.liveness.closed.Load() {
		return ErrEngineClosed
	}
	return nil
}

// accepts returns nil, or why nothing new may begin: [ErrEngineClosed], or
// [ErrDraining].
func (e *core) accepts() error {
	if err := e.alive(); err != nil {
		return err
	}
	if e.draining.Load() != nil {
		return ErrDraining
	}
	return nil
}

// Host returns the engine's host.
func (e *Engine[T]) Host() *Host { return e.core.hostOf() }

// Backend returns the engine's backend. To discard history call [Engine.Compact]: a
// compaction of the backend itself does not reach the cache.
func (e *Engine[T]) Backend() backend.Backend { return e.core.storageBelow() }

func (e *core) hostOf() *Host { return e.cfg.host }

func (e *core) storageBelow() backend.Backend { return e.storage.Backend() }
