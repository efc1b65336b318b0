package transport

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Taken is a connection of HTTP/1.1 that a handler has taken over from net/http, as the
// ResponseWriter of the rest of its answer: chunks. A goroutine reads the connection, to notice
// that the client is gone. Only Break is safe for concurrent use.
type Taken struct {
	conn   net.Conn
	gone   func(error)
	chunk  *chunk // what is not flushed, nil for nothing
	err    error  // the first of writing
	reader sync.WaitGroup
	in     [16]byte // what the client sends
}

// Take returns the connection as a ResponseWriter, for an answer whose header was sent, with
// Transfer-Encoding chunked and Connection close. Early is how many bytes the client has sent
// after its request. Gone is called, perhaps several times, with why the client is gone or has to go.
func Take(conn net.Conn, early int, gone func(error)) *Taken {
	t := &Taken{conn: conn, gone: gone}
	t.reader.Go(func() { t.read(early) })
	return t
}

// errUnexpectedData: the client has sent more than [tolerated].
var errUnexpectedData = errors.New("the client sent more than 64 KiB after its request")

// tolerated is how much a client may send after its request, in bytes. The answer says that
// the connection is closed after it, so a client should not send anything.
const tolerated = 64 << 10

// read waits until the client closes the connection, and ignores what it sends.
func (t *Taken) read(sent int) {
	for sent <= tolerated {
		n, err := t.conn.Read(t.in[:])
		if err != nil {
			t.gone(err)
			return
		}
		sent += n
	}
	t.gone(errUnexpectedData)
}

// Header returns nil: the header was sent.
func (t *Taken) Header() http.Header { return nil }

// WriteHeader has no effect: the header was sent.
func (t *Taken) WriteHeader(int) {}

// Write keeps p until it is flushed, or a chunk is full.
func (t *Taken) Write(p []byte) (n int, err error) {
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
func (t *Taken) FlushError() error {
	if t.chunk == nil {
		return t.err
	}
	c := t.chunk
	t.chunk = nil
	if t.err == nil {
		_, t.err = t.conn.Write(c.bytes())
		if t.err != nil {
			t.gone(t.err)
		}
	}
	c.size = 0
	chunks.Put(c)
	return t.err
}

// SetWriteDeadline implements deadlines for http.ResponseController.
func (t *Taken) SetWriteDeadline(at time.Time) error { return t.conn.SetWriteDeadline(at) }

// Finish sends the end of the answer.
func (t *Taken) Finish() {
	if t.FlushError() == nil {
		_, _ = t.conn.Write(lastChunk) // the connection is closed next
	}
}

// Break closes the connection.
func (t *Taken) Break() { _ = t.conn.Close() } // an error has no consequence

// Close closes the connection, and waits for the goroutine that reads it.
func (t *Taken) Close() {
	t.Break()
	t.reader.Wait()
}
