package serve

import (
	"errors"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/serve/internal/transport"
)

// response records the status and the size of an answer, and whether its client stalled.
type response struct {
	http.ResponseWriter
	stall time.Duration // how long a client may take to read part bytes
	part  int
	code  int
	bytes int64
	// sinceExtend is how many bytes were written since the deadline was set.
	sinceExtend int

	// What is true or false is together, which is smaller: an idle watch keeps its response.

	stalled bool // the client read too slowly
	// ofStream: the request is HTTP/2, where a write deadline ends the stream when it passes,
	// even if nothing is being written.
	ofStream bool
	// extended: the deadline was extended since the last flush, for writes that may have waited.
	extended bool
	// idle: everything was flushed, and the next Write sets a deadline of its own.
	idle bool
	// guarded: a guard replaces the deadlines of a stream, since one was removed, which only
	// watches do.
	guarded bool

	guard *transport.StreamGuard // nil while nothing is being written
	// packing is the answer's compression, nil if there is none.
	packing *packing
	// since is when the answer began; it may be read once begun is set. cut: the answer is broken off.
	since      time.Time
	begun, cut atomic.Bool
	// gathered is what a guarded watch has not sent yet, nil for nothing.
	gathered *gathered
}

func (r *response) WriteHeader(code int) {
	r.begin(code)
	r.ResponseWriter.WriteHeader(code)
}

// begin records the status. The client's time to read the answer starts now, however long
// the answer took to make.
func (r *response) begin(code int) {
	if r.code == 0 {
		r.code = code
		r.since = time.Now()
		r.begun.Store(true)
		r.extend()
	}
}

// extend gives the client the time of [Limits].WriteStall to read what is written next.
func (r *response) extend() {
	r.sinceExtend = 0
	if r.guarded {
		if r.guard == nil {
			r.guard = transport.NewStreamGuard(r.ResponseWriter)
		}
		r.guard.Begin(r.stall)
		return
	}
	r.endAt(time.Now().Add(r.stall))
}

// endAt sets the deadline of writes, unless the answer is broken off, now or meanwhile. It has
// no effect on a ResponseWriter without deadlines.
func (r *response) endAt(at time.Time) {
	if r.cut.Load() {
		return
	}
	_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(at)
	if r.cut.Load() {
		_ = r.breakOff()
	}
}

// breakOff fails the writes that wait, and those to come.
func (r *response) breakOff() error {
	return http.NewResponseController(r.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) // in the past
}

// removeDeadline lets a stream of HTTP/2 last while nothing is written; the next Write sets a
// deadline again, whatever is written.
func (r *response) removeDeadline() {
	r.idle = true
	switch {
	case r.guarded:
		r.leave()
	case r.ofStream:
		r.endAt(time.Time{})
		r.guarded = true
	}
}

func (r *response) Write(p []byte) (int, error) {
	r.begin(http.StatusOK)
	if r.idle {
		r.idle = false
		r.extend()
	}
	if r.packing != nil {
		return r.packing.write(p)
	}
	if r.guarded {
		return r.gather(p)
	}
	return r.send(p)
}

// How much of an answer, in bytes, the client has to read in the time of one deadline. It is little
// for a watch, since a client that reads as fast as it can may get little while the server has events
// for thousands. It is also less than the largest frame of HTTP/2, 16 KiB unless the client allows
// more, and less than a full chunk of package transport, so that each of these has a deadline of its
// own. Smaller ones share a deadline: the frames of a client that takes less at a time, and the chunks
// that net/http makes of a watch behind a middleware.
const (
	partOfAnswer = 256 << 10
	partOfWatch  = 16_000
)

// send writes to the connection, past any compression.
func (r *response) send(p []byte) (int, error) {
	n, err := r.transmit(p)
	r.bytes += int64(n)
	return n, err
}

// transmit writes to the connection. It extends the deadline as the client reads, so that a
// slow client gets all of a large answer.
func (r *response) transmit(p []byte) (n int, err error) {
	for len(p) > n && err == nil {
		next := min(len(p)-n, r.part)
		if r.sinceExtend+next > r.part {
			r.extend()
			r.extended = true
		}
		var written int
		written, err = r.ResponseWriter.Write(p[n : n+next])
		n, r.sinceExtend = n+written, r.sinceExtend+written
	}
	return n, r.note(err)
}

// release ends the compression of an answer that was broken off.
func (r *response) release() {
	if r.packing != nil {
		r.packing.release()
	}
}

// leave drops the guard, since nothing is being written any more: with its timer it has 170
// bytes, which an idle watch does not keep.
func (r *response) leave() {
	if r.guard != nil {
		r.guard.Leave()
		r.guard = nil
	}
}

// FlushError implements flushing for http.ResponseController.
func (r *response) FlushError() error {
	if err := r.sendGathered(); err != nil {
		return err
	}
	if r.extended {
		r.extended = false
		r.extend()
	}
	return r.note(http.NewResponseController(r.ResponseWriter).Flush())
}

// note records whether a write failed because the client reads too slowly.
func (r *response) note(err error) error {
	r.stalled = r.stalled || errors.Is(err, os.ErrDeadlineExceeded)
	return err
}

// Unwrap returns the ResponseWriter, for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
