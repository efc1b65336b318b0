package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/ownhost"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
	"github.com/watchmill/watchmill/usercode"
)

// sharedInformer is the untyped [SharedInformer]: the state shared by the
// informer's actor, its handlers and its callers.
type sharedInformer struct {
	cfg     settings
	host    *engine.Host
	ownHost *ownhost.Host
	actor   *actors.Ref[message]
	sink    reflectorSink
	source  atomic.Pointer[reflector.Ref]

	// writing is held while objects change, until the change is published. It
	// keeps addIndexers and the actor apart. The actor does not wait for it, since
	// addIndexers may have it for long.
	writing   sync.Mutex
	objects   *cache.ThreadSafeStore[*store.Object]
	transform transformer
	// unpublished: objects have a change that is not published; guarded by writing.
	// If it stays so, the informer ends.
	unpublished bool
	// indexing is the number of calls of addIndexers, during which the actor holds the
	// source.
	indexing atomic.Int32
	// storeID identifies the storage that objects are of, and storages counts the
	// storages so far; guarded by writing.
	storeID   string
	storages  int
	published atomic.Pointer[state]
	waiters   waiters

	// firstList is closed when the informer has synced or ended.
	firstList     chan struct{}
	firstListOnce sync.Once
	// sourceErr is the source's last error since its last update; see sourceProblem.
	sourceErr atomic.Pointer[SourceError]
	// ended is why the informer ended.
	ended atomic.Pointer[error]
	// stopped is closed when the actors have ended.
	stopped     chan struct{}
	stoppedOnce sync.Once

	handlers atomic.Int64  // current number
	notified atomic.Uint64 // see Stats.Notifications

	mu sync.Mutex
	// listeners are those of the handlers that have not ended, in the order in
	// which they were added. Guarded by mu.
	listeners []*listener
}

// newCore is New without the type.
func newCore(cfg settings) (informerCore, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &sharedInformer{cfg: cfg, firstList: make(chan struct{}), stopped: make(chan struct{})}
	s.transform = transformer{cfg: &s.cfg, report: s.report, indexFuncs: make(cache.Indexers[*store.Object])}
	indexers, err := s.transform.indexers(cfg.indexers)
	if err != nil {
		return nil, &engine.ConfigError{Field: "Indexers", Problem: err.Error()}
	}
	if s.objects, err = cache.NewThreadSafeStore(indexers); err != nil {
		return nil, &engine.ConfigError{Field: "Indexers", Problem: err.Error()}
	}
	s.transform.indexed(cfg.indexers)
	s.publish(0)
	if s.host, s.ownHost, err = ownhost.Of(cfg.host); err != nil {
		return nil, err
	}
	return s, s.spawn()
}

// spawn starts the actor. Its first message opens the sink to the Reflector, since
// the sink needs the actor's Ref.
func (s *sharedInformer) spawn() error {
	s.sink.held.Store(true)
	s.actor = actors.Spawn(engine.SystemOf(s.host), s.cfg.name, func() actors.Behavior[message] {
		return &updater{informer: s}
	}, actors.Options{Capacity: mailboxSize, OnRoom: s.room})
	s.sink.actor = s.actor
	if !s.actor.Tell(recheck{}) {
		return fmt.Errorf("%w: its host is closed", ErrClosed)
	}
	return nil
}

// room lets the Reflector continue.
func (s *sharedInformer) room() {
	if source := s.source.Load(); source != nil {
		source.Room()
	}
}

// publish publishes the current objects as the state at revision rev. The caller
// holds writing.
func (s *sharedInformer) publish(rev store.Revision) *state {
	now := &state{view: s.objects.View(), revision: rev, storages: s.storages}
	s.published.Store(now)
	return now
}

func (s *sharedInformer) snapshot() snapshotCore { return s.published.Load() }

func (s *sharedInformer) quarantined() []quarantined { return s.transform.quarantined() }

func (s *sharedInformer) addIndexers(indexers cache.Indexers[*store.Object]) error {
	if s.ended.Load() != nil {
		return ErrClosed
	}
	contained, err := s.transform.indexers(indexers)
	if err != nil {
		return err
	}
	s.indexing.Add(1)
	defer func() { // even if a function ends the goroutine
		s.indexing.Add(-1)
		s.actor.Tell(recheck{})
	}()
	return s.index(indexers, contained)
}

// index adds indexes; contained are those functions as they are called.
func (s *sharedInformer) index(indexers, contained cache.Indexers[*store.Object]) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.unpublished {
		return ErrClosed
	}
	if err := s.objects.AddIndexers(contained); err != nil {
		return err
	}
	s.transform.indexed(indexers)
	s.publish(s.published.Load().revision)
	return nil
}

