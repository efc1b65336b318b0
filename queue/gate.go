package queue

import (
	"context"
	"sync"
)

// gate is what the queues have in common: one Pop processes at a time, though
// without the lock, so it holds up no producer; closing; and whether the first
// Replace has been processed.
type gate struct {
	mu     sync.Mutex
	turn   sync.Cond   // signalled when a Pop may go on
	some   func() bool // whether there is something to pop
	busy   bool        // a Pop is processing
	closed bool

	populated bool // something was added or replaced
	initial   int  // entries of the first Replace that are not yet processed
	synced    chan struct{}
}

func (g *gate) init(some func() bool) {
	g.turn.L = &g.mu
	g.some = some
	g.synced = make(chan struct{})
}

// enter waits until it is the caller's turn to process something. If it returns
// nil, the caller has the lock and must leave.
func (g *gate) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	err := await(ctx, &g.turn, func() bool { return g.some() && !g.busy || !g.some() && g.closed })
	if err == nil && !g.some() {
		err = ErrClosed
	}
	if err != nil {
		g.mu.Unlock()
		return err
	}
	g.busy = true
	return nil
}

// leave ends what enter began; initial of what was processed were initial. The
// caller has the lock.
func (g *gate) leave(initial int) {
	g.busy = false
	g.initial -= initial
	g.settle()
	if g.closed && !g.some() {
		g.turn.Broadcast() // it was the last: all who wait may go
		return
	}
	g.turn.Signal()
}

// open begins a change: it takes the lock, unless the queue is closed.
func (g *gate) open() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return ErrClosed
	}
	return nil
}

// touched notes that something was added or replaced.
func (g *gate) touched() {
	g.populated = true
	g.settle()
}

// isSynced tells whether the first Replace, if any, has been processed.
func (g *gate) isSynced() bool { return g.populated && g.initial == 0 }

func (g *gate) settle() {
	if !g.isSynced() {
		return
	}
	select {
	case <-g.synced:
	default:
		close(g.synced)
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.turn.Broadcast()
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

func (g *gate) hasSynced() bool {
	select {
	case <-g.synced:
		return true
	default:
		return false
	}
}

// await waits on cond, whose lock the caller has, until ready or ctx is done. If
// both are, it is ready: what a Signal announced must not be left lying.
func await(ctx context.Context, cond *sync.Cond, ready func() bool) error {
	if ready() {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		cond.L.Lock()
		defer cond.L.Unlock()
		cond.Broadcast()
	})
	defer stop()
	for !ready() {
		if err := ctx.Err(); err != nil {
			return err
		}
		cond.Wait()
	}
	return nil
}
