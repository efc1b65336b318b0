package replay

import (
	"context"
	"sync/atomic"
)

// watcher is one of the many that a run has, of whichever kind.
type watcher interface {
	// consume reads until everything has been read, the watcher is lost, or ctx
	// is done. written is done when all there will be has been written.
	consume(ctx, written context.Context)
	result() *outcome
}

// outcome is what became of a watcher. It belongs to the watcher's goroutine
// until that has ended, except for what is atomic.
type outcome struct {
	number int
	// state is what it has seen.
	state objects

	delivered         atomic.Uint64
	resumed, relisted int
	conflated         uint64
	// misfits is how often what it got did not fit what it had.
	misfits int
	// lost is why it ended, if that was not its own doing.
	lost error
}

func (o *outcome) result() *outcome { return o }
