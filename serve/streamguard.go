package serve

import (
	"net/http"
	"sync"
	"time"
)

// streamGuard breaks off a stream of HTTP/2 whose client does not read what is written. To set
// a deadline and to remove it is a message to the connection's goroutine each, which an event
// of a watch would cost twice; a streamGuard only breaks off streams that have not met theirs.
type streamGuard struct {
	stream http.ResponseWriter
	timer  *time.Timer // nil before the first begin

	mu   sync.Mutex
	left bool
}

// begin gives what is written next that long, until leave.
func (g *streamGuard) begin(stall time.Duration) {
	if g.timer == nil {
		g.timer = time.AfterFunc(stall, g.breakOff)
		return
	}
	g.timer.Reset(stall)
}

// breakOff fails the writes that wait.
func (g *streamGuard) breakOff() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.left {
		_ = http.NewResponseController(g.stream).SetWriteDeadline(time.Unix(1, 0)) // in the past
	}
}

// leave ends the use of the stream, which must not outlast its handler: everything was
// written.
func (g *streamGuard) leave() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = true
}
