package remote

import (
	"context"
	"errors"
	"io"
	"time"
)

// arriving is the body of the answer to a list while it arrives: it has MaxListBytes at most, and each part of it
// has to arrive in time.
type arriving struct {
	ctx  context.Context
	from io.Reader
	// late gives the request up when wait has passed since the part before.
	late *time.Timer
	wait time.Duration
	// part, if it is not nil, is called when the first byte of each part has arrived.
	part func()
	// left is how many bytes of the part are to come.
	left int
	// size is how many bytes have arrived, tooLarge the error of too many.
	size     int
	tooLarge *SizeError
	// failed is the error with which the body has ended, other than io.EOF.
	failed error
}

// partOfList is how many bytes of a list have to arrive within [Config].RequestTimeout: so few that a slow link
// carries them, and so many that no server makes a list last for ever.
const partOfList = 64 << 10

// Read ends where a part ends, since a Read from a chunk of HTTP/1.1 otherwise lasts until all that it has room
// for has arrived.
func (a *arriving) Read(p []byte) (int, error) {
	if a.failed != nil {
		return 0, a.failed
	}
	n, err := a.from.Read(p[:min(len(p), a.left+1)])
	if a.size += n; a.size > a.tooLarge.Limit {
		a.failed = a.tooLarge
		return 0, a.failed
	}
	if a.left -= n; a.left < 0 {
		a.left = partOfList
		a.late.Reset(a.wait)
		if a.part != nil {
			a.part()
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		a.failed = brokenOff(a.ctx, err)
		err = a.failed
	}
	return n, err
}

// pauseFor calls f, which takes a time of its own, while nothing is read.
func (a *arriving) pauseFor(f func() error) error {
	a.late.Stop()
	defer a.late.Reset(a.wait)
	return f()
}
