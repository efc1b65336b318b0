package watcher

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// maxNodes is how many rounds of matches a Stream keeps for watches that lag a
// little. One that lags more reads the window instead, so this bounds only memory.
const maxNodes = 32

// Stream is the events that match one filter, evaluated once for all watches that
// have it. Only the dispatcher appends; watches follow the links.
//
//	head ─▶ node ─▶ node ─▶ … ─▶ tail       at most maxNodes; a node that falls
//	         ▲                    ▲          off the head is cut: watches before it
//	      a watch            most watches    read the window again
//
// It keeps no events for longer than the window does, except those of the last node
// until the consumers have handled them.
type Stream struct {
	schema *store.Schema
	filter *store.Filter
	// everything: the filter matches everything, so the window itself is the
	// stream and there are no nodes.
	everything bool
	tail       atomic.Pointer[node]
	// shared is the last part of the window that a watch evaluated: other watches
	// that catch up concurrently reuse the result.
	shared atomic.Pointer[sharedScan]

	// Owned by the dispatcher.
	head    *node
	nodes   int
	members []*Member
}

// node is the matches of one or more dispatch rounds.
type node struct {
	// The node covers the positions from ≤ position < to of its round: events are
	// all matches in there, and there are none between two nodes.
	from, to window.Seq
	events   []store.Event
	// count is the number of events in the stream up to this node's end.
	count uint64
	// next is nil at the tail.
	next atomic.Pointer[node]
	// cut: the stream has dropped the node, to have no more than maxNodes. Only the
	// dispatcher's turns use it.
	cut bool
}

// sharedScan is the matches of the stream's filter in a part of the window.
type sharedScan struct {
	from, to window.Seq
	events   []store.Event
}

// NewStream makes the stream of a filter whose first round starts at position
// at.
func NewStream(schema *store.Schema, filter *store.Filter, at window.Seq) *Stream {
	s := &Stream{schema: schema, filter: filter, everything: filter.Everything()}
	s.head = &node{from: at, to: at}
	s.tail.Store(s.head)
	return s
}

// Filter returns the stream's filter.
func (s *Stream) Filter() *store.Filter { return s.filter }

// Everything reports whether the stream is the window itself.
func (s *Stream) Everything() bool { return s.everything }

// Append adds the matches of a round, which has evaluated the positions in [from, to).
// Only the dispatcher calls it, in order; rounds without matches may be left out.
func (s *Stream) Append(from, to window.Seq, events []store.Event) {
	tail := s.tail.Load()
	n := &node{from: from, to: to, events: events, count: tail.count + uint64(len(events))}
	tail.next.Store(n)
	s.tail.Store(n)
	if s.nodes++; s.nodes > maxNodes {
		s.cutHead()
	}
}

// Restart drops all nodes and continues at position at, after a round that failed.
// The last complete round ended at position done: the members read the events in
// between from the window.
func (s *Stream) Restart(done, at window.Seq) {
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

// Leave removes m from the stream's members.
func (s *Stream) Leave(m *Member) {
	last := len(s.members) - 1
	s.exchange(int(m.memberIndex), last)
	s.members[last] = nil
	s.members = s.members[:last]
	m.memberIndex = noMember
}

// exchange has two members change places.
func (s *Stream) exchange(i, k int) {
	s.members[i], s.members[k] = s.members[k], s.members[i]
	s.members[i].memberIndex, s.members[k].memberIndex = uint32(i), uint32(k)
}

// Release drops the events of a stream that has lost its last member, and is not used again:
// consumers may keep watches that have ended, which know their stream.
func (s *Stream) Release() {
	s.head, s.nodes, s.members = new(node), 0, nil
	s.tail.Store(s.head)
	s.shared.Store(nil)
}

// Joined reports whether m is a member of a stream.
func (m *Member) Joined() bool { return m.memberIndex != noMember }

// Members returns the watches of the stream. The slice is valid until the next Join
// or Leave.
func (s *Stream) Members() []*Member { return s.members }

// count returns the number of events in the stream so far. For an Everything stream
// that is the window's next position.
func (s *Stream) count(next window.Seq) uint64 {
	if s.everything {
		return uint64(next)
	}
	return s.tail.Load().count
}

// countBefore returns the number of events in a filtered stream before position at, the end of the
// published window: the dispatcher may be in a round, and have appended what comes after.
func (s *Stream) countBefore(at window.Seq) uint64 {
	tail := s.tail.Load()
	if tail.from < at {
		return tail.count
	}
	return tail.count - uint64(len(tail.events))
}

func (s *Stream) cutHead() {
	old := s.head
	s.head = old.next.Load()
	old.cut = true
	s.nodes--
}

// never is a position that no window reaches.
const never = math.MaxUint64

// Forget drops the events from before position first, where the window is about to start,
// after the members have been told of it. It returns the first later position for which
// there will be something to drop, as far as is known; first or an earlier one if a member
// needs what was to be dropped now.
func (s *Stream) Forget(first window.Seq) (next window.Seq) {
	next = never
	if shared := s.shared.Load(); shared != nil {
		if shared.to > first {
			next = shared.to
		} else {
			s.shared.CompareAndSwap(shared, nil)
		}
	}
	for s.head.to <= first {
		after := s.head.next.Load()
		if after == nil {
			if len(s.head.events) == 0 || s.replaceTail() {
				return next
			}
			break
		}
		s.head = after
		s.nodes--
	}
	return min(next, s.head.to)
}

// replaceTail replaces the last node, when it is the only one, by one without events. It
// reports false if a member still needs the events.
func (s *Stream) replaceTail() bool {
	last := s.head
	for i, m := range s.members {
		if m.needs(last) {
			s.exchange(0, i) // so that it alone is asked the next time, for as long as it does
			return false
		}
	}
	empty := &node{from: last.to, to: last.to, count: last.count}
	s.head = empty
	s.tail.Store(empty) // first, so that no member joins the last one any more
	for _, m := range s.members {
		m.replaceNode(last, empty)
	}
	return true
}

// evaluate returns the matches among raw, the events at position at. It reuses the
// result of another watch that has just evaluated the same events. Reads end at chunk
// boundaries, so watches that catch up concurrently read the same slices.
func (s *Stream) evaluate(at window.Seq, raw []store.Event) []store.Event {
	to := at + window.Seq(len(raw))
	if m := s.shared.Load(); m != nil && m.from == at && m.to == to {
		return m.events
	}
	events := ConvertBatch(s.schema, s.filter, raw)
	if len(events) < max(len(raw), window.DefaultChunkSize)/4 {
		events = slices.Clone(events) // or these few keep a whole chunk alive, with all its objects
	}
	s.shared.Store(&sharedScan{from: at, to: to, events: events})
	return events
}
