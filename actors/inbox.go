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

// inbox is the queue of an actor, for any number of producers and one consumer.
// It is two slices: producers append to one under the lock, the consumer reads
// the other without it, and when that is used up they are swapped. So the
// consumer locks once per batch, however many messages that is.
//
//	offer, tell ──▶ in ──swap──▶ out ──▶ next
//	               (lock)       (consumer)
//
// The inbox is compiled for each type of message, so what does not depend on that type
// is in [inboxState].
type inbox[M any] struct {
	state inboxState
	in    []M // under the state's lock
	out   []M // the consumer's
	read  int // out[:read] have been consumed; the consumer's
}

// offer appends m unless the inbox holds capacity messages already.
func (b *inbox[M]) offer(m M) Verdict {
	v := b.state.admit()
	if v == Accepted {
		b.in = append(b.in, m)
		b.state.mu.Unlock()
	}
	return v
}

// tell appends m whatever the capacity; not ok if the inbox is closed. If the inbox was empty, it
// returns the number of the batch that begins with m, otherwise zero.
func (b *inbox[M]) tell(m M) (begins uint32, ok bool) {
	if begins, ok = b.state.admitAlways(); !ok {
		return 0, false
	}
	b.in = append(b.in, m)
	b.state.mu.Unlock()
	return begins, true
}

// next takes the first message. Only the consumer may call it.
func (b *inbox[M]) next() (m M, ok bool) {
	if b.read == len(b.out) && !b.swap() {
		return m, false
	}
	var none M
	m, b.out[b.read] = b.out[b.read], none
	b.read++
	b.state.unread.Store(int64(len(b.out) - b.read))
	return m, true
}

// swap gives the messages that the producers have appended to the consumer.
func (b *inbox[M]) swap() bool {
	if cap(b.out)/2 > b.state.capacity {
		b.out, b.read = nil, 0 // grown by a burst of tells: give it back
	}
	if !b.state.passToConsumer() {
		return false
	}
	b.out, b.in, b.read = b.in, b.out[:0], 0
	b.state.mu.Unlock()
	return true
}

// drain takes all messages out of a closed inbox, in order, and frees its
// memory. Only the consumer may call it.
func (b *inbox[M]) drain() []M {
	b.state.mu.Lock()
	left := append(b.out[b.read:], b.in...)
	b.in, b.out, b.read = nil, nil, 0
	b.state.countNone()
	b.state.mu.Unlock()
	return left
}

// inboxState is the part of an inbox that does not depend on the type of its
// messages: whether it takes more, and how many it holds.
type inboxState struct {
	capacity int

	mu     sync.Mutex
	closed bool
	// batches counts the swaps, modulo 2³², for which there is room beside closed. Only the consumer
	// changes it, and so reads it without the lock.
	batches  uint32
	appended int // by the producers since the last swap

	unread   atomic.Int64 // of those given to the consumer
	wantRoom atomic.Bool  // an offer was refused and room not yet announced
}

// admit counts a message unless the inbox is full or closed. If the verdict is
// Accepted the state is left locked, for the caller to append and unlock.
func (s *inboxState) admit() Verdict {
	s.mu.Lock()
	v := s.verdict()
	if v != Accepted {
		s.mu.Unlock()
		return v
	}
	s.appended++
	return Accepted
}

// admitAlways is admit whatever the capacity; not ok if the inbox is closed. If the inbox was
// empty, it returns the number of the batch that begins with the message, otherwise zero.
func (s *inboxState) admitAlways() (begins uint32, ok bool) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, false
	}
	if s.queued() == 0 {
		begins = s.batches + 1
	}
	s.appended++
	return begins, true
}

// comesNext reports whether the consumer has yet to take the batch of that number, and all before
// it. Only the consumer may call it.
func (s *inboxState) comesNext(batch uint32) bool { return batch == s.batches+1 }

// verdict decides about an offer; the caller holds the lock.
func (s *inboxState) verdict() Verdict {
	if s.closed {
		return Gone
	}
	if s.full() {
		wanted := s.wantRoom.Swap(true)
		// The consumer may have made room just before it could see that room is
		// wanted; from here on it does see it.
		if s.full() {
			return Full
		}
		s.wantRoom.Store(wanted) // an earlier offer that was refused still waits
	}
	return Accepted
}

// passToConsumer counts the appended messages as the consumer's, which has read
// all that it had before. If there are any the state is left locked, for the
// caller to take them and unlock.
func (s *inboxState) passToConsumer() bool {
	s.mu.Lock()
	if s.appended == 0 {
		s.mu.Unlock()
		return false
	}
	s.unread.Store(int64(s.appended))
	s.appended = 0
	s.batches++
	return true
}

// countNone resets the counts; the caller holds the lock.
func (s *inboxState) countNone() {
	s.appended = 0
	s.unread.Store(0)
}

// roomMade reports, once after an offer was refused, that half the capacity is
// free again: then producers come back with a batch rather than for every single
// place. Only the consumer may call it.
func (s *inboxState) roomMade() bool {
	if !s.wantRoom.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queued() > s.capacity/2 {
		return false
	}
	return s.wantRoom.Swap(false)
}

// refuse closes the inbox to all further messages. Those inside stay.
func (s *inboxState) refuse() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}

func (s *inboxState) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued()
}

func (s *inboxState) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// queued is the number of messages inside; the caller holds the lock.
func (s *inboxState) queued() int { return s.appended + int(s.unread.Load()) }

// full reports whether an offer must be refused; the caller holds the lock.
func (s *inboxState) full() bool { return s.queued() >= s.capacity }
