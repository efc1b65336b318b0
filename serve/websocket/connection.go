package websocket

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// connection is the connection of one watch.
type connection struct {
	socket   *websocket.Conn
	below    net.Conn
	gone     func(error)
	interval time.Duration // between pings
	timeout  time.Duration // of a ping
	timer    *time.Timer   // of the next ping

	sending atomic.Bool // an event

	mu     sync.Mutex
	closed bool
	left   bool           // the client is gone, or does not answer
	others sync.WaitGroup // the reader, and a ping that is being sent
}

func newConnection(socket *websocket.Conn, below net.Conn, u *Upgrader, gone func(error)) *connection {
	c := &connection{socket: socket, below: below, gone: gone, interval: u.ping, timeout: u.pong}
	c.others.Go(c.read)
	c.mu.Lock() // a ping finds the timer
	c.timer = time.AfterFunc(c.interval, c.ping)
	c.mu.Unlock()
	return c
}

// read reads and ignores what the client sends, which the library needs to receive
// answers to pings, and ends when the client leaves.
func (c *connection) read() {
	for {
		_, message, err := c.socket.Reader(context.Background()) // until the connection is closed
		if err == nil {
			_, err = io.Copy(io.Discard, message)
		}
		if err != nil {
			c.leave(err)
			return
		}
	}
}

// leave notes that the client is gone.
func (c *connection) leave(err error) {
	c.mu.Lock()
	c.left = true
	c.mu.Unlock()
	c.gone(err)
}

// ping checks that the client still answers. It needs a goroutine only while it waits for
// the answer. While an event is being sent, which has a limit of its own, a ping would wait for that,
// too, so it comes later, and the failure of one meanwhile does not mean that the client is gone.
func (c *connection) ping() {
	if !c.mayPing() {
		return
	}
	defer c.others.Done()
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if err := c.socket.Ping(ctx); err != nil && !c.sending.Load() {
		c.leave(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.timer.Reset(c.interval)
	}
}

// mayPing reports whether a ping is sent now, which the caller takes off others when it is over.
func (c *connection) mayPing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return false
	case c.sending.Load():
		c.timer.Reset(c.interval)
		return false
	}
	c.others.Add(1)
	return true
}

// fragment is the most bytes of an event that are a frame.
const fragment = 64 << 10

// Send sends one event. A long one is several frames: a ping of the client is answered between two of
// them, and the library ends a connection that cannot take the answer within 5 s.
func (c *connection) Send(ctx context.Context, text []byte) error {
	c.sending.Store(true)
	defer c.sending.Store(false)
	if len(text) <= fragment {
		return c.socket.Write(ctx, websocket.MessageText, text)
	}
	err := c.sendFragments(ctx, text)
	if err != nil {
		_ = c.socket.CloseNow() // another event would wait for the end of this one
	}
	return err
}

func (c *connection) sendFragments(ctx context.Context, text []byte) error {
	message, err := c.socket.Writer(ctx, websocket.MessageText)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(text, fragment) {
		if _, err := message.Write(part); err != nil {
			return err
		}
	}
	return message.Close()
}

// longestClose is the longest that a client may take to answer the close of a connection.
const longestClose = 5 * time.Second

// Close closes the connection, and gives the client some time to answer. The library ignores
// without a limit the rest of a message that the client has begun, so the connection below has
// one. Errors do not matter any more.
func (c *connection) Close(code int) {
	c.mu.Lock()
	c.closed = true
	left := c.left
	c.timer.Stop()
	c.mu.Unlock()
	_ = c.below.SetReadDeadline(time.Now().Add(min(c.timeout, longestClose)))
	if left {
		_ = c.socket.CloseNow()
	} else {
		_ = c.socket.Close(websocket.StatusCode(code), "")
	}
	c.others.Wait()
}
