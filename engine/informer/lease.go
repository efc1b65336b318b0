package informer

import (
	"context"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
)

// Lease is a reference to a shared informer. It has all the informer's methods.
// Close and Stop release the lease, and end the handlers that were added through it.
type Lease[T any] struct {
	*SharedInformer[T]
	share *share
}

// Close releases the lease. The last one closes the informer; see
// [SharedInformer.Close]. Closing another lease ends the handlers that were added through it,
// and drops what is pending for them. It waits for the handlers that run, and returns the same
// errors as closing the informer. Closing again releases nothing more, and waits again.
func (l *Lease[T]) Close() error {
	if l.share.release() {
		return l.share.shared.informer.close()
	}
	return l.share.removeHandlers()
}

// Stop releases the lease without waiting; see [SharedInformer.Stop].
func (l *Lease[T]) Stop() {
	if l.share.release() {
		l.share.shared.informer.stop()
	} else {
		l.share.stopHandlers()
	}
}

// share is a [Lease] whatever the type of the objects.
type share struct {
	factory *Factory
	key     factoryKey
	shared  *shared

	givenBack sync.Once
	last      bool // it was the informer's last lease

	mu       sync.Mutex
	released bool
	// handlers are those that were added through the lease. When they are full, those that have
	// ended are removed.
	handlers []*Registration
	full     int
}

// leased is the informer of a lease, which knows the handlers that are added through it.
type leased struct {
	informerCore
	share *share
}

func (l leased) addHandler(handle func(notification), opts HandlerOptions) (*Registration, error) {
	s := l.share
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return nil, ErrClosed
	}
	h, err := l.informerCore.addHandler(handle, opts)
	if err != nil {
		return nil, err
	}
	if len(s.handlers) >= s.full {
		s.handlers = slices.DeleteFunc(s.handlers, hasEnded)
		s.full = 2*len(s.handlers) + 16
	}
	s.handlers = append(s.handlers, h)
	return h, nil
}

// hasEnded reports whether a handler will not be called again.
func hasEnded(h *Registration) bool {
	select {
	case <-h.Done():
		return true
	default:
		return false
	}
}

// release releases the lease, once, and reports whether it is the informer's last. It gives it
// back without mu: the factory may be calling a configuration that adds a handler.
func (s *share) release() (last bool) {
	s.mu.Lock()
	s.released = true
	s.mu.Unlock()
	s.givenBack.Do(func() { s.last = s.factory.giveBack(s.key, s.shared) })
	return s.last
}

// stopHandlers ends the handlers of a lease that is released, and returns those that had not
// ended.
func (s *share) stopHandlers() (ending []*Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.handlers {
		if !hasEnded(h) {
			h.Stop(Drop)
			ending = append(ending, h)
		}
	}
	return ending
}

// removeHandlers is stopHandlers, and waits for them.
func (s *share) removeHandlers() error {
	handlers := s.stopHandlers()
	switch {
	case len(handlers) == 0:
		return nil
	case actors.InTurn():
		return s.closeError(handlers, engine.ErrInHandler)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.shared.informer.hostOf().CloseTimeout())
	defer cancel()
	for _, h := range handlers {
		if err := h.Remove(ctx, Drop); err != nil {
			return s.closeError(handlers, err)
		}
	}
	return nil
}

// closeError names those of the handlers that are being called.
func (s *share) closeError(handlers []*Registration, cause error) error {
	e := &CloseError{Informer: s.shared.informer.name(), Cause: cause}
	for _, h := range handlers {
		if h.core.isRunning() {
			e.Handlers = append(e.Handlers, h.Name())
		}
	}
	return e
}
