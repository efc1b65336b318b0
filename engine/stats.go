package engine

import (
	"sync/atomic"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/store/backend"
)

// counts is where the engine and its actors count.
type counts struct {
	lists, waits, fallbacks atomic.Uint64
	verified, mismatches    atomic.Uint64
	failures                atomic.Uint64
	dispatcher              dispatcher.Stats
	cache                   watchcache.Stats
}

// Stats is what an engine has and has done. The figures are each right, but not
// all of one instant.
type Stats struct {
	// Revision is what the cache has reached, Generation how often it became
	// ready.
	Revision   Revision
	Generation uint64
	// Ready: the cache can serve.
	Ready bool
	// Objects is how many the cache holds, WindowEvents how many changes its
	// window has, WindowFloor the oldest revision to resume from.
	Objects, WindowEvents int
	WindowFloor           Revision
	// StateBytes, WindowBytes and HistoryBytes estimate what that takes in memory,
	// each without what the one before has: the objects, measured in a sample of a
	// thousand; the changes, with the objects that they superseded; and what the
	// backend remembers beside, if it is in memory.
	StateBytes, WindowBytes, HistoryBytes int64

	// Watches is how many there are, Streams how many different filters they
	// have besides none, Stalled how many are too far behind.
	Watches, Streams, Stalled int64
	// Events is how many changes were applied, Synthetic how many more were
	// found by comparing after a relist, Dispatched how many were offered to the
	// watches, in how many Rounds, with how many Wakes of watchers.
	Events, Synthetic, Dispatched, Rounds, Wakes uint64
	// Stalls is how often a watch became stalled. The others count ends: by the
	// window, for slowness, by a panic, at the deadline.
	Stalls, Expired, Terminated, Panicked, DeadlinesReached uint64
	// Bookmarks is how many became due.
	Bookmarks uint64
	// Lists is how many lists there were, Fallbacks how many of them the backend
	// served since the cache could not, Waits how many calls waited for the cache
	// to be ready or to reach a revision. Without a cache nothing is counted.
	Lists, Fallbacks, Waits uint64
	// Relists is how often the state was listed anew after the first time,
	// Inconsistent how often because a change did not fit the state.
	Relists, Inconsistent uint64
	// Unseen is how many revisions the relists passed by: each was a state that
	// another one followed, or a value that was emitted, which is lost. The next
	// one emitted carries the mark [AfterGap]. Only for a backend that can emit.
	Unseen uint64
	// Verified is how often cache and backend were compared, Mismatches how often
	// they differed; see [Engine.Verify].
	Verified, Mismatches uint64
	// Failures is how often one of the engine's own actors failed and was
	// brought back.
	Failures uint64
	// Source is what the Reflector has seen.
	Source SourceStats
}

// Stats returns what the engine has and has done. It never blocks.
func (e *Engine[T]) Stats() Stats { return e.core.stats() }

func (e *core) stats() Stats {
	snap, d, c := e.published.Load(), &e.counts.dispatcher, &e.counts.cache
	state, generation := watchcache.Pending, uint64(0)
	if e.parts.cache != nil {
		state, generation = e.parts.cache.State()
	}
	s := Stats{
		Revision: snap.Revision, Generation: generation, Ready: state == watchcache.Ready,
		Objects: snap.State.Len(), WindowEvents: snap.Window.Len(), WindowFloor: snap.Window.Floor(),
		StateBytes: snap.State.Bytes(e.sizeOf), WindowBytes: snap.Window.Bytes(),
		Watches: d.Watches.Load(), Streams: d.Streams.Load(), Stalled: d.Stalled.Load(),
		Events: c.Events.Load(), Synthetic: c.Synthetic.Load(), Dispatched: d.Events.Load(), Rounds: d.Rounds.Load(), Wakes: d.Wakes.Load(),
		Stalls: d.Stalls.Load(), Expired: d.Expired.Load(), Terminated: d.Terminated.Load(), Panicked: d.Panicked.Load(),
		DeadlinesReached: d.DeadlinesReached.Load(), Bookmarks: d.Bookmarks.Load(),
		Lists: e.counts.lists.Load(), Fallbacks: e.counts.fallbacks.Load(), Waits: e.counts.waits.Load(),
		Verified: e.counts.verified.Load(), Mismatches: e.counts.mismatches.Load(),
		Relists: max(c.Replaces.Load(), 1) - 1, Inconsistent: c.Inconsistent.Load(), Unseen: c.Unseen.Load(), Failures: e.counts.failures.Load(),
	}
	if history, ok := e.storage.Backend().(backend.Historian); ok {
		s.HistoryBytes = history.History().BytesBeside(snap.Window)
	}
	if e.parts.reflector != nil {
		s.Source = e.parts.reflector.Stats()
	}
	return s
}
