package serve

import (
	"container/list"
	"time"
)

// slowCalls are the calls whose clients are slow, in sending a body or in reading an answer. They have
// no place among the requests in flight. Their number is bounded: when it is reached, one of them is
// given up for the next.
//
// One gives way to another of its own user only after a while: under more load than the server
// takes, each would give way shortly before its end, and none would get through.
type slowCalls struct {
	all    int       // with those that were given up and are not over yet
	order  list.List // of slowCall, those that are there longest first
	byUser places    // of those in order
}

// patience is after how long a call gives way to another of its own user.
const patience = time.Second

// slowCall is a call that has been there since a time.
type slowCall struct {
	call  *call
	since time.Time
}

// add adds a call, and makes its place as.
func (s *slowCalls) add(c *call, as place) {
	s.all++
	s.byUser.take(c.user.Name)
	c.slow, c.place = s.order.PushBack(slowCall{c, time.Now()}), as
}

// drop keeps a call from being given up.
func (s *slowCalls) drop(c *call) {
	if c.slow != nil {
		s.order.Remove(c.slow)
		s.byUser.giveBack(c.user.Name)
		c.slow = nil
	}
}

// remove removes a call.
func (s *slowCalls) remove(c *call) {
	s.drop(c)
	s.all--
}

// slowest returns the call that gives way to another one: the one that has been there longest,
// of the user that has most of them, or of to's user if several have as many; nil if none
// does.
func (s *slowCalls) slowest(to *call) *call {
	most, mine := 0, s.byUser.byUser[to.user.Name]
	for _, n := range s.byUser.byUser {
		most = max(most, n)
	}
	for e := s.order.Front(); e != nil; e = e.Next() {
		slow := e.Value.(slowCall)
		user := slow.call.user.Name
		if s.byUser.byUser[user] < most || mine == most && user != to.user.Name {
			continue
		}
		if time.Since(slow.since) < patience && mine+1 >= most {
			return nil
		}
		return slow.call
	}
	return nil
}
