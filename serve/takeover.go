package serve

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"

	"github.com/watchmill/watchmill/serve/internal/transport"
)

// A watch over HTTP/1.1 takes its connection over from net/http once its answer has begun,
// if the http.Server was hardened and calls the [Server] directly:
//
//	the request's goroutine ── header ── Hijack ──▶ returns, and net/http frees what it has
//	                                       ├──▶ the watch's goroutine ── chunks ──▶ connection
//	                                       └──▶ a goroutine that reads: is the client gone?
//
// So an idle watch has no buffers, and a small stack of its own in place of one that has
// grown while the request was parsed. A middleware would see the request end when the watch
// begins; so behind one the connection stays with net/http.

// hardenedKey is the key of the context's value that is a hardened.
type hardenedKey struct{}

// hardened is in the contexts of an http.Server's connections: the Server which hardened it,
// and the context that it gives to all of its connections.
type hardened struct {
	by   *Server
	base context.Context
}

// markHardened lets watches over the http.Server's connections take them over.
func (s *Server) markHardened(h *http.Server) {
	base := h.BaseContext
	h.BaseContext = func(l net.Listener) context.Context {
		ctx := context.Background()
		if base != nil {
			ctx = base(l)
		}
		return context.WithValue(ctx, hardenedKey{}, hardened{s, ctx})
	}
}

// takeover is what a watch has that takes over its connection.
type takeover struct {
	base context.Context // of all connections: the watch ends with it
	// taken is the connection, nil until it was taken over, and release what no longer ends the
	// watch with base.
	taken   *transport.Taken
	release func() bool
}

// hasTaken reports whether the connection was taken over.
func (o *takeover) hasTaken() bool { return o != nil && o.taken != nil }

// leave releases what ends the watch with the context of all connections.
func (o *takeover) leave() {
	if o.release != nil {
		o.release()
	}
}

// takesOver returns what the call's watch needs to take over its connection, nil if it may not
// do so. A context that the http.Server makes for each connection ends when net/http gives the
// connection away, so such a watch may not.
func (c *call) takesOver() *takeover {
	by := c.direct()
	mark, _ := c.r.Context().Value(hardenedKey{}).(hardened)
	if by == nil || by.ConnContext != nil || mark.by != c.Server {
		return nil
	}
	if c.upgrades || c.r.Method != http.MethodGet || c.r.Body != http.NoBody || c.r.ProtoMajor != 1 || c.r.ProtoMinor != 1 {
		return nil
	}
	return &takeover{base: mark.base}
}

// direct returns the http.Server that calls the [Server] directly, nil if others see the
// request, too.
func (c *call) direct() *http.Server {
	by, _ := c.r.Context().Value(http.ServerContextKey).(*http.Server)
	if by == nil {
		return nil
	}
	if handler, _ := by.Handler.(*Server); handler != c.Server {
		return nil
	}
	return by
}

// takeOver takes over the connection of a watch whose header was sent. If that fails, the
// watch runs on its request's goroutine like any other.
func (w *watching) takeOver() {
	c := w.c
	conn, ahead, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		return
	}
	transport.LimitUnacknowledged(conn, c.limits.unacknowledged())
	w.ctx = context.WithoutCancel(w.ctx)
	base := w.takeover.base
	w.takeover.release = context.AfterFunc(base, func() { w.endBy(fmt.Errorf("%w: %w", errShuttingDown, context.Cause(base))) })
	t := transport.Take(conn, ahead.Reader.Buffered(), func(err error) { w.endBy(fmt.Errorf("%w: %w", errClientGone, err)) })
	c.running.take(t)
	c.w.MoveTo(t)
	c.r = c.r.WithContext(w.ctx)
	w.takeover.taken = t
}

// runTaken runs the watch, on a goroutine of its own.
func (w *watching) runTaken() {
	c, t := w.c, w.takeover.taken
	defer c.running.release(t)
	defer t.Close()
	returned := false
	defer func() {
		switch failure := recover(); {
		case failure == nil && returned:
			t.Finish()
		case failure == nil, failure == http.ErrAbortHandler: // the client sees that the answer is not complete
		default:
			c.log.Error("the end of a watch panicked", "path", c.req.Path, "panic", failure, "stack", string(debug.Stack()))
		}
	}()
	defer c.finish() // before the client sees the end, and may watch again
	defer c.contain(&returned)
	w.run()
	returned = true
}
