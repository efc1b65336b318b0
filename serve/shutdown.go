package serve

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/watchmill/watchmill/serve/internal/transport"
)

// The states of a server.
const (
	serving  int32 = iota
	unready        // it still serves, but /readyz fails
	refusing       // new requests are refused
)

// Shutdown drains the server. From now on /readyz fails; after [Limits].ShutdownDelay new
// requests are refused with 429; and watches are ended evenly over [Limits].DrainWatches,
// with an ERROR 429 if their initial state is not complete; those that have not started by
// then are refused. It returns when nothing is being served any more, and [Config].Audit has been
// called for what was; requests that are still being authenticated are refused later. If ctx is
// done first, it ends all watches at once, and returns ctx's cause if a request is still being
// served.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.CompareAndSwap(serving, unready)
	sleep(ctx, s.limits.ShutdownDelay)
	s.draining.Store(refusing)
	watches := s.running.allStarted()
	for i, w := range watches {
		w.endBy(errShuttingDown)
		if i+1 < len(watches) {
			sleep(ctx, s.limits.DrainWatches/time.Duration(len(watches)))
		}
	}
	s.running.endAll(errShuttingDown)
	idle := s.running.whenIdle()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-idle:
		return nil
	default:
		return context.Cause(ctx)
	}
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// running are the requests that are being served, for which a shutdown waits, and the watches among them, which it
// ends.
type running struct {
	mu      sync.Mutex
	open    int                                   // requests that have begun, until their hooks have been called
	starts  map[*watching]context.CancelCauseFunc // of watches that have not started yet
	watches map[*watching]struct{}                // those that have
	taken   map[*transport.Taken]struct{}         // connections that watches have taken over
	closing error                                 // what ends every watch from now on, when no request begins any more
	idle    chan struct{}                         // closed when nothing is left, if there is a waiter
}

func newRunning() *running {
	return &running{starts: map[*watching]context.CancelCauseFunc{}, watches: map[*watching]struct{}{}, taken: map[*transport.Taken]struct{}{}}
}

// begin counts a request, and reports whether it did: it counts none once all watches have been ended. The caller
// calls over when the request's hooks have been called.
func (r *running) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing != nil {
		return false
	}
	r.open++
	return true
}

// over ends what begin has counted.
func (r *running) over() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	r.signalIdle()
}

// take counts a connection that a watch has taken over, until release.
func (r *running) take(t *transport.Taken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[t] = struct{}{}
}

func (r *running) release(t *transport.Taken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taken, t)
	r.signalIdle()
}

// cut closes the connections that watches have taken over.
func (r *running) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := range r.taken {
		go t.Break() // over TLS it may wait for the client
	}
}

// starting says how to interrupt the start of a watch, and interrupts it at once if all
// watches have been ended. The caller calls startOver in the end.
func (r *running) starting(w *watching, interrupt context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts[w] = interrupt
	if r.closing != nil {
		interrupt(r.closing)
	}
}

// startOver says that the start of a watch is over, whether it has started or failed.
func (r *running) startOver(w *watching) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.starts, w)
}

// started says that a watch has started, and ends it at once if all watches have been
// ended.
func (r *running) started(w *watching) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches[w] = struct{}{}
	if r.closing != nil {
		w.endBy(r.closing)
	}
}

// ended says that a watch is over, whether it has started or not.
func (r *running) ended(w *watching) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watches, w)
}

// endAll ends all watches, present and future, and those that still start. No request begins
// after it.
func (r *running) endAll(why error) {
	r.mu.Lock()
	r.closing = why
	for _, interrupt := range r.starts {
		interrupt(why)
	}
	r.mu.Unlock()
	for _, w := range r.allStarted() {
		w.endBy(why)
	}
}

// allStarted returns the watches that have started.
func (r *running) allStarted() []*watching {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.watches))
}

// whenIdle returns a channel that is closed when nothing is being served.
func (r *running) whenIdle() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.signalIdle()
	return idle
}

// signalIdle closes the channel of whenIdle if nothing is being served. The caller holds
// r.mu.
func (r *running) signalIdle() {
	if r.idle != nil && r.open+len(r.taken) == 0 {
		close(r.idle)
		r.idle = nil
	}
}
