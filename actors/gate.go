package actors

import (
	"sync"
	"sync/atomic"
)

// gate is what of an inbox does not depend on the type of its messages: who may
// put one in, and how many there are.
type gate struct {
	capacity int

	mu     sync.Mutex
	gone   bool
	behind int // how many the producers have put in since the last swap

	unread   atomic.Int64 // how many of those before the consumer has not read
	wantRoom atomic.Bool  // an offer was refused and room not yet announced
}

// enter lets a message in unless the inbox is full or closed. If it is Accepted
// the gate is left locked, for the caller to put it in and unlock.
func (g *gate) enter() Verdict {
	g.mu.Lock()
	v := g.verdict()
	if v != Accepted {
		g.mu.Unlock()
		return v
	}
	g.behind++
	return Accepted
}

// force is enter whatever the capacity; false if the inbox is closed.
func (g *gate) force() bool {
	g.mu.Lock()
	if g.gone {
		g.mu.Unlock()
		return false
	}
	g.behind++
	return true
}

// verdict says what becomes of an offer; the caller holds the lock.
func (g *gate) verdict() Verdict {
	if g.gone {
		return Gone
	}
	if g.full() {
		g.wantRoom.Store(true)
		// The consumer may have made room just before it could see that some is
		// wanted; from here on it does see it.
		if g.full() {
			return Full
		}
		g.wantRoom.Store(false)
	}
	return Accepted
}

// handOver counts what the producers have put in as the consumer's, who has read
// all that was before. If there is any the gate is left locked, for the caller to
// take it and unlock.
func (g *gate) handOver() bool {
	g.mu.Lock()
	if g.behind == 0 {
		g.mu.Unlock()
		return false
	}
	g.unread.Store(int64(g.behind))
	g.behind = 0
	return true
}

// empty counts nothing; the caller holds the lock.
func (g *gate) empty() {
	g.behind = 0
	g.unread.Store(0)
}

// roomMade reports, once after an offer was refused, that there is room again:
// half the capacity, so that producers come back with a batch rather than for
// every single place. Only the consumer may call it.
func (g *gate) roomMade() bool {
	if !g.wantRoom.Load() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queued() > g.capacity/2 {
		return false
	}
	return g.wantRoom.Swap(false)
}

// close refuses all messages from now on. Those inside stay.
func (g *gate) close() {
	g.mu.Lock()
	g.gone = true
	g.mu.Unlock()
}

func (g *gate) len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queued()
}

func (g *gate) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gone
}

// queued is the number of messages inside; the caller holds the lock.
func (g *gate) queued() int { return g.behind + int(g.unread.Load()) }

// full reports whether an offer must be refused; the caller holds the lock.
func (g *gate) full() bool { return g.queued() >= g.capacity }
