package inflight

import (
	"slices"
	"time"
)

// makeRoom takes the place of a read whose answer has been sent for a while, so that to can have it. It
// takes that of the answer that has been sent longest, of the user that has most reads, or only of to's own
// user. It reports whether there was one. The caller holds l.mu.
func (l *Limiter) makeRoom(to Request, ofSameUser bool) bool {
	longest := l.longestSent(to, ofSameUser)
	if longest == nil || !l.makeDeparture(to) {
		return false
	}
	l.depart(longest, 0)
	return true
}

// Depart says that the answer of a request is sent now. A write gives its place among the writes to others, and has
// one among the departures until it leaves. If these are full and none gives way, it does so once another write wants
// its place and one gives way. It is not cut off for a second: its client would not know whether the write was done.
// Other requests keep what they have.
func (l *Limiter) Depart(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *r.Place() != amongWrites {
		return
	}
	switch {
	case l.makeDeparture(r):
		l.depart(r, patience)
	case !slices.Contains(l.late, r):
		l.late = append(l.late, r)
	}
}

// departLate has the write depart that waits longest for that, of any user or of to's own. It reports whether one did. The
// caller holds l.mu.
func (l *Limiter) departLate(to Request, ofSameUser bool) bool {
	i := slices.IndexFunc(l.late, func(r Request) bool { return !ofSameUser || r.User() == to.User() })
	if i < 0 || !l.makeDeparture(l.late[i]) {
		return false
	}
	l.depart(l.late[i], patience)
	return true
}

// DepartUnadmitted is Depart for a request that may have no place, such as one that was refused: it has one among the
// unadmitted until it leaves. There may be any number of these, so that another one of them gives way at once.
func (l *Limiter) DepartUnadmitted(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *r.Place() == none && makeRoomAmong(&l.unadmitted, l.limits.Unadmitted, r, 0) {
		l.unadmitted.add(r, 0)
		*r.Place() = amongUnadmitted
	}
}

// makeDeparture reports whether there is a place among the departures for one more. The caller holds l.mu.
func (l *Limiter) makeDeparture(to Request) bool {
	return makeRoomAmong(&l.departures, l.limits.Reads, to, patience)
}

// makeRoomAmong reports whether there is a place among so many answers for one more. If there is none, it cuts off the
// slowest, one of to's own user only after that time. The caller holds the limiter's lock.
func makeRoomAmong(answers *slow, limit int, to Request, after time.Duration) bool {
	if answers.order.Len() < limit {
		return true
	}
	slowest := answers.slowest(to, after)
	if slowest == nil || slowest.CutOff() != nil {
		return false
	}
	answers.drop(slowest)
	return true
}

// depart moves a request to the departures, where it is not cut off for a time. The caller holds l.mu.
func (l *Limiter) depart(r Request, spared time.Duration) {
	l.giveBack(r)
	l.departures.add(r, spared)
	*r.Place() = amongDepartures
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
