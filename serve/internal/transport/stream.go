package transport

import (
	"net/http"
	"sync"
	"time"
)

// StreamGuard breaks off a stream of HTTP/2 whose client does not read what is written. To set
// a deadline and to remove it is a message to the connection's goroutine each, which an event
// of a watch would cost twice; a StreamGuard only breaks off streams that have not met theirs.
// Make one with [NewStreamGuard].
type StreamGuard struct {
	stream http.ResponseWriter
	timer  *time.Timer // nil before the first Begin

	mu   sync.Mutex
	left bool
}

// NewStreamGuard returns a guard of the stream that a handler answers with.
func NewStreamGuard(stream http.ResponseWriter) *StreamGuard { return &StreamGuard{stream: stream} }

// Begin gives what is written next that long, until Leave.
func (g *StreamGuard) Begin(stall time.Duration) {
	if g.timer == nil {
		g.timer = time.AfterFunc(stall, g.breakOff)
		return
	}
	g.timer.Reset(stall)
}

// breakOff fails the writes that wait.
func (g *StreamGuard) breakOff() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.left {
		_ = http.NewResponseController(g.stream).SetWriteDeadline(time.Unix(1, 0)) // in the past
	}
}

// Leave ends the use of the stream, which must not outlast its handler: everything was
// written.
func (g *StreamGuard) Leave() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = true
}
