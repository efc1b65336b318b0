package actors

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Verdict is the answer to an Offer.
type Verdict uint8

const (
	// Accepted: the message is in the queue.
	Accepted Verdict = iota
	// Full: the queue is at its capacity; the message was not taken.
	Full
	// Gone: the actor has stopped or was told to; the message was not taken.
	Gone
)

// String returns the verdict's name.
func (v Verdict) String() string {
	switch v {
	case Accepted:
		return "Accepted"
	case Full:
		return "Full"
	case Gone:
		return "Gone"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// inbox is the queue of an actor: any number of producers, one consumer. It
// is two slices: producers append to one under the lock, the consumer reads
// the other without it, and when that is used up they swap. So the consumer
// locks once per batch, however many messages that has become.
//
//	offer, tell ──▶ in ──swap──▶ out ──▶ next
//	               (lock)       (consumer)
type inbox[M any] struct {
	capacity int

	mu   sync.Mutex
	in   []M
	gone bool

	out  []M // the consumer's
	read int // out[:read] have been consumed; the consumer's

	unread   atomic.Int64 // len(out)-read, for producers to see
	wantRoom atomic.Bool  // an offer was refused and room not yet announced
}

// offer appends m unless the inbox holds capacity messages already.
func (b *inbox[M]) offer(m M) Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return Gone
	}
	if b.full() {
		b.wantRoom.Store(true)
		// The consumer may have made room just before it could see that some is
		// wanted; from here on it does see it.
		if b.full() {
			return Full
		}
		b.wantRoom.Store(false)
	}
	b.in = append(b.in, m)
	return Accepted
}

// tell appends m whatever the capacity; false if the inbox is closed.
func (b *inbox[M]) tell(m M) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return false
	}
	b.in = append(b.in, m)
	return true
}

// next takes the first message. Only the consumer may call it.
func (b *inbox[M]) next() (m M, ok bool) {
	if b.read == len(b.out) && !b.swap() {
		return m, false
	}
	var none M
	m, b.out[b.read] = b.out[b.read], none
	b.read++
	b.unread.Store(int64(len(b.out) - b.read))
	return m, true
}

// swap makes what the producers have appended the consumer's.
func (b *inbox[M]) swap() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.in) == 0 {
		return false
	}
	spare := b.out[:0]
	if cap(spare) > 2*b.capacity {
		spare = nil // grown by a burst of tells: give it back
	}
	b.out, b.in, b.read = b.in, spare, 0
	b.unread.Store(int64(len(b.out)))
	return true
}

// roomMade reports, once after an offer was refused, that there is room again:
// half the capacity, so that producers come back with a batch rather than for
// every single place. Only the consumer may call it.
func (b *inbox[M]) roomMade() bool {
	if !b.wantRoom.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queued() > b.capacity/2 {
		return false
	}
	return b.wantRoom.Swap(false)
}

// close refuses all messages from now on. Those inside stay.
func (b *inbox[M]) close() {
	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
}

// drain takes everything out of a closed inbox, in order, and frees its memory.
// Only the consumer may call it.
func (b *inbox[M]) drain() []M {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := append(b.out[b.read:], b.in...)
	b.in, b.out, b.read = nil, nil, 0
	b.unread.Store(0)
	return left
}

func (b *inbox[M]) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queued()
}

func (b *inbox[M]) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone
}

// queued is the number of messages inside; the caller holds the lock.
func (b *inbox[M]) queued() int { return len(b.in) + int(b.unread.Load()) }

// full reports whether an offer must be refused; the caller holds the lock.
func (b *inbox[M]) full() bool { return b.queued() >= b.capacity }