func (s *sharedInformer) addHandler(handle func(notification), opts HandlerOptions) (*Registration, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	l := &listener{
		informer: s, options: opts, handle: handle,
		pending: pending{policy: opts.Policy, buffer: opts.Buffer, transform: &s.transform},
		started: make(chan struct{}), done: make(chan struct{}),
	}
	if s.ended.Load() != nil || !s.track(l) {
		return nil, ErrClosed
	}
	return &Registration{l}, nil
}

// track adds a listener and passes it to the actor.
func (s *sharedInformer) track(l *listener) bool {
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	if s.actor.Tell(addListener{l}) {
		return true
	}
	s.forget(l)
	return false
}

// forget removes a listener that has ended.
func (s *sharedInformer) forget(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.listeners, l); i >= 0 {
		s.listeners = slices.Delete(s.listeners, i, i+1)
	}
}

// dropAll ends the deliveries in progress, including those of handlers that were removed.
func (s *sharedInformer) dropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		l.dropped.Store(true)
	}
}

// listenerOf returns the listener with the ID that has not ended, even if it was removed;
// nil if there is none.
func (s *sharedInformer) listenerOf(id actors.ID) *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		if l.box.ID() == id {
			return l
		}
	}
	return nil
}

// runningHandlers returns the names of the handlers that are being called.
func (s *sharedInformer) runningHandlers() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		if l.running.Load() {
			names = append(names, l.options.Name)
		}
	}
	return names
}

func (s *sharedInformer) name() string { return s.cfg.name }

func (s *sharedInformer) hostOf() *engine.Host { return s.host }

func (s *sharedInformer) err() error {
	if err := s.ended.Load(); err != nil {
		return *err
	}
	return nil
}

// end records why the informer ended, and ends the waiting calls.
func (s *sharedInformer) end(err error) {
	if s.ended.CompareAndSwap(nil, &err) {
		s.waiters.end()
		s.endFirstList()
	}
}

// endFirstList ends the calls of WaitSynced.
func (s *sharedInformer) endFirstList() { s.firstListOnce.Do(func() { close(s.firstList) }) }

// actorsGone ends the calls of close.
func (s *sharedInformer) actorsGone() { s.stoppedOnce.Do(func() { close(s.stopped) }) }

func (s *sharedInformer) stop() {
	s.end(ErrClosed)
	s.actor.Stop()
	s.ownHost.CloseAfter(s.stopped)
}

func (s *sharedInformer) close() error {
	s.end(ErrClosed)
	s.actor.Stop()
	if actors.InTurn() {
		s.ownHost.CloseAfter(s.stopped)
		return &CloseError{Informer: s.cfg.name, Handlers: s.runningHandlers(), Cause: engine.ErrInHandler}
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.host.CloseTimeout())
	defer cancel()
	if err := s.host.Await(ctx, s.stopped); err != nil {
		s.ownHost.CloseAfter(s.stopped)
		return &CloseError{Informer: s.cfg.name, Handlers: s.runningHandlers(), Cause: err}
	}
	return s.ownHost.Close()
}

// sourceFailed records an error of the source.
func (s *sharedInformer) sourceFailed(err error) {
	failed := &SourceError{Informer: s.cfg.name, Err: err}
	s.sourceErr.Store(failed)
	s.report(failed)
}

// sourceProblem returns the source's last error, nil if the source is being followed. After an
// error that interrupts only a watch, a quiet source sends no update.
func (s *sharedInformer) sourceProblem() *SourceError {
	if source := s.source.Load(); source != nil && source.Stats().Phase == reflector.Watching {
		return nil
	}
	return s.sourceErr.Load()
}

// sourceEnded ends the informer, whose source cannot be followed any more.
func (s *sharedInformer) sourceEnded(why *SourceError) {
	s.end(why)
	s.report(why)
}

// report calls OnError. A panic in it is logged.
func (s *sharedInformer) report(err error) {
	if panicked := usercode.Call("Config.OnError", "", func() { s.cfg.onError(err) }); panicked != nil {
		engine.SystemOf(s.host).Logger().Error("OnError failed", "reason", panicked, "error", err)
	}
}

// Stats are an informer's counters. Each is exact, but they are not a snapshot of
// one instant.
type Stats struct {
	// Revision is that of the state that can be read, Objects the number of its
	// objects, Quarantined the number of those in quarantine.
	Revision             store.Revision
	Objects, Quarantined int
	// Handlers is the number of handlers; for their lag see [SharedInformer.Handlers].
	Handlers int
	// Notifications counts changes, each once however many handlers there are.
	// Initial states and resyncs do not count.
	Notifications uint64
	// Source are the Reflector's counters: lists, watches, errors.
	Source engine.SourceStats
}

func (s *sharedInformer) stats() Stats {
	now := s.published.Load()
	stats := Stats{
		Revision: now.revision, Objects: now.size(), Quarantined: len(s.quarantined()),
		Handlers: int(s.handlers.Load()), Notifications: s.notified.Load(),
	}
	if source := s.source.Load(); source != nil {
		stats.Source = source.Stats()
	}
	return stats
}
