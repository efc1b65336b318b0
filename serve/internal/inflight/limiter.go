package inflight

import (
	"slices"
	"sync"
)

// Limits are how many requests may be in flight, of all users together and of each.
type Limits struct {
	Reads, ReadsPerUser     int
	Writes, WritesPerUser   int
	Watches, WatchesPerUser int
	// Unadmitted is how many answers may be sent at a time to requests that were not admitted.
	Unadmitted int
}

// Sort is what a request does.
type Sort uint8

// The sorts of requests.
const (
	Read Sort = iota
	Write
	Watch
)

// Limiter gives requests their places, or refuses them. It is safe for concurrent use.
type Limiter struct {
	limits Limits

	mu                     sync.Mutex
	reads, writes, watches share
	reading                map[Request]struct{} // those that have a place among the reads
	arrivals               slow                 // writes whose bodies arrive
	departures             slow                 // answers that are sent while their requests have no other place
	unadmitted             slow                 // answers to requests that had no place
	// late are the writes whose answers are sent, and which have found no place among the departures.
	late []Request
}

// NewLimiter returns a limiter.
func NewLimiter(limits Limits) *Limiter {
	return &Limiter{limits: limits, reading: map[Request]struct{}{}}
}

// Enter gives a request a place, or refuses it by a [FullError]. The caller calls Leave when the request is over.
func (l *Limiter) Enter(r Request, as Sort) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch as {
	case Watch:
		return l.enterWatches(r)
	case Read:
		return l.enterReads(r)
	}
	return l.enterWrites(r)
}

// enterWatches is Enter for a watch. The caller holds l.mu.
func (l *Limiter) enterWatches(r Request) error {
	switch {
	case l.watches.all >= l.limits.Watches:
		return FullError{Of: Watch}
	case l.watches.byUser[r.User()] >= l.limits.WatchesPerUser:
		return FullError{Of: Watch, PerUser: true}
	}
	l.watches.take(r.User())
	*r.Place() = amongWatches
	return nil
}

// enterReads is Enter for a read. The caller holds l.mu.
func (l *Limiter) enterReads(r Request) error {
	switch {
	case l.limits.ReadsPerUser < l.limits.Reads && l.reads.byUser[r.User()] >= l.limits.ReadsPerUser && !l.makeRoom(r, true):
		return FullError{Of: Read, PerUser: true}
	case l.reads.all >= l.limits.Reads && !l.makeRoom(r, false):
		return FullError{Of: Read}
	}
	l.reads.take(r.User())
	l.reading[r] = struct{}{}
	*r.Place() = amongReads
	return nil
}

// enterWrites is Enter for a write. The caller holds l.mu.
func (l *Limiter) enterWrites(r Request) error {
	switch {
	case l.writes.all >= l.limits.Writes && !l.departLate(r, false):
		return FullError{Of: Write}
	case l.writes.byUser[r.User()] >= l.limits.WritesPerUser && !l.departLate(r, true):
		return FullError{Of: Write, PerUser: true}
	}
	l.writes.take(r.User())
	*r.Place() = amongWrites
	return nil
}

// Leave gives back the place of a request that is over, if it has one.
func (l *Limiter) Leave(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveBack(r)
}

// giveBack gives back the place of a request. The caller holds l.mu.
func (l *Limiter) giveBack(r Request) {
	switch *r.Place() {
	case amongReads:
		l.reads.giveBack(r.User())
		delete(l.reading, r)
	case amongWrites:
		l.writes.giveBack(r.User())
		l.late = slices.DeleteFunc(l.late, func(one Request) bool { return one == r })
	case amongWatches:
		l.watches.giveBack(r.User())
	case amongArrivals:
		l.arrivals.remove(r)
	case amongDepartures:
		l.departures.remove(r)
	case amongUnadmitted:
		l.unadmitted.remove(r)
	}
	*r.Place() = none
}

// Counts are the numbers of requests that have a place, by where it is.
type Counts struct{ Reads, Writes, Watches, Arrivals, Departures int }

// Counts returns how many requests have a place.
func (l *Limiter) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Counts{l.reads.all, l.writes.all, l.watches.all, l.arrivals.all, l.departures.all + l.unadmitted.all}
}

// share is how many requests have a place, and how many of them are each user's.
type share struct {
	all    int
	byUser map[string]int
}

func (s *share) take(user string) {
	if s.byUser == nil {
		s.byUser = map[string]int{}
	}
	s.all++
	s.byUser[user]++
}

func (s *share) giveBack(user string) {
	s.all--
	if s.byUser[user]--; s.byUser[user] == 0 {
		delete(s.byUser, user)
	}
}
