package informer

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// DefaultBuffer is how many notifications a handler may have ahead of it before
// its [Policy] counts, if [HandlerOptions].Buffer is zero: twice what one commit
// brings at most, but for a relist, so that a burst alone makes no handler slow.
// That is 16,384.
const DefaultBuffer = 2 * mailboxSize * reflector.DefaultMaxBatch

// Policy says what happens to a handler that falls behind by its buffer. Under
// each of them it needs a bounded amount of memory.
type Policy uint8

const (
	// Merge merges what is ahead of the handler into one change per object, from
	// the state that the handler knows to the newest; objects that came and went
	// meanwhile are left out. Needs memory for one change per object. The informer
	// merges, at about 100 ns per notification for each handler that is behind.
	Merge Policy = iota
	// Resnapshot drops what is ahead of the handler. When the handler comes back
	// it gets the difference between the state that it knows and the newest; see
	// [Relist]. Costs the informer nothing, and needs no memory but those two
	// states. The handler's goroutine compares them whole, and deletions are
	// stale.
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
	case Merge:
		return "merge"
	case Resnapshot:
		return "resnapshot"
	case Block:
		return "block"
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// PanicPolicy says what a panic does to the handler. In any case OnError gets it,
// and all other handlers go on.
type PanicPolicy uint8

const (
	// GoOn goes on with the next notification.
	GoOn PanicPolicy = iota
	// EndHandler removes the handler.
	EndHandler
)

// HandlerOptions says how notifications reach a handler. The zero value is good for
// most.
type HandlerOptions struct {
	// Name is what the handler is called in errors and logs; empty means the file
	// and line of the call that adds it.
	Name string
	// Policy says what happens if the handler falls behind by Buffer.
	Policy Policy
	// Buffer is how many notifications may be ahead of the handler; zero means
	// [DefaultBuffer]. The state that it starts with does not count. It costs no
	// memory of its own: notifications are shared by all handlers.
	Buffer int
	// Resync is the time after which the handler gets every object again, as an
	// update from the object to itself; zero means never. The objects are those
	// of the state that this handler knows, so neither other handlers nor the
	// source are involved.
	Resync time.Duration
	// OnPanic says what a panic of the handler does to it.
	OnPanic PanicPolicy
}

func (o *HandlerOptions) validate() error {
	switch {
	case o.Policy > Block:
		return &engine.ConfigError{Field: "HandlerOptions.Policy", Problem: fmt.Sprintf("is %v; give Merge, Resnapshot or Block", o.Policy)}
	case o.Buffer < 0:
		return &engine.ConfigError{Field: "HandlerOptions.Buffer", Problem: "is negative; give a number of notifications, or zero for the default"}
	case o.Resync < 0:
		return &engine.ConfigError{Field: "HandlerOptions.Resync", Problem: "is negative; zero means never"}
	case o.OnPanic > EndHandler:
		return &engine.ConfigError{Field: "HandlerOptions.OnPanic", Problem: fmt.Sprintf("is %d; give GoOn or EndHandler", o.OnPanic)}
	}
	return nil
}

// named returns the options with a name: without one, that of the place where the
// façade's function was called that calls named.
func (o HandlerOptions) named() HandlerOptions {
	if o.Name == "" {
		o.Name = usercode.Caller(2).String()
	}
	return o
}

// Removal says what becomes of what is ahead of a handler that is removed.
type Removal uint8

const (
	// Drain delivers what was committed before the removal, then ends the handler.
	Drain Removal = iota
	// Drop ends the handler when its present call has returned.
	Drop
)

// Registration is a handler that was added to an informer. Its methods are safe
// for concurrent use.
type Registration struct{ core registrationCore }

// registrationCore is what a [Registration] calls: a [listener]; see
// [informerCore].
type registrationCore interface {
	name() string
	hasSynced() bool
	syncedSignal() <-chan struct{}
	waitSynced(ctx context.Context) error
	ended() <-chan struct{}
	err() error
	lag() int
	stop(how Removal)
	remove(ctx context.Context, how Removal) error
}

// Name returns the handler's name.
func (r *Registration) Name() string { return r.core.name() }

// HasSynced reports whether the handler has handled the state that it starts
// with. A panic counts as a return.
func (r *Registration) HasSynced() bool { return r.core.hasSynced() }

// SyncedSignal returns a channel that is closed when the handler has synced, or
// has ended before that: see [Registration.HasSynced].
func (r *Registration) SyncedSignal() <-chan struct{} { return r.core.syncedSignal() }

// Synced blocks until the handler has synced. It must not be called from the
// handler itself, which it would wait for.
//
// Errors: [ErrNotSynced], with ctx's cause if that ended the wait, or with why
// the handler ended.
func (r *Registration) Synced(ctx context.Context) error { return r.core.waitSynced(ctx) }

// Done returns a channel that is closed when the handler has ended: it is not
// running, and will not be called again.
func (r *Registration) Done() <-chan struct{} { return r.core.ended() }

// Err returns what is wrong with the handler: its last panic, as a
// [*HandlerError], whether or not that ended it; else why it has ended,
// [ErrRemoved] or [ErrClosed]; else nil.
func (r *Registration) Err() error { return r.core.err() }

// Lag returns how many notifications are ahead of the handler, with the one that it
// is handling.
func (r *Registration) Lag() int { return r.core.lag() }

// Stop begins to end the handler, as Remove does, but waits for nothing. So it
// may be called from the handler itself. Done is closed when it has ended.
func (r *Registration) Stop(how Removal) { r.core.stop(how) }

// Remove ends the handler and waits until it has ended. After that it is not called
// again. Removing again, say to Drop after Drain took too long, or a handler that
// has ended, is fine.
//
// The handler itself, and the functions of the configuration, must call Stop
// instead: Remove would wait for the function that calls it.
//
// The error is ctx's cause, if that ended the wait; the handler goes on ending.
func (r *Registration) Remove(ctx context.Context, how Removal) error {
	return r.core.remove(ctx, how)
}

func (l *listener) name() string { return l.options.Name }

func (l *listener) hasSynced() bool { return l.synced.Load() }

func (l *listener) syncedSignal() <-chan struct{} { return l.started }

func (l *listener) waitSynced(ctx context.Context) error {
	waited := l.informer.host.Await(ctx, l.started)
	if l.synced.Load() {
		return nil
	}
	wrong := l.err()
	if wrong == nil {
		wrong = l.informer.problem()
	}
	return &NotSyncedError{Laggards: []Laggard{{l.name(), wrong}}, Cause: waited}
}

func (l *listener) ended() <-chan struct{} { return l.done }

func (l *listener) err() error {
	if failure := l.panicked.Load(); failure != nil {
		return failure
	}
	select {
	case <-l.done:
		return l.end
	default:
		return nil
	}
}

func (l *listener) lag() int { return l.pending.lag() }

func (l *listener) stop(how Removal) {
	l.removed.Store(true)
	if how == Drop {
		l.dropped.Store(true)
	}
	l.informer.actor.Tell(removeListener{l})
}

func (l *listener) remove(ctx context.Context, how Removal) error {
	l.stop(how)
	select {
	case <-l.done:
		return nil
	default:
		return l.informer.host.Await(ctx, l.done)
	}
}
