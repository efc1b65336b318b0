package backend

import (
	"context"
	"fmt"
	"time"

	"github.com/watchmill/watchmill/store"
)

// ListerWatcher is what a Reflector needs: the state at a revision, and the
// changes after it.
type ListerWatcher interface {
	// List returns objects in key order. It may block; ctx bounds it.
	//
	// Errors: [store.ErrExpired] if the revision (of the options or in the
	// continue token) was compacted, for a token as an
	// [*ExpiredContinueError]; [store.ErrFuture] if it has not happened;
	// [store.ErrInvalidContinue], [store.ErrInvalidKey], [usercode.ErrConfig],
	// ctx's error, or whatever reaching storage met.
	List(ctx context.Context, opts ListOptions) (*List, error)

	// Watch starts to follow changes. It may block until storage has accepted
	// the watch; ctx bounds only that, not the watch's life.
	//
	// Errors: [store.ErrExpired] if opts.From was compacted,
	// [store.ErrFuture], [store.ErrInvalidKey], [usercode.ErrConfig], ctx's
	// error, or whatever reaching storage met.
	Watch(ctx context.Context, opts WatchOptions) (Watcher, error)

	// Traits tells the caller what it may rely on. It is constant.
	Traits() Traits
}

// Backend is versioned storage for objects of one type, which its [store.Schema]
// describes. Every write gets the
// next revision; reads are linearizable: they see every write that was
// acknowledged before they began. All methods are safe for concurrent use.
//
// The writes here are the primitive ones, conditional on a revision. What
// users call (guaranteed update, preconditions, validation, retries) is built
// on them once, in [Storage].
type Backend interface {
	ListerWatcher

	// Get returns the newest object under key, or [store.ErrNotFound].
	Get(ctx context.Context, key string) (*store.Object, error)

	// Put stores draft if the object under its key is still prev, of which the
	// key and the revision count; a nil prev demands that there is none. The
	// caller has filled in draft's Key, Labels, Fields and value. Storage fills
	// in the rest, lets the value carry the revision by [store.Schema.Stamp], owns
	// draft from then on, and returns it. After an error draft
	// is the caller's again.
	//
	// Errors: [store.ErrExists] for a nil prev, otherwise [store.ErrNotFound]
	// or [store.ErrConflict], as a [*ConflictError] if storage has the object at
	// hand; [store.ErrInvalidKey]; [usercode.ErrConfig]; a panic in the schema's
	// functions as an [usercode.ErrPanic]. [ErrUncertain] leaves the outcome
	// unknown: the write may have been done, or be done later still. After any
	// other error nothing has changed and nothing will.
	Put(ctx context.Context, draft, prev *store.Object, opts PutOptions) (*store.Object, error)

	// Remove deletes the object under prev's key if it is still prev, which is not
	// nil. It returns the last state with the revision of the deletion. Errors as
	// for Put.
	Remove(ctx context.Context, prev *store.Object) (*store.Object, error)

	// Revision returns the newest revision, linearizably. It is never zero: empty
	// storage has a revision too, because a watch from zero would start now and
	// miss what came after the empty list.
	Revision(ctx context.Context) (store.Revision, error)

	// Compact gives up the history before rev: reads at and watches from older
	// revisions fail with [store.ErrExpired] from now on. A rev at or below the
	// compacted one does nothing; one in the future fails with
	// [store.ErrFuture].
	Compact(ctx context.Context, rev store.Revision) error

	// Compacted returns the oldest revision that can be listed at and watched from;
	// zero if nothing was given up. Where [Traits].Keeps says so, that may be from
	// before this process.
	Compacted(ctx context.Context) (store.Revision, error)

	// Close ends every watch with [store.ErrClosed] and releases what the
	// backend holds. Calls after it fail with [store.ErrClosed]. A second Close
	// does nothing.
	Close() error
}

