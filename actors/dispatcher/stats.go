package dispatcher

import "sync/atomic"

// Stats is what a dispatcher has done. Anyone may read it at any time; the
// figures are each right but not all of one instant.
type Stats struct {
	// Watches and Streams are how many there are now; Stalled is how many
	// watches are stalled now.
	Watches, Streams, Stalled atomic.Int64
	// Rounds is how often the dispatcher read the window, Events how many events
	// it read, Wakes how many watchers it woke.
	Rounds, Events, Wakes atomic.Uint64
	// Stalls is how often a watch was called stalled.
	Stalls atomic.Uint64
	// Expired counts watches that the window overran, Terminated those ended
	// for slowness, Panicked those whose handler panicked, DeadlinesReached
	// those whose time was up.
	Expired, Terminated, Panicked, DeadlinesReached atomic.Uint64
	// Bookmarks is how many bookmarks became due.
	Bookmarks atomic.Uint64
}
