package websocket_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/websocket"
)

// The first bytes of frames: whole ones, and the parts of a message.
const (
	textFrame  = 0x81
	pingFrame  = 0x89
	pongFrame  = 0x8A
	firstPart  = 0x01
	middlePart = 0x00
	lastPart   = 0x80
)

// slowClient is a client that takes what a server sends when it is told to.
type slowClient struct {
	t      *testing.T
	conn   net.Conn
	answer *bufio.Reader
	gone   chan error // of the server
	sent   chan error // the result of sending the event
}

// newSlowClient opens a WebSocket whose server sends one event, and then waits for the client to leave.
func newSlowClient(t *testing.T, options websocket.Options, event string) *slowClient {
	u, err := websocket.New(options)
	require.NoError(t, err)
	c := &slowClient{t: t, gone: make(chan error, 10), sent: make(chan error, 1)}
	over := make(chan struct{})
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		messages, err := u.Upgrade(w, r, func(err error) { c.gone <- err })
		if err != nil {
			c.sent <- err
			return
		}
		c.sent <- messages.Send(context.Background(), []byte(event))
		<-over
		messages.Close(1000)
	})}
	c.conn, c.answer = upgraded(t, h)
	t.Cleanup(func() {
		require.NoError(t, c.conn.Close())
		close(over)
		require.NoError(t, h.Close())
	})
	return c
}

// write sends a frame with a mask of zeros.
func (c *slowClient) write(first byte, payload string) {
	c.t.Helper()
	_, err := c.conn.Write(append([]byte{first, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...))
	require.NoError(c.t, err)
}

// read takes one frame, and returns its first byte and its payload.
func (c *slowClient) read() (first byte, payload string) {
	c.t.Helper()
	head := make([]byte, 2)
	_, err := io.ReadFull(c.answer, head)
	require.NoError(c.t, err)
	size := uint64(head[1])
	if long := map[byte]int{126: 2, 127: 8}[head[1]]; long > 0 {
		number := make([]byte, 8)
		_, err = io.ReadFull(c.answer, number[8-long:])
		require.NoError(c.t, err)
		size = binary.BigEndian.Uint64(number)
	}
	text := make([]byte, size)
	_, err = io.ReadFull(c.answer, text)
	require.NoError(c.t, err)
	return head[0], string(text)
}

// slowNetwork brings 64 KiB a second.
type slowNetwork struct{ from io.Reader }

func (n slowNetwork) Read(p []byte) (int, error) {
	time.Sleep(time.Second / 16) // of virtual time
	return n.from.Read(p[:min(len(p), 4<<10)])
}

// A client whose network needs long for an event, and which sends pings of its own, is answered meanwhile.
func TestSend_AnswersThePingsOfTheClientWithinALongEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := strings.Repeat("0123456789abcdef", 64<<10) // a MiB
		c := newSlowClient(t, websocket.Options{}, event)
		c.answer = bufio.NewReader(slowNetwork{c.answer})
		c.write(pingFrame, "alive?")
		got, pongs := "", 0
		for first := byte(0); first&lastPart == 0 || first == pongFrame; {
			var payload string
			if first, payload = c.read(); first == pongFrame {
				require.Equal(t, "alive?", payload)
				pongs++
				continue
			}
			require.Contains(t, []byte{textFrame, firstPart, middlePart, lastPart}, first)
			got += payload
		}
		require.Empty(t, c.gone)
		require.NoError(t, <-c.sent)
		require.True(t, event == got, "the event has arrived as it was sent")
		require.Equal(t, 1, pongs)
	})
}

// The time that an event takes is none that the client has had for the answer to a ping.
func TestPing_ComesOnceNoEventIsBeingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowClient(t, websocket.Options{Ping: time.Second, Pong: 2 * time.Second}, "event")
		time.Sleep(2900 * time.Millisecond)
		first, payload := c.read()
		require.Equal(t, byte(textFrame), first)
		require.Equal(t, "event", payload)
		require.NoError(t, <-c.sent)
		for range 3 {
			first, payload = c.read()
			require.Equal(t, byte(pingFrame), first)
			time.Sleep(time.Second)
			c.write(pongFrame, payload)
			synctest.Wait()
			require.Empty(t, c.gone)
		}
	})
}

// An event that was begun and cannot be finished holds up no other.
func TestSend_FailsAtOnceAfterALongEventThatHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := websocket.New(websocket.Options{})
		require.NoError(t, err)
		failed := make(chan error, 2)
		h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			messages, err := u.Upgrade(w, r, func(error) {})
			if err != nil {
				return
			}
			for range cap(failed) {
				failed <- messages.Send(ctx, bytes.Repeat([]byte("x"), 1<<20))
			}
			messages.Close(1000)
		})}
		conn, answer := upgraded(t, h)
		began := time.Now()
		_, err = io.CopyN(io.Discard, answer, 100<<10)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Error(t, <-failed)
		require.Error(t, <-failed)
		require.Zero(t, time.Since(began))
		require.NoError(t, h.Close())
	})
}
