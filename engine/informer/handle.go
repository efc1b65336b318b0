package informer

import (
	"context"
	"fmt"
	"slices"

	"github.com/watchmill/watchmill/engine"
)

// Removal says what becomes of what is ahead of a handler that is removed.
type Removal uint8

const (
	// Drain tells the handler what was committed before the removal, then ends
	// it.
	Drain Removal = iota
	// Drop ends it when it has returned from what it is being told.
	Drop
)

// Handle is a handler's registration. Its methods are safe for concurrent use
// and may be called from the handler.
type Handle[T any] struct{ listener *listener[T] }

// AddEventHandler adds a handler, at any time: it starts with the state as it is
// then, and is told every change after it. The same handler may be added several
// times. It returns at once.
//
// It takes at most one HandlerOptions. Errors: [ErrNilHandler], [ErrConfig],
// [ErrClosed].
func (s *SharedInformer[T]) AddEventHandler(handler EventHandler[T], opts ...HandlerOptions) (*Handle[T], error) {
	if handler == nil {
		return nil, ErrNilHandler
	}
	return s.Subscribe(func(n Notification[T]) { notify(handler, n) }, opts...)
}

// Subscribe is [SharedInformer.AddEventHandler] for a function that wants all
// that there is to know, such as the cause.
func (s *SharedInformer[T]) Subscribe(handle func(Notification[T]), opts ...HandlerOptions) (*Handle[T], error) {
	if handle == nil {
		return nil, ErrNilHandler
	}
	o, err := s.handlerOptions(opts)
	if err != nil {
		return nil, err
	}
	l := &listener[T]{
		shared: s, options: o, handle: handle,
		backlog: backlog[T]{policy: o.Policy, buffer: o.Buffer, same: s.ingress.same},
		settled: make(chan struct{}), done: make(chan struct{}),
	}
	if s.ended.Load() != nil || !s.track(l) {
		return nil, ErrClosed
	}
	return &Handle[T]{l}, nil
}

// handlerOptions returns the one that was given, with defaults.
func (s *SharedInformer[T]) handlerOptions(opts []HandlerOptions) (o HandlerOptions, err error) {
	switch len(opts) {
	case 0:
	case 1:
		o = opts[0]
	default:
		return o, &engine.ConfigError{Field: "HandlerOptions", Problem: fmt.Sprintf("is given %d times; give it at most once", len(opts))}
	}
	if o.Buffer == 0 {
		o.Buffer = DefaultBuffer
	}
	if number := s.numbers.Add(1); o.Name == "" {
		o.Name = fmt.Sprintf("handler-%d", number)
	}
	return o, o.validate()
}

// track adds a listener to those that are alive, and passes it to the actor.
func (s *SharedInformer[T]) track(l *listener[T]) bool {
	s.mu.Lock()
	s.alive = append(s.alive, l)
	s.mu.Unlock()
	if s.actor.Tell(join[T]{l}) {
		return true
	}
	s.forget(l)
	return false
}

// forget takes a listener out of those that are alive.
func (s *SharedInformer[T]) forget(l *listener[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = slices.DeleteFunc(s.alive, func(other *listener[T]) bool { return other == l })
}

// runningHandlers returns the names of those that are being told something.
func (s *SharedInformer[T]) runningHandlers() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.alive {
		if l.running.Load() {
			names = append(names, l.options.Name)
		}
	}
	return names
}

// Name returns the handler's name.
func (h *Handle[T]) Name() string { return h.listener.options.Name }

// HasSynced reports whether the handler has been told the state that it started
// with, and has returned. A panic counts as a return.
func (h *Handle[T]) HasSynced() bool { return h.listener.synced.Load() }

// SyncedSignal returns a channel that is closed when the handler has synced, or
// has ended before that: see [Handle.HasSynced].
func (h *Handle[T]) SyncedSignal() <-chan struct{} { return h.listener.settled }

// Synced blocks until the handler has synced. It must not be called from the
// handler itself, which it would wait for.
//
// Errors: [ErrNotSynced], with ctx's cause if that ended the wait, or with why
// the handler ended.
func (h *Handle[T]) Synced(ctx context.Context) error {
	l := h.listener
	err := l.shared.await(ctx, l.settled)
	if l.synced.Load() {
		return nil
	}
	wrong := h.Err()
	if wrong == nil {
		wrong = l.shared.problem()
	}
	return &NotSyncedError{Laggards: []Laggard{{h.Name(), wrong}}, Cause: err}
}

// Done returns a channel that is closed when the handler has ended: it is not
// being told anything, and never will be.
func (h *Handle[T]) Done() <-chan struct{} { return h.listener.done }

// Err returns what is wrong with the handler: its last panic, as a
// [*HandlerError], whether or not that ended it; else why it has ended,
// [ErrRemoved] or [ErrClosed]; else nil.
func (h *Handle[T]) Err() error {
	if failure := h.listener.panicked.Load(); failure != nil {
		return failure
	}
	select {
	case <-h.listener.done:
		return h.listener.end
	default:
		return nil
	}
}

// Lag returns how many notifications are ahead of the handler, with the one
// that it is being told.
func (h *Handle[T]) Lag() int { return h.listener.backlog.lag() }

// Remove ends the handler and waits until it has ended. After that it is told
// nothing any more. Called from a handler or a function of the configuration, of
// this informer or another, it does not wait: that one would not return. Removing again, say to Drop after Drain
// took too long, or a handler that has ended, is fine.
//
// The error is ctx's cause, if that ended the wait; the handler goes on ending.
func (h *Handle[T]) Remove(ctx context.Context, how Removal) error {
	l := h.listener
	l.removed.Store(true)
	if how == Drop {
		l.dropped.Store(true)
	}
	l.shared.actor.Tell(leave[T]{l})
	if inCallback() {
		return nil
	}
	select {
	case <-l.done:
		return nil
	default:
		return l.shared.await(ctx, l.done)
	}
}