// Emitter is implemented by backends that can pass a value through their
// history without keeping it as state.
type Emitter interface {
	// Emit gives draft the next revision and shows it to watches as an
	// [store.Emitted] event; Get and List never show it. Ownership of draft is as
	// for Put.
	Emit(ctx context.Context, draft *store.Object) (*store.Object, error)
}

// Identifier is implemented by backends whose storage outlives the process, so
// that a revision that was written down can name the storage that it belongs to.
// Ask by [StoreID], which looks through decorators.
type Identifier interface {
	// StoreID returns what no other storage has: revisions of two backends can be
	// compared only if it is equal. A storage that was restored from a copy is
	// another one. It may block; ctx bounds it.
	StoreID(ctx context.Context) (string, error)
}

// Unwrapper is implemented by decorators of backends.
type Unwrapper interface {
	// Unwrap returns the backend beneath.
	Unwrap() Backend
}

// StoreID returns what identifies b's storage, which a decorator of b may hide.
// It fails with [store.ErrUnsupported] if b's revisions end with the process.
func StoreID(ctx context.Context, b Backend) (string, error) {
	for {
		if id, ok := b.(Identifier); ok {
			return id.StoreID(ctx)
		}
		decorator, ok := b.(Unwrapper)
		if !ok {
			return "", fmt.Errorf("%w: the storage has no identity: its revisions end with the process", store.ErrUnsupported)
		}
		b = decorator.Unwrap()
	}
}

// Traits says what kind of storage it is.
type Traits struct {
	// Blocks: List, Watch or Get may wait for I/O, so a caller must not be on a
	// pool worker.
	Blocks bool
	// Contiguous: every revision is exactly one event of this type, so a missing
	// number is a lost event. Without it a revision may have any number of events,
	// of different keys.
	Contiguous bool
	// Keeps: storage outlives the process with its history: a list at Compacted and
	// a watch from there show what was before. What reads it may start there rather
	// than at the newest state.
	Keeps bool
	// Shared: others write to the storage, too, so revisions move and objects change
	// without a call of this process.
	Shared bool
}

// PutOptions qualifies a Put.
type PutOptions struct {
	// TTL is how long the object lives at least before storage deletes it; zero
	// means for ever. Storage in memory or a file deletes it in time; etcd takes
	// whole seconds, two at the least, and may start anew when its leader changes. A
	// later Put without TTL makes the object permanent, unless it keeps the expiry.
	TTL time.Duration
	// KeepExpiry: the object expires when the one that it replaces would have, be
	// that never. TTL must be zero then. It means nothing for a nil prev.
	KeepExpiry bool
}

// Historian is implemented by backends that keep their history in memory, to say
// how much there is of it.
type Historian interface {
	// History returns the changes that reads and watches can still go back to.
	History() store.WindowView
}

// # One state for storage and cache
//
// A cache over storage that keeps its state in memory need not build a second
// one. It asks for the storage's own by ListOptions.State and WatchOptions.State:
//
//	List  {State: true} ──▶ List.State                     nothing to page through
//	Watch {State: true} ──▶ Batch{Events, State: nil}      more follows at once
//	                        Batch{Events, State: at Through}
//
// A state is immutable, so the cache publishes it as it is. Storage that has none
// ignores the options, and the cache applies the events itself; and a decorator
// that changes what a watch brings must not pass the option on.

// ListOptions selects what to list. The zero value lists everything, newest
// state.
type ListOptions struct {
	// Prefix restricts the list to keys under it, by whole path segments (see
	// [store.HasPrefix]).
	Prefix string
	// Revision lists the state at exactly that revision; zero means the newest.
	// It must be zero when Continue is set.
	Revision store.Revision
	// Start is the key from which on to list, itself included: a key, or the beginning
	// of one as in Prefix. Empty means from the first. Beside Continue it must be what
	// it was for the first page, or empty.
	Start string
	// Limit is the most objects to return; zero means all.
	Limit int
	// Continue is the token of the page before; see [List].
	Continue string
	// State asks for [List].State, by a caller that lists everything: the zero
	// value but for Revision and Limit.
	State bool
}

