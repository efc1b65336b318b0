package actors

import (
	"strconv"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// ID identifies an actor within its system, for ever: it is not used again.
// Zero is no actor's.
type ID uint64

// String returns the ID in base 36, as protoactor's registry knows it.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 36) }

// parseID is the inverse of String.
func parseID(s string) ID {
	id, _ := strconv.ParseUint(s, 36, 64)
	return ID(id)
}

// The bits of a cell's state.
//
//	             wake            executor            work left
//	idle ──────────────▶ scheduled ──────▶ running ──────────────▶ scheduled
//	 ▲                                        │
//	 └────────────────────────────────────────┘ nothing left
//
// Everything that decides whether an actor must be submitted is in the one
// word, so no wake-up can fall between two of them.
const (
	spawned    uint32 = 1 << iota // belongs to an actor; zero is a box never used
	scheduled                     // submitted to the executor, or in a turn
	running                       // in a turn that calls user code
	woken                         // there is work; cleared before the work is done
	notified                      // there are system messages
	suspended                     // failed, and the parent has not decided yet
	restarting                    // its children are being stopped for a restart
	stopping                      // told to stop
	dead                          // gone; nothing is ever done again
)

// leaving are the states in which a behavior is on its way out. A new child
// would then be overlooked by protoactor, which tells only the children of the
// first moment to stop and then waits for all.
const leaving = restarting | stopping | dead

// cell is what the mailboxes of all actors have in common: the state, the
// system messages and the way to protoactor's half of the actor. Its size
// counts: there is one per idle wake actor.
//
// It shows protoactor different faces, as pointers to types of their own, so
// that none of their methods shows in this package's API: [mailbox] and
// [incarnation].
type cell struct {
	state  atomic.Uint32
	posted atomic.Pointer[systemMessage] // newest first; any goroutine pushes
	// The rest belongs to the turn, or was set before the first.
	taken    *systemMessage // oldest first
	protocol actor.MessageInvoker
	body     body
	id       ID
	origin   *origin
	brood    *brood // nil until the first child
}

// body is what differs between kinds of actors. All its methods are called
// from turns.
type body interface {
	// work does what the actor was woken for, up to quota messages, and reports
	// whether some is left.
	work(quota int) (more bool)
	// start makes the behavior, if it can be made again, and calls Started.
	start()
	// behavior returns the user's behavior for its optional methods, or nil.
	behavior() any
	// restartable reports whether start can make a new behavior.
	restartable() bool
	// close refuses and drops all messages.
	close()
	// release forgets the user's behavior.
	release()
}

// origin is what an actor is born with. Wake actors of the same parent and
// executor share one.
type origin struct {
	system *System
	parent ID
	exec   Executor
	name   string // with the names of all ancestors
	// above is the origin of the parent, if this one is shared by wake actors:
	// their names are name/id.
	above *origin
	// wakers counts the wake actors that are children.
	wakers atomic.Int64
}

// shared reports whether the origin is that of wake actors.
func (o *origin) shared() bool { return o.above != nil }

func (c *cell) name() string {
	if c.origin.shared() {
		return c.origin.name + "/" + c.id.String()
	}
	return c.origin.name
}

// born makes c a cell that is yet to be spawned.
func (c *cell) born(o *origin, b body) {
	c.id, c.origin, c.body = o.system.nextID(), o, b
	c.state.Store(spawned | scheduled) // until protoactor starts it
}

// is reports whether any of the bits is set.
func (c *cell) is(bits uint32) bool { return c.state.Load()&bits != 0 }

// wake makes sure that work is done after now, and reports whether the caller
// must submit the cell for it.
func (c *cell) wake() (submit bool) {
	for {
		s := c.state.Load()
		if s&(spawned|woken|dead) != spawned {
			return false
		}
		next := s | woken
		if s&suspended == 0 {
			next |= scheduled
		}
		if c.state.CompareAndSwap(s, next) {
			return next&^s&scheduled != 0
		}
	}
}

// rouse is wake and, if need be, submit.
func (c *cell) rouse() {
	if c.wake() {
		c.submit()
	}
}

// post adds a system message and schedules the cell for it.
func (c *cell) post(message any) {
	if c.is(dead) {
		return
	}
	m := &systemMessage{message: message}
	for {
		m.next = c.posted.Load()
		if c.posted.CompareAndSwap(m.next, m) {
			break
		}
	}
	for {
		s := c.state.Load()
		if s&(spawned|notified|dead) != spawned {
			return
		}
		if c.state.CompareAndSwap(s, s|notified|scheduled) {
			if s&scheduled == 0 {
				c.submit()
			}
			return
		}
	}
}

func (c *cell) submit() { c.origin.exec.Submit((*mailbox)(c)) }

// nextSystem takes the oldest system message; nil if there is none.
func (c *cell) nextSystem() any {
	if c.taken == nil {
		c.state.And(^notified)
		for m := c.posted.Swap(nil); m != nil; {
			m.next, c.taken, m = c.taken, m, m.next
		}
	}
	m := c.taken
	if m == nil {
		return nil
	}
	c.taken = m.next
	return m.message
}

// begin claims the work that the cell was woken for; false if there is none, or
// it must wait.
func (c *cell) begin() bool {
	for {
		s := c.state.Load()
		if s&woken == 0 || s&(suspended|dead) != 0 {
			return false
		}
		if c.state.CompareAndSwap(s, s&^woken|running) {
			return true
		}
	}
}

// end ends a turn: the cell is submitted again, behind the others, or idle. The
// turn may not touch it afterwards.
func (c *cell) end() {
	pending := c.taken != nil
	for {
		s := c.state.Load()
		again := s&dead == 0 && (pending || s&notified != 0 || s&(woken|suspended) == woken)
		next := s &^ running
		if !again {
			next &^= scheduled
		}
		if c.state.CompareAndSwap(s, next) {
			if again {
				c.submit()
			}
			return
		}
	}
}
