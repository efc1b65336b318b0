package dispatcher

import (
	"errors"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// Stats are a dispatcher's counters. They are safe to read at any time; each is
// exact, but they are not a snapshot of one instant.
type Stats struct {
	// Watches, Streams and Stalled are the current numbers of watches, streams and
	// stalled watches.
	Watches, Streams, Stalled atomic.Int64
	// Rounds is how often the dispatcher read the window, Events how many events
	// it read, Wakes how many watchers it woke.
	Rounds, Events, Wakes atomic.Uint64
	// Stalls counts how often a watch became stalled.
	Stalls atomic.Uint64
	// Expired counts watches that fell out of the window, Terminated those ended
	// for slowness, Panicked those whose handler panicked, DeadlinesReached those
	// ended by their timeout.
	Expired, Terminated, Panicked, DeadlinesReached atomic.Uint64
	// Resumed counts the watches that have begun after a revision that they were given,
	// ResumesExpired those that were refused since the changes after it are not known.
	Resumed, ResumesExpired atomic.Uint64
	// Bookmarks is how many bookmarks became due.
	Bookmarks atomic.Uint64
}

// countResume counts a watch that resumes, by the outcome of its registration.
func (s *Stats) countResume(err error) {
	switch {
	case err == nil:
		s.Resumed.Add(1)
	case errors.Is(err, store.ErrExpired):
		s.ResumesExpired.Add(1)
	}
}

// countEnd counts an ended watch by its reason.
func (s *Stats) countEnd(reason error) {
	failed, panicked := watcher.ByHandler(reason)
	switch {
	case panicked:
		s.Panicked.Add(1)
	case failed:
	case errors.Is(reason, watcher.ErrSlowConsumer):
		s.Terminated.Add(1)
	case errors.Is(reason, watcher.ErrDeadline):
		s.DeadlinesReached.Add(1)
	}
}
