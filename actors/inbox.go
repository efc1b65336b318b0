package actors

import "fmt"

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
//
// A program has an inbox type for each type of message, so what can do without
// that type is in [gate].
type inbox[M any] struct {
	gate gate
	in   []M // under the gate's lock
	out  []M // the consumer's
	read int // out[:read] have been consumed; the consumer's
}

// offer appends m unless the inbox holds capacity messages already.
func (b *inbox[M]) offer(m M) Verdict {
	v := b.gate.enter()
	if v == Accepted {
		b.in = append(b.in, m)
		b.gate.mu.Unlock()
	}
	return v
}

// tell appends m whatever the capacity; false if the inbox is closed.
func (b *inbox[M]) tell(m M) bool {
	if !b.gate.force() {
		return false
	}
	b.in = append(b.in, m)
	b.gate.mu.Unlock()
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
	b.gate.unread.Store(int64(len(b.out) - b.read))
	return m, true
}

// swap makes what the producers have appended the consumer's.
func (b *inbox[M]) swap() bool {
	if !b.gate.handOver() {
		return false
	}
	spare := b.out[:0]
	if cap(spare) > 2*b.gate.capacity {
		spare = nil // grown by a burst of tells: give it back
	}
	b.out, b.in, b.read = b.in, spare, 0
	b.gate.mu.Unlock()
	return true
}

// drain takes everything out of a closed inbox, in order, and frees its memory.
// Only the consumer may call it.
func (b *inbox[M]) drain() []M {
	b.gate.mu.Lock()
	left := append(b.out[b.read:], b.in...)
	b.in, b.out, b.read = nil, nil, 0
	b.gate.empty()
	b.gate.mu.Unlock()
	return left
}
