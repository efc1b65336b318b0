package informer

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// DefaultBuffer is the default of [HandlerOptions].Buffer, 16,384: twice the changes
// that wait for the informer at most, so that a burst alone does not make a handler
// slow.
const DefaultBuffer = 2 * mailboxSize * reflector.DefaultMaxBatch

// Policy says what happens to a handler that falls behind by its buffer. Each
// policy bounds the memory that the handler needs.
type Policy uint8

const (
	// Merge merges the pending notifications into one change per object, from the
	// state that the handler knows to the newest; objects created and deleted
	// meanwhile are left out. Needs memory for one change per object. The informer
	// merges, at about 100 ns per notification for each handler that is behind.
	Merge Policy = iota
	// Resnapshot drops the pending notifications. When the handler returns, it
	// gets the difference between the state that it knows and the newest; see
	// [Relist]. Costs the informer nothing, and keeps only those two states. The
	// handler's goroutine compares them, and deletions are stale.
	Resnapshot
	// Block drops nothing: the informer stops reading from the source until the
	// handler has caught up to half of its buffer. This is the only policy that
	// delays others: all handlers and all readers. Meanwhile the source keeps the
	// changes, if it can; otherwise they arrive as a relist. Needs the buffer, plus
	// one commit: up to some thousand changes, or a relist. The handler must not wait for a
	// revision of the informer: it may hold back what has that revision.
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

// PanicPolicy says what happens to a handler that panics. In any case OnError gets
// the panic, and other handlers are not affected.
type PanicPolicy uint8

const (
	// Continue continues with the next notification.
	Continue PanicPolicy = iota
	// EndHandler removes the handler.
	EndHandler
)

// HandlerOptions configures the delivery to a handler. The zero value suits most.
type HandlerOptions struct {
	// Name is what the handler is called in errors and logs; empty means the file
	// and line of the call that adds it.
	Name string
	// Policy says what happens if the handler falls behind by Buffer.
	Policy Policy
	// Buffer is how many notifications may be pending before Policy applies; zero
	// means [DefaultBuffer]. The initial state does not count. A buffer is not allocated
	// in advance, and handlers share the notifications unless they are far behind.
	Buffer int
	// Resync is the period after which the handler gets every object again, as an
	// update from the object to itself; zero means never. It involves neither the
	// source nor other handlers.
	Resync time.Duration
	// OnPanic says what happens if the handler panics.
	OnPanic PanicPolicy
}

func (o *HandlerOptions) validate() error {
	switch {
	case o.Policy > Block:
		return &engine.ConfigError{Field: "HandlerOptions.Policy", Problem: fmt.Sprintf("is %v; give Merge, Resnapshot or Block", o.Policy)}
	case o.Buffer < 0:
		return &engine.ConfigError{Field: "HandlerOptions.Buffer", Problem: "is negative; give a number of notifications, or zero for the default"}
	case o.Resync < 0:
		return &engine.ConfigError{Field: "HandlerOptions.Resync", Problem: "is negative; give a period, or zero for none"}
	case o.OnPanic > EndHandler:
		return &engine.ConfigError{Field: "HandlerOptions.OnPanic", Problem: fmt.Sprintf("is %d; give Continue or EndHandler", o.OnPanic)}
	}
	return nil
}

// withDefaults returns o with defaults for the fields that are zero. See named for the name.
func (o HandlerOptions) withDefaults() HandlerOptions {
	o.Buffer = cmp.Or(o.Buffer, DefaultBuffer)
	return o
}

// named returns the options with a name: if they have none, the place where the
// façade's function that calls named was called.
func (o HandlerOptions) named() HandlerOptions {
	if o.Name == "" {
		o.Name = usercode.Caller(2).String()
	}
	return o
}

// Removal says what happens to the pending notifications of a removed handler.
type Removal uint8

const (
	// Drain delivers the notifications committed before the removal, then ends the handler.
	Drain Removal = iota
	// Drop ends the handler when its current call has returned.
	Drop
)

// Registration is a handler that was added to an informer. Its methods are safe
// for concurrent use.
type Registration struct{ core registrationCore }

// registrationCore is what a [Registration] calls: a [listener]; see
// [informerCore].
type registrationCore interface {
	name() string
	hostOf() *engine.Host
	hasSynced() bool
	syncedSignal() <-chan struct{}
	waitSynced(ctx context.Context) error
	ended() <-chan struct{}
	err() error
	isRunning() bool
	lag() int
	stop(how Removal)
	remove(ctx context.Context, how Removal) error
}

// Name returns the handler's name.
func (r *Registration) Name() string { return r.core.name() }

// hostOf returns the host that the handler runs on, for [WaitFor].
func (r *Registration) hostOf() *engine.Host { return r.core.hostOf() }

// HasSynced reports whether the handler has handled its initial state. A panic
// counts as handled.
func (r *Registration) HasSynced() bool { return r.core.hasSynced() }

// SyncedSignal returns a channel that is closed when the handler has synced, or
// has ended before that: see [Registration.HasSynced].
func (r *Registration) SyncedSignal() <-chan struct{} { return r.core.syncedSignal() }

// WaitSynced blocks until the handler has synced. It must not be called from the
// handler itself, which it would wait for.
//
// Errors: [ErrNotSynced], with ctx's cause if that ended the wait, or with why
// the handler ended.
func (r *Registration) WaitSynced(ctx context.Context) error { return r.core.waitSynced(ctx) }

// Done returns a channel that is closed when the handler is not running and will
// not be called again.
func (r *Registration) Done() <-chan struct{} { return r.core.ended() }

// Err returns the handler's last panic, as a [*PanicError], whether or not it
// ended the handler; else the reason that it ended, [ErrRemoved], or [ErrClosed] with
// the error of an informer that has ended by itself; else nil.
func (r *Registration) Err() error { return r.core.err() }

// Lag returns the number of pending notifications, including the one being handled;
// zero after the end.
func (r *Registration) Lag() int { return r.core.lag() }

// Stop ends the handler like Remove, but does not wait. So it may be called from
// the handler itself. Done is closed when the handler has ended.
func (r *Registration) Stop(how Removal) { r.core.stop(how) }

// Remove ends the handler and waits until it has ended. Afterwards it is not called
// again. Removing again is allowed, for example with Drop if Drain takes too long.
//
// The handler itself, and the functions of the configuration, must call Stop
// instead: Remove would wait for the function that calls it.
//
// The error is ctx's cause, if that ended the wait; the handler still ends.
func (r *Registration) Remove(ctx context.Context, how Removal) error {
	return r.core.remove(ctx, how)
}

func (l *listener) name() string { return l.options.Name }

func (l *listener) hostOf() *engine.Host { return l.informer.host }

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

// isRunning reports whether the handler is being called.
func (l *listener) isRunning() bool { return l.running.Load() }

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
