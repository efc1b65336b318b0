package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
)

var (
	// ErrStillRunning: a Close gave up waiting. The error is a [*CloseError].
	ErrStillRunning = actors.ErrStillRunning
	// ErrInHandler: a handler, or another function that the engine calls, has called
	// Close or Drain, which therefore did not wait; see [Engine.Close].
	ErrInHandler = actors.ErrInTurn
)

// CloseError says what had not ended when a Close gave up waiting.
type CloseError struct {
	// Engine is the name of the engine or topic; empty if a host was closed.
	Engine string
	// Handlers are the names, sorted, of the watches and subscriptions whose handlers
	// had not returned.
	Handlers []string
	// Cause is why Close stopped waiting: an [*actors.StillRunningError] with the
	// engine's actors that still run.
	Cause error
}

// Error names the handlers, at most ten of them.
func (e *CloseError) Error() string {
	var text strings.Builder
	text.WriteString("close ")
	if e.Engine == "" {
		text.WriteString("host: ")
	} else {
		fmt.Fprintf(&text, "engine %s: ", e.Engine)
	}
	if n := len(e.Handlers); n > 0 {
		text.WriteString("handlers have not returned: " + strings.Join(e.Handlers[:min(n, maxNamed)], ", "))
		if n > maxNamed {
			fmt.Fprintf(&text, " and %d more", n-maxNamed)
		}
		text.WriteString("; ")
	}
	text.WriteString(e.Cause.Error())
	return text.String()
}

// Unwrap returns the cause, which is an [ErrStillRunning].
func (e *CloseError) Unwrap() error { return e.Cause }

// closing is the progress of an engine's Close.
type closing struct {
	begin, note, later, finish sync.Once
	// inLastTurn: the root's last turn closes the backend, for a Close that could not
	// wait.
	inLastTurn atomic.Bool
	// over is closed when finish is done; err is then the result.
	over chan struct{}
	err  error
}

// Close ends every watch with [ErrEngineClosed] and returns when no goroutine, actor or
// timer of the engine is left, except goroutines of [Watch.Chan] on a [Config].Host, which
// are about to end. If a handler does not return, Close fails after the host's CloseTimeout
// with a [*CloseError] that names it; if the engine has a host of its own, that ends when
// the handler returns. Later calls fail with ErrEngineClosed. Undelivered events are
// dropped, and [Stats].Undelivered names the watches; [Engine.Drain] delivers them first.
// Closing again, or concurrently, waits for the first Close and returns its result.
//
// A handler may call it, of this or any other engine, and so may the functions of the
// configuration, such as OnEnd. There Close does not wait, since handlers that wait
// for each other would never end: it returns a CloseError because of
// [ErrInHandler], and the engine closes when its handlers have returned. A Close from
// elsewhere waits for that. In a goroutine that a handler has started Close does wait, so
// a handler that waits for such a goroutine makes Close wait until the timeout.
func (e *Engine[T]) Close() error { return e.core.close() }

func (e *core) close() error {
	e.beginClose()
	if actors.InTurn() {
		return e.closeLater()
	}
	ctx, cancel := e.host.closeTime()
	defer cancel()
	return e.finishClose(ctx)
}

// beginClose refuses new calls and stops the actors.
func (e *core) beginClose() {
	e.closing.begin.Do(func() {
		e.liveness.closed.Store(true)
		e.noteUndelivered()
		e.stopServing(ErrEngineClosed)
		if e.host.run != nil && !actors.InTurn() { // what other goroutines do would look like an idle run
			e.registry.LeaveContexts()
		}
		e.root.Stop()
	})
}

// finishClose waits until the actors have ended or ctx is done, and releases what the
// engine owns. The first error is the one that names what still runs.
func (e *core) finishClose(ctx context.Context) error {
	e.closing.finish.Do(func() {
		defer close(e.closing.over)
		err := e.host.await(ctx, e.stopped)
		if err != nil {
			err = e.stillRunning(err)
			e.closeWhenStopped()
		}
		if failed := e.release(ctx); err == nil {
			err = failed
		}
		e.closing.err = err
	})
	return e.closing.err
}

// closeLater finishes Close in the background, unless it is finished already, and returns
// its result or an [ErrInHandler].
func (e *core) closeLater() error {
	select {
	case <-e.closing.over:
		return e.closing.err
	default:
	}
	e.closeWhenStopped()
	return e.stillRunning(ErrInHandler)
}

// closeWhenStopped makes the engine's own backend and host close when its actors have
// ended: in a goroutine or, on a deterministic host, which has none, in the root's last
// turn.
func (e *core) closeWhenStopped() {
	switch {
	case e.ownBackend == nil && e.ownHost == nil:
	case e.host.run != nil:
		e.closing.inLastTurn.Store(true)
	default:
		e.closing.later.Do(func() { go e.closeInBackground() })
	}
}

func (e *core) closeInBackground() {
	<-e.stopped
	ctx, cancel := e.host.closeTime()
	defer cancel()
	_ = e.finishClose(ctx) // the next Close returns the error
	if e.ownHost != nil {
		_ = coreOf(e.ownHost).close(context.Background())
	}
}

// lastTurn is called at the end of the root's last turn. The backend's Close does not
// block, and may be called again.
func (e *core) lastTurn() {
	if e.closing.inLastTurn.Load() {
		_ = e.ownBackend.Close() // the next Close returns the error
	}
}

// stillRunning returns the error that names what of the engine still runs.
func (e *core) stillRunning(cause error) error {
	return &CloseError{Engine: e.cfg.name, Handlers: e.registry.Handling(), Cause: e.root.StillRunning(cause)}
}

// release closes the engine's own backend and host.
func (e *core) release(ctx context.Context) error {
	var first error
	if e.ownBackend != nil {
		first = e.ownBackend.Close()
	}
	if e.ownHost != nil {
		if err := coreOf(e.ownHost).close(ctx); first == nil {
			first = err
		}
	}
	return first
}

// Close stops all remaining actors and returns when nothing runs any more, or after
// CloseTimeout with a [*CloseError] that names what still runs; calling it again waits
// again. In a handler it does not wait; see [Engine.Close]. Closing a closed host has no
// effect.
func (h *Host) Close() error {
	core := coreOf(h)
	ctx, cancel := core.closeTime()
	defer cancel()
	return core.close(ctx)
}

func (h *host) close(ctx context.Context) error {
	for _, e := range h.running() {
		e.stopServing(ErrEngineClosed) // their actors may wait for a worker that a handler holds
	}
	err := h.system.Close(ctx)
	if err == nil {
		return nil
	}
	var handlers []string
	for _, e := range h.running() {
		handlers = append(handlers, e.registry.Handling()...)
	}
	slices.Sort(handlers)
	return &CloseError{Handlers: handlers, Cause: err}
}
