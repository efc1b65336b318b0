package serve

import "time"

// A read whose client is slow to read the answer makes room for others among the reads. So clients
// that do not read the answers keep no other client from reading. Such a read costs the server little
// more than a buffer and, if it is a list, the objects of its state that were replaced since.
//
//	enter ──▶ reads ──▶ leave
//	            └── full ──▶ departures ──▶ leave
//	                             └── full: one is cut off

// makeRoom takes the place of a read whose answer has been sent for a while, so that to can have it. It
// takes that of the answer that has been sent longest, of the user that has most reads, or only of to's own
// user. It reports whether there was one. The caller holds f.mu.
func (f *inFlight) makeRoom(to *call, ofSameUser bool) bool {
	slow := f.longestSent(to, ofSameUser)
	if slow == nil {
		return false
	}
	if f.departures.order.Len() >= f.limits.Reads {
		slowest := f.departures.slowest(to)
		if slowest == nil || slowest.w.CutOff() != nil {
			return false
		}
		f.departures.drop(slowest)
	}
	f.giveBack(slow)
	f.departures.add(slow, departurePlace)
	return true
}

// longestSent returns the read for makeRoom, nil if there is none.
func (f *inFlight) longestSent(to *call, ofSameUser bool) (longest *call) {
	var since time.Time
	for c := range f.reading {
		began, sends := c.w.Sending()
		if !sends || time.Since(began) < patience || ofSameUser && c.user.Name != to.user.Name {
			continue
		}
		if longest == nil {
			longest, since = c, began
			continue
		}
		mine, most := f.reads.byUser[c.user.Name], f.reads.byUser[longest.user.Name]
		if mine > most || mine == most && began.Before(since) {
			longest, since = c, began
		}
	}
	return longest
}
