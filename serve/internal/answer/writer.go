package answer

import (
	"errors"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/serve/internal/transport"
)

// Writer is the [http.ResponseWriter] of an answer. It records the answer's status and size, and whether the client
// stalled. Its methods are called by one goroutine at a time, except for [Writer.Sending] and [Writer.CutOff].
type Writer struct {
	to    http.ResponseWriter
	stall time.Duration // how long a client may take to read part bytes
	part  int
	code  int
	bytes int64
	// warnings are sent in the header.
	warnings warnings
	// sinceExtend is how many bytes were written since the deadline was set.
	sinceExtend int

	// What is true or false is together, which is smaller: an idle watch keeps its writer.

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

// New returns the writer of an answer whose client may take as long as stall to read each part. ofStream says
// that the answer is a stream of HTTP/2.
func New(to http.ResponseWriter, stall time.Duration, ofStream bool) *Writer {
	return &Writer{to: to, stall: stall, part: partOfAnswer, ofStream: ofStream}
}

// Header returns the headers of the answer.
func (w *Writer) Header() http.Header { return w.to.Header() }

// Warn adds a warning to the header of an answer that has yet to begin.
func (w *Writer) Warn(text string) { w.warnings.add(text) }

// CompleteHeader adds the warnings to the header, for an answer that may begin past the writer. Any other answer's
// header is complete once it begins.
func (w *Writer) CompleteHeader() { w.warnings.setIn(w.Header()) }

// BeginWatch begins the answer of a watch, whose events are sent in smaller parts.
func (w *Writer) BeginWatch() {
	w.part = partOfWatch
	w.WriteHeader(http.StatusOK)
}

// WriteHeader begins the answer.
func (w *Writer) WriteHeader(code int) {
	w.begin(code)
	w.to.WriteHeader(code)
}

// begin records the status, and completes the header. The client's time to read the answer starts now, however long
// the answer took to make.
func (w *Writer) begin(code int) {
	if w.code == 0 {
		w.code = code
		w.CompleteHeader()
		w.since = time.Now()
		w.begun.Store(true)
		w.Extend()
	}
}

// Extend gives the client time to read what is written next.
func (w *Writer) Extend() {
	w.sinceExtend = 0
	if w.guarded {
		if w.guard == nil {
			w.guard = transport.NewStreamGuard(w.to)
		}
		w.guard.Begin(w.stall)
		return
	}
	w.endAt(time.Now().Add(w.stall))
}

// endAt sets the deadline of writes, unless the answer is broken off, now or meanwhile. It has
// no effect on a ResponseWriter without deadlines.
func (w *Writer) endAt(at time.Time) {
	if w.cut.Load() {
		return
	}
	_ = http.NewResponseController(w.to).SetWriteDeadline(at)
	if w.cut.Load() {
		_ = w.breakOff()
	}
}

// CutOff breaks the answer off, so that its writes fail. It fails if the connection has no deadlines.
func (w *Writer) CutOff() error {
	w.cut.Store(true)
	return w.breakOff()
}

// WasCut reports whether the answer was cut off.
func (w *Writer) WasCut() bool { return w.cut.Load() }

// Sending returns since when the answer has been sent, if it has begun.
func (w *Writer) Sending() (since time.Time, sends bool) {
	if !w.begun.Load() {
		return time.Time{}, false
	}
	return w.since, true
}

// breakOff fails the writes that wait, and those to come.
func (w *Writer) breakOff() error {
	return http.NewResponseController(w.to).SetWriteDeadline(time.Unix(1, 0)) // in the past
}

// RemoveDeadline lets a stream of HTTP/2 last while nothing is written; the next Write sets a
// deadline again, whatever is written.
func (w *Writer) RemoveDeadline() {
	w.idle = true
	switch {
	case w.guarded:
		w.leave()
	case w.ofStream:
		w.endAt(time.Time{})
		w.guarded = true
	}
}

// Write sends a part of the answer, or keeps it until it is known whether the answer is compressed. The events of
// a stream may wait for a flush.
func (w *Writer) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	if w.idle {
		w.idle = false
		w.Extend()
	}
	if w.packing != nil {
		return w.packing.write(p)
	}
	if w.guarded {
		return w.gather(p)
	}
	return w.send(p)
}

