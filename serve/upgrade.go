package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Upgrader sends watches as messages, one per event, to clients that ask for it; package
// serve/websocket has one. Its methods are safe for concurrent use.
type Upgrader interface {
	// Wants reports whether a request asks for messages. An error refuses the request;
	// it is an *errors.StatusError of k8s.io/apimachinery/pkg/api/errors.
	Wants(r *http.Request) (bool, error)
	// Upgrade answers the request and takes over its connection. If the client leaves, it
	// calls gone, on any goroutine and at any time until Close returns. If it returns an
	// error, it has answered the request with that.
	Upgrade(w http.ResponseWriter, r *http.Request, gone func(error)) (Messages, error)
}

// Messages is the connection of one watch. Its methods are called one at a time.
type Messages interface {
	// Send sends a text message. It blocks until the connection has taken the message, or
	// ctx is done, which ends the connection. The text may be changed afterwards.
	Send(ctx context.Context, text []byte) error
	// Close closes the connection and releases its resources, which may take a few
	// seconds. The code is that of a WebSocket: 1000, 1001 if the server is shutting down, or
	// 1011 if the watch was cut off by a failure of the server.
	Close(code int)
}

// errClientGone ends a watch whose client has closed its connection, or reads nothing.
var errClientGone = errors.New("the client is gone")

// Codes of [Messages].Close.
const (
	closedNormally = 1000
	closedGoing    = 1001
	closedFailed   = 1011
)

// messages sends the events of an upgraded watch.
type messages struct {
	to        Messages
	c         *call
	gone      func(error)
	text      []byte // of the last message, for its memory
	goingAway bool
}

// close closes the connection.
func (m *messages) close() {
	switch {
	case m.c.aborted:
		m.to.Close(closedFailed)
	case m.goingAway:
		m.to.Close(closedGoing)
	default:
		m.to.Close(closedNormally)
	}
}

// upgrade turns the request into a stream of messages.
func (c *call) upgrade(end func(error)) (*messages, error) {
	gone := func(err error) { end(fmt.Errorf("%w: %w", errClientGone, err)) }
	to, err := c.cfg.WebSocket.Upgrade(c.w, c.r, gone)
	if err != nil {
		return nil, err
	}
	return &messages{to: to, c: c, gone: gone}, nil
}

// send sends one event.
func (m *messages) send(eventType string, object []byte) {
	m.text = append(append(m.text[:0], frameHeads[eventType]...), object...)
	m.text = append(m.text, '}')
	ctx, cancel := context.WithTimeout(context.Background(), m.c.limits.WriteStall)
	defer cancel()
	if err := m.to.Send(ctx, m.text); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			m.c.w.NoteStall()
		}
		m.gone(err)
		return
	}
	m.c.w.Count(len(m.text))
	if cap(m.text) > keptMessage {
		m.text = nil
	}
}

// keptMessage is the largest message in bytes whose memory is kept for the next.
const keptMessage = 64 << 10

// extend gives the client time to read what is written next. Messages have a limit of
// their own for each.
func (w *watching) extend() {
	if w.messages == nil {
		w.c.w.Extend()
	}
}

// flush sends what was written, counts it, and tells the metrics how long that took.
func (w *watching) flush() {
	w.c.counts.events.Add(w.sent)
	w.sent = 0
	if w.messages == nil {
		began := w.meter.now()
		// If the client is gone, the request's context ends.
		_ = http.NewResponseController(w.c.w).Flush()
		w.meter.wrote(began)
		w.c.w.RemoveDeadline()
	}
	w.meter.flushed()
}

// close ends the connection of an upgraded watch.
func (w *watching) close() {
	if w.messages != nil {
		w.messages.close()
	}
}

// synced notes that the initial state is complete.
func (w *watching) synced() {
	w.initial = false
	w.meter.synced(time.Since(w.c.began))
}
