package actors

import (
	"strconv"
	"sync/atomic"
)

// ID identifies an actor within its system and is never used again. Zero is not an
// actor's ID.
type ID uint64

// String returns the ID in base 36, which is its key in protoactor's registry.
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
// All conditions that decide whether an actor must be submitted are in one word,
// so no wake-up can get lost between two of them.
const (
	spawned    uint32 = 1 << iota // belongs to an actor; a state of zero is that of a box never used
	scheduled                     // submitted to the executor, or in a turn
	running                       // in a turn that calls user code
	hasWork                       // there is work; cleared before the work is done
	hasSystem                     // there are system messages
	suspended                     // failed, and the parent has not decided yet
	restarting                    // its children are being stopped for a restart
	stopping                      // told to stop
	dead                          // stopped; no turn follows
)

// noNewChildren are the states in which an actor takes no new children. Protoactor
// waits for all children of an actor that stops, but stops only those that exist when
// the stop begins.
const noNewChildren = restarting | stopping | dead

// cell is the part that all actors have in common: the state and the system
// messages. There is one per idle wake actor, so its size counts.
//
// Protoactor uses the cell of an actor with a queue as a [mailbox] and as a [lifecycle].
// Both are types of their own, so that none of their methods shows in this package's
// API.
type cell struct {
	state  atomic.Uint32
	spec   *spec                         // set before the spawn; a submission reads state and spec
	posted atomic.Pointer[systemMessage] // newest first; any goroutine pushes
	// The fields below belong to the turn, or are set before the first one.
	taken *systemMessage // oldest first
	body  body
	id    ID
}

// body is the part in which kinds of actors differ. All its methods are called
// from turns.
type body interface {
	// work does what the actor was woken for, up to quota messages, and reports
	// whether some is left.
	work(quota int) (more bool)
	// control handles a system message.
	control(message any)
	// start makes the behavior, if it can be made again, and calls Started.
	start()
	// behavior returns the user's behavior for its optional methods, or nil.
	behavior() any
	// restartable reports whether start can make a new behavior.
	restartable() bool
	// close refuses and drops all messages.
	close()
	// release drops the references to the user's behavior.
	release()
}

// spec is what is fixed about an actor when it is spawned. Wake actors of the
// same parent and executor share one.
type spec struct {
	system   *System
	parentID ID
	exec     Executor
	group    *taskGroup // in the system's pool; nil for the root, or without one
	name     string     // with the names of all ancestors
	// siblings is set if the spec is shared by wake actors; their names are name/id.
	siblings *wakeChildren
	// wakers counts the wake actors that are children.
	wakers atomic.Int64
}

// shared reports whether the spec is that of wake actors.
func (s *spec) shared() bool { return s.siblings != nil }

func (c *cell) name() string {
	if c.spec.shared() {
		return c.spec.name + "/" + c.id.String()
	}
	return c.spec.name
}

// prepare makes c a cell that can be spawned. It counts as scheduled until
// protoactor starts it.
func (c *cell) prepare(s *spec, b body) {
	c.id, c.spec, c.body = s.system.nextID(), s, b
	c.state.Store(spawned | scheduled)
}

// is reports whether any of the bits is set.
func (c *cell) is(bits uint32) bool { return c.state.Load()&bits != 0 }

// markWork makes sure that work is done after now, and reports whether the
// caller must submit the cell for it.
func (c *cell) markWork() (submit bool) {
	for {
		s := c.state.Load()
		if s&(spawned|hasWork|dead) != spawned {
			return false
		}
		next := s | hasWork
		if s&suspended == 0 {
			next |= scheduled
		}
		if c.state.CompareAndSwap(s, next) {
			return next&^s&scheduled != 0
		}
	}
}

// wake makes sure that work is done after now.
func (c *cell) wake() {
	if c.markWork() {
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
		if s&(spawned|hasSystem|dead) != spawned {
			return
		}
		if c.state.CompareAndSwap(s, s|hasSystem|scheduled) {
			if s&scheduled == 0 {
				c.submit()
			}
			return
		}
	}
}

func (c *cell) submit() { c.spec.exec.Submit((*mailbox)(c)) }

// nextSystem takes the oldest system message; nil if there is none.
func (c *cell) nextSystem() any {
	if c.taken == nil {
		c.state.And(^hasSystem)
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

// beginWork claims the work that the cell was woken for; false if there is none,
// or it must wait.
func (c *cell) beginWork() bool {
	for {
		s := c.state.Load()
		if s&hasWork == 0 || s&(suspended|dead) != 0 {
			return false
		}
		if c.state.CompareAndSwap(s, s&^hasWork|running) {
			return true
		}
	}
}

// endTurn submits the cell again, behind the others, or makes it idle. The turn
// must not touch the cell afterwards.
func (c *cell) endTurn() {
	pending := c.taken != nil
	for {
		s := c.state.Load()
		again := s&dead == 0 && (pending || s&hasSystem != 0 || s&(hasWork|suspended) == hasWork)
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
