package transport

import (
	"net/http"
	"sync"
	"time"
)

// StreamGuard breaks off a stream of HTTP/2 whose client does not read what is written.
// Setting a deadline and removing it each cost a message to the connection's goroutine, two
// for each event of a watch. A StreamGuard costs one only for a stream that has not met its
// deadline. Make one with [NewStreamGuard].
type StreamGuard struct {
	stream http.ResponseWriter
	timer  *time.Timer // nil before the first Begin

	mu   sync.Mutex
	left bool
}

// NewStreamGuard returns a guard of the stream that a handler answers with.
func NewStreamGuard(stream http.ResponseWriter) *StreamGuard { return &StreamGuard{stream: stream} }

// Begin gives the writes until Leave that much time.
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

// Leave ends the use of the stream, which must not outlast its handler. Everything
// must have been written.
func (g *StreamGuard) Leave() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = true
}