// List is one page of objects, in key order.
type List struct {
	// Revision is the revision that the state was read at: the same on every
	// page.
	Revision store.Revision
	// Items is never nil.
	Items []*store.Object
	// Continue asks for the next page; "" on the last one.
	Continue string
	// Remaining is the number of objects after this page.
	Remaining int
	// State, if not nil, is all of the list as storage keeps it: then Items are
	// empty, and it is the last page. It is set only if it was asked for, with the
	// indexes that the storage was made with.
	State *store.TreeView
}

// WatchOptions says where a watch starts and what it covers.
type WatchOptions struct {
	// Prefix restricts the watch to keys under it.
	Prefix string
	// From is the revision after which events are wanted: the first one has a
	// revision greater than From. Zero means from now on.
	From store.Revision
	// Notify is called when Next has something to return, or an error, after a
	// Next that returned nothing. It is called from any goroutine, possibly
	// while the backend holds its locks: it must not block and must not call the
	// backend. Required.
	Notify func()
	// State asks for [Batch].State, for a watch without Prefix. It makes storage
	// keep, within bounds of its own, what the watch has not read.
	State bool
	// NoPrev: the consumer knows the state before each event. Then an event's Prev
	// may be nil, and the Object of a Deleted one may have no more than its Key and
	// Revision, which saves storage elsewhere the sending of it. Storage that shares
	// its state leaves nothing out.
	NoPrev bool
	// Name is what the watch is called where its source shows its watches. Optional.
	Name string
}

// Watcher is a running watch, pulled by one consumer. Its methods must not be
// called concurrently with each other, except Close.
type Watcher interface {
	// Next returns what has been committed since the call before, in order, at
	// most limit events (less than one counts as one), though possibly fewer than
	// there are; events of one revision are never split, so a batch may have as many
	// more as its last revision has. It never blocks. An empty batch means there is nothing
	// now: Notify will be called.
	//
	// An error ends the watch: [store.ErrExpired] if compaction overtook it,
	// [store.ErrClosed], or what broke the connection.
	Next(limit int) (Batch, error)
	// Close ends the watch and frees it: Next fails with [store.ErrClosed] from
	// then on. Notify is not called after Close returned, so Close may wait for
	// one that is running and must not be called from it. Calling it again does
	// nothing.
	Close()
}

// ProgressRequester is implemented by watchers of storage in which revisions move
// without events of the watch, to learn at once that there was none.
type ProgressRequester interface {
	// RequestProgress asks for a batch, be it empty, whose Through is at least the
	// revision that storage has when it is asked. The batch comes by Notify and
	// Next as any other; the call waits only until it is asked for. It may be called
	// concurrently with Next.
	RequestProgress(ctx context.Context) error
}

// RequestProgress calls w's method of that name. It fails with
// [store.ErrUnsupported] if w has none, since it needs none or has no way to ask.
func RequestProgress(ctx context.Context, w Watcher) error {
	if r, ok := w.(ProgressRequester); ok {
		return r.RequestProgress(ctx)
	}
	return store.ErrUnsupported
}

// Batch is a run of changes: all of those in (After, Through] that the watch
// covers.
type Batch struct {
	// After is the Through of the batch before, or the watch's start: a
	// consumer that finds another value here has lost something.
	After store.Revision
	// Through is the revision up to which the batch is complete: no event at or
	// below it is still to come. With no events it is progress alone.
	Through store.Revision
	// Events are in revision order. Those of one revision, which only storage that
	// is not [Traits].Contiguous has, are of different keys, in key order, and all
	// in one batch. The slice is the consumer's to read, not to change.
	Events []store.Event
	// State, if not nil, is the storage's own state at Through. A watch that asked
	// for it, of storage that has one, gets it with the newest events; batches
	// without it are followed by more.
	State *store.TreeView
}