// How much of an answer, in bytes, the client has to read in the time of one deadline. It is little
// for a watch, since a client that reads as fast as it can may get little while the server has events
// for thousands. It is also less than the largest frame of HTTP/2, 16 KiB unless the client allows
// more, and less than a full chunk of package transport, so that each of these has a deadline of its
// own. Smaller ones share a deadline: the frames of a client that takes less at a time, and the chunks
// that net/http makes of a watch behind a middleware.
const (
	partOfAnswer = 96 << 10
	partOfWatch  = 16_000
)

// send writes to the connection, past any compression.
func (w *Writer) send(p []byte) (int, error) {
	n, err := w.transmit(p)
	w.bytes += int64(n)
	return n, err
}

// transmit writes to the connection. It extends the deadline as the client reads, so that a
// slow client gets all of a large answer.
func (w *Writer) transmit(p []byte) (n int, err error) {
	for len(p) > n && err == nil {
		next := min(len(p)-n, w.part)
		if w.sinceExtend+next > w.part {
			w.Extend()
			w.extended = true
		}
		var written int
		written, err = w.to.Write(p[n : n+next])
		n, w.sinceExtend = n+written, w.sinceExtend+written
	}
	return n, w.note(err)
}

// End sends what is left of an answer that is complete.
func (w *Writer) End() {
	if w.packing != nil {
		w.packing.end()
	}
}

// Finish sends what net/http still holds of an answer that is complete, if it is a stream of HTTP/2: it would send
// that when the handler has returned, and wait for a client that takes nothing while the request counts as over.
func (w *Writer) Finish() {
	if w.ofStream && w.code != 0 {
		_ = w.FlushError() // if the client is gone, the request's context ends
	}
}

// Release gives the answer's room among those that are compressed to another one, and drops its guard, whether it
// is complete or was broken off.
func (w *Writer) Release() {
	if w.packing != nil {
		w.packing.release()
	}
	w.leave()
}

// leave drops the guard, since nothing is being written any more: with its timer it has 170
// bytes, which an idle watch does not keep.
func (w *Writer) leave() {
	if w.guard != nil {
		w.guard.Leave()
		w.guard = nil
	}
}

// FlushError implements flushing for http.ResponseController.
func (w *Writer) FlushError() error {
	if err := w.sendGathered(); err != nil {
		return err
	}
	if w.extended {
		w.extended = false
		w.Extend()
	}
	return w.note(http.NewResponseController(w.to).Flush())
}

// note records whether a write failed because the client reads too slowly.
func (w *Writer) note(err error) error {
	w.stalled = w.stalled || errors.Is(err, os.ErrDeadlineExceeded)
	return err
}

// Unwrap returns the ResponseWriter, for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.to }

// MoveTo has what follows written to another connection or stream, which has taken over from the first.
func (w *Writer) MoveTo(to http.ResponseWriter) { w.to = to }

// Code returns the status of the answer, zero if it has not begun.
func (w *Writer) Code() int { return w.code }

// OfStream reports whether the answer is a stream of HTTP/2.
func (w *Writer) OfStream() bool { return w.ofStream }

// Gathers reports whether the writer itself gathers what is written until a frame of HTTP/2 is full.
func (w *Writer) Gathers() bool { return w.guarded }

// Bytes returns how much of the body was sent, in bytes.
func (w *Writer) Bytes() int64 { return w.bytes }

// Count counts n bytes that were sent past the writer, as messages are.
func (w *Writer) Count(n int) { w.bytes += int64(n) }

// Stalled reports whether the client has read too slowly.
func (w *Writer) Stalled() bool { return w.stalled }

// NoteStall records that the client has read too slowly what was sent past the writer.
func (w *Writer) NoteStall() { w.stalled = true }
