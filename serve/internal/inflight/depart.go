package inflight

import "time"

// makeRoom takes the place of a read whose answer has been sent for a while, so that to can have it. It
// takes that of the answer that has been sent longest, of the user that has most reads, or only of to's own
// user. It reports whether there was one. The caller holds l.mu.
func (l *Limiter) makeRoom(to Request, ofSameUser bool) bool {
	longest := l.longestSent(to, ofSameUser)
	if longest == nil {
		return false
	}
	if l.departures.order.Len() >= l.limits.Reads {
		slowest := l.departures.slowest(to)
		if slowest == nil || slowest.CutOff() != nil {
			return false
		}
		l.departures.drop(slowest)
	}
	l.giveBack(longest)
	l.departures.add(longest)
	*longest.Place() = amongDepartures
	return true
}

// longestSent returns the read for makeRoom, nil if there is none.
func (l *Limiter) longestSent(to Request, ofSameUser bool) (longest Request) {
	var since time.Time
	for r := range l.reading {
		began, sends := r.Sending()
		if !sends || time.Since(began) < patience || ofSameUser && r.User() != to.User() {
			continue
		}
		if longest == nil {
			longest, since = r, began
			continue
		}
		mine, most := l.reads.byUser[r.User()], l.reads.byUser[longest.User()]
		if mine > most || mine == most && began.Before(since) {
			longest, since = r, began
		}
	}
	return longest
}
