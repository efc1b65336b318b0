package dispatcher

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// bookmarkLead is how long before its deadline a watch gets its last bookmark: long
// enough to reach the consumer, which will resume from there.
const bookmarkLead = 2 * time.Second

// wheel is a timer wheel of the watches' bookmarks. It has a bucket for each second
// in which a bookmark is due, about as many as the period has seconds, and the
// position of each watch in them. An idle watch costs about 35 bytes in it, for
// 100,000 of them (BenchmarkWheelMemory). Scheduling and removing are O(1),
// amortised.
//
// The wheel has a time of its own, which follows the clock forward, but does not go
// back when the clock is set back, so that bookmarks are not delayed. It belongs to
// one goroutine.
type wheel[W comparable] struct {
	period time.Duration
	// last is the clock at the latest call; elapsed is the wheel's time then.
	last      time.Time
	elapsed   time.Duration
	buckets   []*second[W] // by their time, none of them empty
	positions map[W]position
}

// second holds the watches due in one second of the wheel's time, in the order
// of scheduling. A removed one leaves a hole: a zero W that no position points to.
type second[W comparable] struct {
	number  uint32
	watches []W
	live    int
}

// position says where a watch is. Seconds are counted from the wheel's start:
// their number has room for 136 years.
type position struct{ second, at uint32 }

// maxPeriod leaves room for the wheel's time beside it.
const maxPeriod = 30 * 365 * 24 * time.Hour

// newWheel makes a wheel that gives each watch a bookmark once per period, which
// must be positive, or in 30 years if that is sooner.
func newWheel[W comparable](period time.Duration) *wheel[W] {
	return &wheel[W]{period: min(period, maxPeriod), positions: map[W]position{}}
}

// schedule decides when the watch gets its next bookmark, and forgets what
// was decided before. A watch that waits for the end of its initial events is
// due at once: at the next call of due. Others are due a period from now, or
// bookmarkLead before the deadline if that is sooner; a zero deadline means none. If
// the time before the deadline is too short, there is no next bookmark.
func (w *wheel[W]) schedule(watch W, now, deadline time.Time, waiting bool) {
	w.remove(watch)
	w.advance(now)
	wait, ok := w.next(now, deadline, waiting)
	if !ok {
		return
	}
	s := w.obtain(seconds(w.elapsed + wait))
	w.positions[watch] = position{second: s.number, at: uint32(len(s.watches))}
	s.watches = append(s.watches, watch)
	s.live++
}

// next returns how long from now the next bookmark is due, and whether there is one.
func (w *wheel[W]) next(now, deadline time.Time, waiting bool) (time.Duration, bool) {
	if waiting {
		return 0, true
	}
	if deadline.IsZero() {
		return w.period, true
	}
	left := deadline.Add(-bookmarkLead).Sub(now)
	return min(w.period, left), left > 0
}

// due takes out and returns the watches whose time has come, those of earlier
// seconds first and within a second in the order of scheduling. A watch is due up to
// a second early, so that with a call per second no bookmark is late. Each is returned
// once, however far the clock has leapt: schedule it again for its next.
func (w *wheel[W]) due(now time.Time) (ready []W) {
	w.advance(now)
	for len(w.buckets) > 0 && w.buckets[0].number <= seconds(w.elapsed) {
		for watch := range w.members(w.buckets[0]) {
			ready = append(ready, watch)
			delete(w.positions, watch)
		}
		w.buckets = slices.Delete(w.buckets, 0, 1)
	}
	return ready
}

// members yields the watches in a bucket, without the holes.
func (w *wheel[W]) members(s *second[W]) iter.Seq[W] {
	return func(yield func(W) bool) {
		for at, watch := range s.watches {
			where, ok := w.positions[watch]
			if ok && where == (position{s.number, uint32(at)}) && !yield(watch) {
				return
			}
		}
	}
}

// remove takes the watch out and leaves nothing of it behind. It does nothing
// if the watch is not scheduled.
func (w *wheel[W]) remove(watch W) {
	where, ok := w.positions[watch]
	if !ok {
		return
	}
	delete(w.positions, watch)
	at, _ := w.search(where.second)
	s := w.buckets[at]
	var hole W
	s.watches[where.at] = hole
	s.live--
	switch {
	case s.live == 0:
		w.buckets = slices.Delete(w.buckets, at, at+1)
	case s.live <= len(s.watches)/2:
		w.closeUp(s)
	}
}

// closeUp takes out the holes.
func (w *wheel[W]) closeUp(s *second[W]) {
	kept := make([]W, 0, s.live)
	for watch := range w.members(s) {
		w.positions[watch] = position{s.number, uint32(len(kept))}
		kept = append(kept, watch)
	}
	s.watches = kept
}

// len returns the number of watches scheduled.
func (w *wheel[W]) len() int { return len(w.positions) }

// advance moves the wheel's time on by what the clock gained since the latest
// call. A leap counts only as far as it makes everything due.
func (w *wheel[W]) advance(now time.Time) {
	if !w.last.IsZero() {
		gained := min(now.Sub(w.last), w.period+time.Second)
		w.elapsed += max(gained, 0)
	}
	w.last = now
}

func seconds(d time.Duration) uint32 { return uint32(d / time.Second) }

// obtain returns the bucket of a second, creating it if necessary.
func (w *wheel[W]) obtain(number uint32) *second[W] {
	at, found := w.search(number)
	if !found {
		w.buckets = slices.Insert(w.buckets, at, &second[W]{number: number})
	}
	return w.buckets[at]
}

func (w *wheel[W]) search(number uint32) (int, bool) {
	return slices.BinarySearchFunc(w.buckets, number, func(s *second[W], n uint32) int {
		return cmp.Compare(s.number, n)
	})
}
