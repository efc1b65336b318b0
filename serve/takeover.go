package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"
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

// takesOver returns the context with which the call's watch has to end if it takes over its
// connection, nil if it may not. A context that the http.Server makes for each connection ends
// when net/http gives the connection away, so such a watch may not.
func (c *call) takesOver() context.Context {
	by := c.direct()
	mark, _ := c.r.Context().Value(hardenedKey{}).(hardened)
	if by == nil || by.ConnContext != nil || mark.by != c.Server {
		return nil
	}
	if c.upgrades || c.r.Method != http.MethodGet || c.r.Body != http.NoBody || c.r.ProtoMajor != 1 || c.r.ProtoMinor != 1 {
		return nil
	}
	return mark.base
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

// taken is a connection that a watch has taken over, as the ResponseWriter of the rest of
// the answer: chunks of HTTP/1.1. Only close is safe for concurrent use.
type taken struct {
	conn   net.Conn
	gone   func(error) // ends the watch
	chunk  *chunk      // what is not flushed, nil for nothing
	err    error       // the first of writing
	reader sync.WaitGroup
	in     [16]byte // what the client sends
}

// takeOver takes over the connection of a watch whose header was sent. If that fails, the
// watch runs on its request's goroutine as any other.
func (w *watching) takeOver() {
	c := w.c
	conn, ahead, err := http.NewResponseController(c.w.ResponseWriter).Hijack()
	if err != nil {
		return
	}
	w.ctx = context.WithoutCancel(w.ctx)
	w.leaveBase = context.AfterFunc(w.base, func() { w.endBy(fmt.Errorf("%w: %w", errShuttingDown, context.Cause(w.base))) })
	t := &taken{conn: conn, gone: w.endBy}
	early := ahead.Reader.Buffered()
	t.reader.Go(func() { t.read(early) })
	c.inFlight.take(t)
	c.w.ResponseWriter = t
	c.w.extend() // net/http has removed the deadline
	c.r = c.r.WithContext(w.ctx)
	w.taken = t
}

// runTaken runs the watch, on a goroutine of its own.
func (w *watching) runTaken() {
	c, t := w.c, w.taken
	defer c.inFlight.release(t)
	defer t.reader.Wait()
	defer t.close()
	defer func() {
		switch failure := recover(); failure {
		case nil:
			t.finish()
		case http.ErrAbortHandler: // the client sees that the answer is not complete
		default:
			c.log.Error("the end of a watch panicked", "path", c.req.Path, "panic", failure, "stack", string(debug.Stack()))
		}
	}()
	defer c.finish() // before the client sees the end, and may watch again
	defer c.contain()
	w.run()
}

// errUnexpectedData ends a watch whose client sends more than [tolerated].
var errUnexpectedData = errors.New("the client sent more than 64 KiB after its request")

// tolerated is how much a client may send after its request, in bytes. The answer says that
// the connection is closed after it, so a client should not send anything.
const tolerated = 64 << 10

// read waits until the client closes the connection, and ignores what it sends.
func (t *taken) read(sent int) {
	for sent <= tolerated {
		n, err := t.conn.Read(t.in[:])
		if err != nil {
			t.leave(err)
			return
		}
		sent += n
	}
	t.leave(errUnexpectedData)
}

// leave ends the watch since the client is gone.
func (t *taken) leave(err error) { t.gone(fmt.Errorf("%w: %w", errClientGone, err)) }

// Header returns nil: the header was sent.
func (t *taken) Header() http.Header { return nil }

// WriteHeader has no effect: the header was sent.
func (t *taken) WriteHeader(int) {}

// Write keeps p until it is flushed, or more than a chunk has come together.
func (t *taken) Write(p []byte) (n int, err error) {
	for n < len(p) && t.err == nil {
		if t.chunk == nil {
			t.chunk = chunks.Get().(*chunk)
		}
		n += t.chunk.add(p[n:])
		if t.chunk.full() {
			_ = t.FlushError() // which is t.err
		}
	}
	return n, t.err
}

// FlushError sends what was written, for http.ResponseController.
func (t *taken) FlushError() error {
	if t.chunk == nil {
		return t.err
	}
	c := t.chunk
	t.chunk = nil
	if t.err == nil {
		_, t.err = t.conn.Write(c.bytes())
		if t.err != nil {
			t.leave(t.err)
		}
	}
	c.size = 0
	chunks.Put(c)
	return t.err
}

// SetWriteDeadline implements deadlines for http.ResponseController.
func (t *taken) SetWriteDeadline(at time.Time) error { return t.conn.SetWriteDeadline(at) }

// finish sends the end of the answer.
func (t *taken) finish() {
	if t.FlushError() == nil {
		_, _ = t.conn.Write(lastChunk) // the connection is closed next
	}
}

// close closes the connection.
func (t *taken) close() { _ = t.conn.Close() } // an error has no consequence
