package inflight

import (
	"container/list"
	"time"
)

// slow are the requests whose clients are slow, in sending a body or in reading an answer. They have
// no place among those that are served. Their number is bounded: when it is reached, one of them is
// given up for the next.
//
// One gives way to another of its own user only after a while: under more load than the server
// takes, each would give way shortly before its end, and none would get through.
type slow struct {
	all   int       // with those that were given up and are not over yet
	order list.List // of Request, those that are there longest first
	stays map[Request]stay
	users share // of those in order
}

// stay is where a request is in the order, since when, and how long it gives way to none.
type stay struct {
	element *list.Element
	began   time.Time
	spared  time.Duration
}

// patience is after how long a request gives way to another of its own user, and the answer to a write to any other.
const patience = time.Second

// has reports whether a request is there, and was not given up.
func (s *slow) has(r Request) bool {
	_, is := s.stays[r]
	return is
}

// add adds a request, which gives way to none for a time.
func (s *slow) add(r Request, spared time.Duration) {
	if s.stays == nil {
		s.stays = map[Request]stay{}
	}
	s.all++
	s.users.take(r.User())
	s.stays[r] = stay{s.order.PushBack(r), time.Now(), spared}
}

// drop keeps a request from being given up.
func (s *slow) drop(r Request) {
	if at, is := s.stays[r]; is {
		s.order.Remove(at.element)
		s.users.giveBack(r.User())
		delete(s.stays, r)
	}
}

// remove removes a request.
func (s *slow) remove(r Request) {
	s.drop(r)
	s.all--
}

// slowest returns the request that gives way to another one: of those that are not spared the one that has
// been there longest, of the user that has most requests there, or of to's user if several have as many; nil if
// none does. One of to's own user gives way only after that time, and none of another user that has no more than to's.
func (s *slow) slowest(to Request, after time.Duration) (slowest Request) {
	most, found, mine := 0, 0, s.users.byUser[to.User()]
	for _, n := range s.users.byUser {
		most = max(most, n)
	}
	sure := func() bool { return found == most && (mine < most || slowest.User() == to.User()) }
	for e := s.order.Front(); e != nil && !sure(); e = e.Next() {
		r := e.Value.(Request)
		if at := s.stays[r]; time.Since(at.began) < at.spared {
			continue
		}
		n := s.users.byUser[r.User()]
		if n > found || n == found && r.User() == to.User() && slowest.User() != to.User() {
			slowest, found = r, n
		}
	}
	switch {
	case slowest == nil,
		mine >= found && slowest.User() != to.User(),
		mine+1 >= found && time.Since(s.stays[slowest].began) < after:
		return nil
	}
	return slowest
}
