package engine

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/watchmill/watchmill/actors/watcher"
)

// WatchEnd is the end of a watch.
type WatchEnd struct {
	// Name is the name of the watch, Err the reason that its Err returns.
	Name string
	Err  error
	// At is when it ended; zero if the host's clock has panicked.
	At time.Time
	// Delivered is how many events it had delivered.
	Delivered uint64
}

// Reason returns why it ended in a word: "stopped", "expired", "slow", "panicked",
// "deadline", "closed", or "failed" for anything else.
func (e WatchEnd) Reason() string {
	switch failed, panicked := watcher.ByHandler(e.Err); {
	case panicked:
		return "panicked"
	case failed:
		return "failed"
	}
	for _, r := range []struct {
		is   error
		word string
	}{
		{ErrStopped, "stopped"}, {ErrExpired, "expired"}, {ErrSlowConsumer, "slow"},
		{ErrDeadline, "deadline"}, {ErrEngineClosed, "closed"},
	} {
		if errors.Is(e.Err, r.is) {
			return r.word
		}
	}
	return "failed"
}

// keptEnds is how many ends of watches an engine keeps.
const keptEnds = 64

// ends are the last ends of watches, in a ring.
type ends struct {
	mu   sync.Mutex
	last []WatchEnd
	// next is the index of the next end, once the ring is full: that of the oldest.
	next int
}

func (s *ends) add(end WatchEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) < keptEnds {
		s.last = append(s.last, end)
		return
	}
	s.last[s.next] = end
	s.next = (s.next + 1) % keptEnds
}

// newest returns the ends, the newest first.
func (s *ends) newest() []WatchEnd {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Concat(s.last[s.next:], s.last[:s.next])
	slices.Reverse(list)
	return list
}
