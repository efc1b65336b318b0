package dispatcher

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store/window"
)

// Progress notifications go to progressShare watches per progressPeriod, 10,000 a
// second, so that their work, a few milliseconds per share, does not delay events.
const (
	progressPeriod = 100 * time.Millisecond
	progressShare  = 1000
)

// notified is the watches made by [watcher.NewNotified], whose consumers cache the
// state and therefore need to learn of progress even without events, and those with
// the option Progress, whose consumers are far away, and learn of it by a bookmark. Watches
// without a filter are notified at once, the others, and bookmarks, a share per period.
//
//	round ──▶ streams with events ──▶ their members are notified at once
//	  └─────▶ progressPeriod ──▶ a share of the others, until all are notified
type notified struct {
	d        *dispatcher
	wide     members
	filtered members
	// turn is the next of the filtered ones, left how many remain.
	turn, left int
	timer      clock.Timer // nil unless some remain
}

func newNotified(d *dispatcher) *notified { return &notified{d: d} }

// members is a set of watches in no order.
type members struct {
	all   []*watcher.Member
	index map[*watcher.Member]int
}

func (s *members) add(w *watcher.Member) {
	if s.index == nil {
		s.index = make(map[*watcher.Member]int)
	}
	s.index[w] = len(s.all)
	s.all = append(s.all, w)
}

// remove removes w and reports whether it was present.
func (s *members) remove(w *watcher.Member) bool {
	at, ok := s.index[w]
	if !ok {
		return false
	}
	last := len(s.all) - 1
	s.all[at] = s.all[last]
	s.index[s.all[at]] = at
	s.all[last] = nil
	s.all = s.all[:last]
	delete(s.index, w)
	return true
}

// add adds a watch. One that starts before the newest snapshot is told of that by the next pass, since
// the snapshot's own round is over. In the middle of a pass it comes in addition to the others.
func (n *notified) add(w *watcher.Member) {
	behind := w.Behind(n.d.Feed.Load().Revision)
	if w.Stream().Everything() && !w.Progress() {
		if n.wide.add(w); behind {
			n.d.wake(w)
		}
		return
	}
	n.filtered.add(w)
	switch {
	case behind:
		n.left = len(n.filtered.all)
	case n.left > 0:
		n.left++
	}
}

func (n *notified) remove(w *watcher.Member) {
	if !n.wide.remove(w) && n.filtered.remove(w) && n.left > 0 {
		n.left = len(n.filtered.all) // the moved one may have been skipped: start another pass
	}
}

// published has the next ticks notify all watches without events in the new snapshot.
// After an outage it notifies all at once, since they have learned of no
// progress meanwhile.
func (n *notified) published(prev, next *window.Snapshot) {
	if next.Revision > prev.Revision {
		n.left = len(n.filtered.all)
	}
	n.tell(n.wide.all, next)
	if next.Generation != prev.Generation {
		n.tell(n.filtered.all, next)
	}
}

// tell signals the waiting watches that have not reached snap, and has those that want
// bookmarks for it deliver one.
func (n *notified) tell(some []*watcher.Member, snap *window.Snapshot) {
	for _, w := range some {
		if !w.Behind(snap.Revision) {
			continue
		}
		if w.Progress() {
			n.d.bookmarks.request(w)
		}
		n.d.wake(w)
	}
}

// progress notifies a share of the filtered ones.
func (n *notified) progress(ctx *actors.Context) {
	n.timer = nil
	share := min(n.left, progressShare)
	n.left -= share
	all, snap := n.filtered.all, n.d.Feed.Load()
	for range share {
		n.turn = (n.turn + 1) % len(all)
		n.tell(all[n.turn:n.turn+1], snap)
	}
	n.arm(ctx)
}

// arm arms the timer for the next share.
func (n *notified) arm(ctx *actors.Context) {
	if n.timer == nil && n.left > 0 {
		n.timer = ctx.Clock().AfterFunc(progressPeriod, func() { n.d.self.Tell(progressDue{}) })
	}
}

func (n *notified) stop() { clock.Stop(&n.timer) }
