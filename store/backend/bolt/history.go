package bolt

import (
	"slices"
	"time"

	"github.com/watchmill/watchmill/store/window"
)

// history records the size and age of the history in steps of markEvery revisions, which
// is enough to decide how much of it to discard.
type history struct {
	limits window.Limits
	// aged is how many of the newest events stay whatever their age. Those beyond
	// limits.MinEvents go if they are too many bytes, or if there is no space.
	aged int
	// marks are some revisions, in order, each with the bytes up to it. The first is at
	// or below the oldest revision of the history.
	marks []mark
	bytes int64 // of all records that were added
	clock time.Time
	// eager: the next surplus discards all that may go, however little that is.
	eager bool
}

type mark struct {
	revision uint64
	bytes    int64
	at       time.Time // when it was written, or loaded
}

// newHistory returns a history with the limits that [Config.withDefaults] has filled in.
func newHistory(limits window.Limits) history {
	aged := limits.MinEvents
	if aged == 0 {
		aged = min(DefaultMinEvents, limits.MaxEvents)
	}
	return history{limits: limits, aged: aged}
}

// markEvery is how many revisions a step has.
const markEvery = 256

// add counts a record that was written or loaded at now.
func (h *history) add(revision uint64, size int64, now time.Time) {
	if now.After(h.clock) {
		h.clock = now // stands still after a jump back, which times with a monotonic reading do not make
	}
	h.bytes += size
	if n := len(h.marks); n > 0 {
		last := h.marks[n-1]
		if revision-last.revision < markEvery && h.bytes-last.bytes < h.limits.MaxBytes/16 {
			return
		}
	}
	h.marks = append(h.marks, mark{revision, h.bytes, h.clock})
}

// drop removes what is before a revision.
func (h *history) drop(oldest uint64) {
	n := 0
	for n+1 < len(h.marks) && h.marks[n+1].revision <= oldest {
		n++
	}
	h.marks = slices.Delete(h.marks, 0, n)
}

// old reports whether a change of that time is old enough to be discarded.
func (h *history) old(at time.Time) bool { return h.clock.Sub(at) >= h.limits.MinAge }

// ages reports whether there is history that goes once it is old.
func (h *history) ages(oldest, last uint64) bool {
	return slices.ContainsFunc(h.marks, func(m mark) bool {
		return m.revision > oldest && m.revision+uint64(h.aged) <= last
	})
}

// surplus returns the revision through which to discard history, or oldest for none. If
// eager, it discards all that the limits allow; otherwise only if that is a quarter of
// the history, so that records are deleted in large chunks.
func (h *history) surplus(oldest, last uint64, now time.Time, eager bool) uint64 {
	if now.After(h.clock) {
		h.clock = now
	}
	target, held := oldest, h.bytesSince(oldest)
	for _, m := range h.marks {
		if m.revision <= target {
			continue
		}
		over := last-target > uint64(h.limits.MaxEvents) || held > h.limits.MaxBytes
		left := last - m.revision
		if left < uint64(h.limits.MinEvents) || !over && (left < uint64(h.aged) || !h.old(m.at)) {
			break
		}
		target, held = m.revision, h.bytes-m.bytes
	}
	gone, kept := target-oldest, last-target
	if !eager && gone < max(markEvery, kept/4) && h.bytesSince(oldest)-held < h.limits.MaxBytes/4 {
		return oldest
	}
	return target
}

// bytesSince returns the bytes of the records after a revision, or a little more.
func (h *history) bytesSince(revision uint64) int64 {
	before := int64(0)
	for _, m := range h.marks {
		if m.revision > revision {
			break
		}
		before = m.bytes
	}
	return h.bytes - before
}

// spare returns the revision through which history can be discarded when there is no
// space: all but MinEvents.
func (h *history) spare(oldest, last uint64) uint64 {
	if last-oldest <= uint64(h.limits.MinEvents) {
		return oldest
	}
	return last - uint64(h.limits.MinEvents)
}
