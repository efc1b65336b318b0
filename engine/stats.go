package engine

import (
	"sync/atomic"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/store/backend"
)

// counts are the counters of the engine and its actors.
type counts struct {
	lists, waits, fallbacks atomic.Uint64
	consistent              consistentLists
	cacheLists              []cacheLists // by no index, and by each of the settings' indexes
	verified, mismatches    atomic.Uint64
	failures, initialEvents atomic.Uint64
	dispatcher              dispatcher.Stats
	cache                   watchcache.Stats
}

// Stats are an engine's counters and gauges. Each is exact, but they are not a snapshot
// of one instant.
type Stats struct {
	// Revision is the cache's.
	Revision Revision
	Readiness
	// Objects is how many the cache holds, WindowEvents how many changes its
	// window has, WindowFloor the oldest revision to resume from.
	Objects, WindowEvents int
	WindowFloor           Revision
	// StateBytes, WindowBytes and HistoryBytes estimate the memory, without counting
	// anything twice: the objects, from a sample of a thousand; the window's changes,
	// with the objects that they superseded; and the rest of the backend's history,
	// if it is in memory.
	StateBytes, WindowBytes, HistoryBytes int64

	// Watches is the number of watches, Streams that of their different filters,
	// Stalled that of stalled watches.
	Watches, Streams, Stalled int64
	// Events counts the changes applied, Synthetic those found by comparing states
	// after a relist, Dispatched the changes offered to the watches, in Rounds, with
	// Wakes of watches.
	Events, Synthetic, Dispatched, Rounds, Wakes uint64
	// Stalls counts how often a watch became stalled. The others count ended
	// watches: by the window, for slowness, by a panic, at the deadline.
	Stalls, Expired, Terminated, Panicked, DeadlinesReached uint64
	// Bookmarks counts the bookmarks that became due, InitialEvents the events of initial
	// states that watches have read. The events that a resuming watch reads from the
	// window are not among them.
	Bookmarks, InitialEvents uint64
	// Resumed counts the watches that have begun after a revision that they were given,
	// ResumesExpired those that failed with [ErrExpired] since the changes after it are not
	// known any more. They are zero without a cache.
	Resumed, ResumesExpired uint64
	// Lists counts lists, Fallbacks those that the backend served because the cache
	// could not, Waits calls that waited for the cache to be ready or to reach a
	// revision. They are zero without a cache.
	Lists, Fallbacks, Waits uint64
	// Consistent counts the lists with [Latest] by their outcome, CacheLists those that
	// the cache has served by their index, the first being those by none. CacheLists is
	// nil without a cache.
	Consistent ConsistentLists
	CacheLists []CacheLists
	// Relists counts the lists after the first, Inconsistent those because a change
	// did not fit the state.
	Relists, Inconsistent uint64
	// Unseen counts the revisions that relists skipped: each was a superseded state,
	// or an emitted value, which is lost. The next emitted value has the mark
	// [AfterGap]. Only for a backend that can emit and has an event at every revision.
	Unseen uint64
	// Verified counts comparisons of cache and backend, Mismatches those that found
	// a difference; see [Engine.Verify].
	Verified, Mismatches uint64
	// Failures counts the failures of the engine's own actors.
	Failures uint64
	// Undelivered are the watches that the end of the engine has ended before they had been given
	// everything, the one that was furthest behind first, a thousand at most. There
	// are none until the engine is closed, nor after an [Engine.Drain] that succeeds.
	Undelivered []Undelivered
	// Source are the Reflector's counters.
	Source SourceStats
}

// Readiness is whether an engine can serve.
type Readiness struct {
	// Ready: the cache can serve, or there is none. Ended: storage has ended for good, and the
	// engine never can serve again. Without a cache that is known once a call has failed for it.
	Ready, Ended bool
	// Closed: the engine is closed, or is being drained, and accepts no writes and new watches.
	Closed bool
	// Generation is how often the cache became ready: at first zero, and one more after each
	// outage of storage. It stays zero without a cache.
	Generation uint64
}

// Readiness returns whether the engine can serve. It never blocks, and costs nothing worth
// counting, so a health check may ask it as often as it likes; [Engine.Stats] measures memory.
func (e *Engine[T]) Readiness() Readiness { return e.core.readiness() }

func (e *core) readiness() Readiness {
	now := Readiness{Closed: e.accepts() != nil}
	if e.parts.cache != nil {
		serving, generation := e.parts.cache.State()
		now.Ready, now.Ended, now.Generation = serving == watchcache.Ready, serving == watchcache.Ended, generation
	} else {
		now.Ended = e.storageEnded.Load()
		now.Ready = !now.Ended
	}
	now.Ready = now.Ready && e.alive() == nil
	return now
}

// Stats returns the engine's counters. It never blocks, but measures a sample of a thousand
// objects.
func (e *Engine[T]) Stats() Stats { return e.core.stats() }

func (e *core) stats() Stats {
	snap, d, c := e.published.Load(), &e.counts.dispatcher, &e.counts.cache
	state := snap.State()
	s := Stats{
		Revision: snap.Revision, Readiness: e.readiness(),
		Objects: state.Len(), WindowEvents: snap.Window.Len(), WindowFloor: snap.Window.Floor(),
		StateBytes: state.Bytes(e.sizeOf), WindowBytes: snap.Window.Bytes(),
		Watches: d.Watches.Load(), Streams: d.Streams.Load(), Stalled: d.Stalled.Load(),
		Events: c.Events.Load(), Synthetic: c.Synthetic.Load(), Dispatched: d.Events.Load(), Rounds: d.Rounds.Load(), Wakes: d.Wakes.Load(),
		Stalls: d.Stalls.Load(), Expired: d.Expired.Load(), Terminated: d.Terminated.Load(), Panicked: d.Panicked.Load(),
		DeadlinesReached: d.DeadlinesReached.Load(), Bookmarks: d.Bookmarks.Load(),
		InitialEvents: e.counts.initialEvents.Load(), Resumed: d.Resumed.Load(), ResumesExpired: d.ResumesExpired.Load() + c.ResumesExpired.Load(),
		Lists: e.counts.lists.Load(), Fallbacks: e.counts.fallbacks.Load(), Waits: e.counts.waits.Load(),
		Consistent: e.counts.consistent.load(), CacheLists: e.cacheLists(),
		Verified: e.counts.verified.Load(), Mismatches: e.counts.mismatches.Load(),
		Relists: max(c.Replaces.Load(), 1) - 1, Inconsistent: c.Inconsistent.Load(), Unseen: c.Unseen.Load(), Failures: e.counts.failures.Load(),
		Undelivered: e.dropped.all(),
	}
	if history, ok := historianOf(e.storage.Backend()); ok {
		s.HistoryBytes = history.History().BytesBeside(snap.Window)
	}
	if e.parts.reflector != nil {
		s.Source = e.parts.reflector.Stats()
	}
	return s
}

// historianOf returns the backend that has the history, even if decorators are around it.
func historianOf(b backend.Backend) (h backend.Historian, ok bool) {
	for {
		if h, ok = b.(backend.Historian); ok {
			return h, true
		}
		decorator, decorated := b.(backend.Unwrapper)
		if !decorated {
			return nil, false
		}
		b = decorator.Unwrap()
	}
}
