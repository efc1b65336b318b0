package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/watchmill/watchmill/serve/internal/answer"
)

// Upgrader sends watches as messages, one per event, to clients that ask for it; package
// serve/websocket has one. Its methods are safe for concurrent use. It never gains methods.
type Upgrader interface {
	// Wants reports whether a request asks for messages. An error refuses the request;
	// it is an *errors.StatusError of k8s.io/apimachinery/pkg/api/errors.
	Wants(r *http.Request) (bool, error)
	// Upgrade answers the request and takes over its connection. The header of w has what the
	// answer says besides the handshake, such as warnings. If the client leaves, it calls gone, on
	// any goroutine and at any time until Close returns. If it returns an error, it has answered
	// the request with that.
	Upgrade(w http.ResponseWriter, r *http.Request, gone func(error)) (Messages, error)
}

// Messages is the connection of one watch. Its methods are called one at a time. It never gains
// methods.
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
	to    Messages
	w     *answer.Writer // knows what was sent
	stall time.Duration  // how long the client may take to read each
	gone  func(error)
	text  []byte // of the last message, for its memory
}

// upgrade turns the request into a stream of messages.
func (c *call) upgrade(end func(error)) (*messages, error) {
	gone := func(err error) { end(fmt.Errorf("%w: %w", errClientGone, err)) }
	c.w.CompleteHeader() // an Upgrader may send it to the connection itself
	to, err := c.cfg.WebSocket.Upgrade(c.w, c.r, gone)
	if err != nil {
		return nil, err
	}
	return &messages{to: to, w: c.w, stall: c.limits.WriteStall, gone: gone}, nil
}

// send sends one event.
func (m *messages) send(eventType string, object []byte) {
	m.text = append(append(m.text[:0], frameHeads[eventType]...), object...)
	m.text = append(m.text, '}')
	ctx, cancel := context.WithTimeout(context.Background(), m.stall)
	defer cancel()
	if err := m.to.Send(ctx, m.text); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			m.w.NoteStall()
		}
		m.gone(err)
		return
	}
	m.w.Count(len(m.text))
	if cap(m.text) > keptMessage {
		m.text = nil
	}
}

// keptMessage is the largest message in bytes whose memory is kept for the next.
const keptMessage = 64 << 10
