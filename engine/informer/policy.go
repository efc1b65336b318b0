package informer

import (
	"fmt"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
)

// DefaultBuffer is how many notifications a handler may have ahead of it before
// its [Policy] counts, if [HandlerOptions].Buffer is zero: twice what one commit
// brings at most, but for a relist, so that a burst alone makes nobody slow. That
// is 16,384.
const DefaultBuffer = 2 * mailboxSize * reflector.DefaultMaxBatch

// Policy says what happens to a handler that falls behind by its buffer. Under
// each of them it needs a bounded amount of memory.
type Policy uint8

const (
	// Conflate merges what is ahead of the handler: per object it is told how to
	// get from what it knows to the newest, and of objects that came and went
	// meanwhile it is told nothing. Needs memory for one change per object. The
	// informer merges, at about 100 ns per notification for each handler that is
	// behind.
	Conflate Policy = iota
	// Resnapshot drops what is ahead of the handler. When it comes back it is
	// told the difference between the state that it knows and the newest; see
	// [Relist]. Costs the informer nothing, and needs no memory but those two
	// states. The handler compares them whole, and its deletions are stale.
	Resnapshot
	// Block drops nothing: the informer stops taking from the source until the
	// handler has caught up, to half of its buffer. This is the one policy that
	// delays others: all handlers, and what can be read. Meanwhile the source
	// keeps the changes, if it can; otherwise they come as a relist. Needs the
	// buffer, and what comes at once: up to some thousand changes, or a relist.
	Block
)

// String returns the policy's name in lower case.
func (p Policy) String() string {
	switch p {
	case Conflate:
		return "conflate"
	case Resnapshot:
		return "resnapshot"
	case Block:
		return "block"
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// PanicPolicy says what a panic does to the handler. In any case OnError is told,
// and all other handlers go on.
type PanicPolicy uint8

const (
	// GoOn goes on with the next notification.
	GoOn PanicPolicy = iota
	// EndHandler removes the handler.
	EndHandler
)

// HandlerOptions says how a handler is told. The zero value is good for most.
type HandlerOptions struct {
	// Name is what the handler is called in errors; empty means "handler-" and a
	// number.
	Name string
	// Policy says what happens if the handler falls behind by Buffer.
	Policy Policy
	// Buffer is how many notifications may be ahead of the handler; zero means
	// [DefaultBuffer]. The state that it starts with does not count. It costs no
	// memory of its own: notifications are shared by all handlers.
	Buffer int
	// Resync is the time between two times that the handler is told every object
	// again, as an update from the object to itself; zero means never. They come
	// off the state that this handler knows, so neither other handlers nor the
	// source have a part in it.
	Resync time.Duration
	// OnPanic says what a panic of the handler does to it.
	OnPanic PanicPolicy
}

func (o *HandlerOptions) validate() error {
	switch {
	case o.Policy > Block:
		return &engine.ConfigError{Field: "HandlerOptions.Policy", Problem: fmt.Sprintf("is %v; give Conflate, Resnapshot or Block", o.Policy)}
	case o.Buffer < 0:
		return &engine.ConfigError{Field: "HandlerOptions.Buffer", Problem: "is negative; give a number of notifications, or zero for the default"}
	case o.Resync < 0:
		return &engine.ConfigError{Field: "HandlerOptions.Resync", Problem: "is negative; zero means never"}
	case o.OnPanic > EndHandler:
		return &engine.ConfigError{Field: "HandlerOptions.OnPanic", Problem: fmt.Sprintf("is %d; give GoOn or EndHandler", o.OnPanic)}
	}
	return nil
}
