package watcher

import (
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
)

// maxNodes is how many rounds of matches a Stream keeps linked for watchers
// that lag a little. One that lags more reads the window instead, which holds
// far longer; so this bounds only memory, not what can be resumed.
const maxNodes = 32

// Stream is what one filter lets through, evaluated once for all watchers that
// have it. The dispatcher alone appends; watchers follow the links.
//
//	head ─▶ node ─▶ node ─▶ … ─▶ tail        at most maxNodes; a node that falls
//	         ▲                    ▲           off the head is cut: whoever stands
//	     a watcher            most watchers   on it is sent back to the window
type Stream struct {
	schema *store.Schema
	filter *store.Filter
	// everything: the filter lets all through, so the window itself is the
	// stream and no node is ever made.
	everything bool
	tail       atomic.Pointer[node]
	// shared is the last stretch that a watch evaluated by itself: those that catch
	// up beside it take the result.
	shared atomic.Pointer[sharedScan]

	// Owned by the dispatcher.
	head    *node
	nodes   int
	members []*Member
}

// node is the matches of one or more dispatch rounds.
type node struct {
	// The node covers the window from ≤ position < to, the round that it is of;
	// every match in there is in events, and there is none between two nodes.
	from, to store.Seq
	events   []store.Event
	// count is the number of events in the stream up to this node's end.
	count uint64
	// next is nil at the tail.
	next atomic.Pointer[node]
	// cut: the stream has let go of the node. Only the dispatcher's turns write
	// and read it.
	cut bool
}

// sharedScan is a stretch of the window as this stream's filter sees it.
type sharedScan struct {
	from, to store.Seq
	events   []store.Event
}

// NewStream makes the stream of a filter whose first round starts at position
// at.
func NewStream(schema *store.Schema, filter *store.Filter, at store.Seq) *Stream {
	s := &Stream{schema: schema, filter: filter, everything: filter.Everything()}
	s.head = &node{from: at, to: at}
	s.tail.Store(s.head)
	return s
}

// Filter returns what the stream lets through.
func (s *Stream) Filter() *store.Filter { return s.filter }

// Everything reports whether the stream is the window itself.
func (s *Stream) Everything() bool { return s.everything }

// Append adds the matches of a round that went over the window from position
// from up to to. Only the dispatcher calls it, in order; a round without matches
// need not be told.
func (s *Stream) Append(from, to store.Seq, events []store.Event) {
	tail := s.tail.Load()
	n := &node{from: from, to: to, events: events, count: tail.count + uint64(len(events))}
	tail.next.Store(n)
	s.tail.Store(n)
	if s.nodes++; s.nodes > maxNodes {
		s.cutHead()
	}
}

// Restart drops what is linked and goes on at position at, after a round that
// could not be completed. The last complete one ended at position done: what
// lies between is for the members to read from the window.
func (s *Stream) Restart(done, at store.Seq) {
	s.head = &node{from: at, to: at, count: s.tail.Load().count}
	s.nodes = 0
	s.tail.Store(s.head) // first, so that no member joins the old one again
	for _, m := range s.members {
		m.leaveStream(done)
	}
}

// Join makes m a member; Leave undoes it. Only the dispatcher calls them.
func (s *Stream) Join(m *Member) {
	m.memberIndex = uint32(len(s.members))
	s.members = append(s.members, m)
}

// Leave takes m out of the stream's members.
func (s *Stream) Leave(m *Member) {
	last := len(s.members) - 1
	moved := s.members[last]
	s.members[m.memberIndex], moved.memberIndex = moved, m.memberIndex
	s.members[last] = nil
	s.members = s.members[:last]
	m.memberIndex = noMember
}

// Joined reports whether m is a member of a stream.
func (m *Member) Joined() bool { return m.memberIndex != noMember }

// Members returns the watches of the stream. The slice is the dispatcher's to
// read until the next Join or Leave.
func (s *Stream) Members() []*Member { return s.members }

// count is how many events the stream has had. For an Everything stream that
// is the window's next position.
func (s *Stream) count(next store.Seq) uint64 {
	if s.everything {
		return uint64(next)
	}
	return s.tail.Load().count
}

func (s *Stream) cutHead() {
	old := s.head
	s.head = old.next.Load()
	old.cut = true
	s.nodes--
}

// evaluate returns the matches among raw, which stands at position at, taking
// them from a neighbour that has just evaluated the same stretch if it can.
// Stretches end where chunks do, so after one of their own all that catch up
// read the same.
func (s *Stream) evaluate(at store.Seq, raw []store.Event) []store.Event {
	to := at + store.Seq(len(raw))
	if m := s.shared.Load(); m != nil && m.from == at && m.to == to {
		return m.events
	}
	events := ConvertBatch(s.schema, s.filter, raw)
	s.shared.Store(&sharedScan{from: at, to: to, events: events})
	return events
}
