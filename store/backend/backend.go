package backend

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// ListerWatcher is what a Reflector needs: the state at a revision, and the
// changes after it. It never gains methods.
type ListerWatcher interface {
	// List returns objects in key order. It may block; ctx bounds it.
	//
	// Errors: [store.ErrExpired] if the revision (of the options or in the
	// continue token) was compacted, for a token as an
	// [*ExpiredContinueError]; [store.ErrFuture] if it has not happened;
	// [store.ErrInvalidContinue], [store.ErrInvalidKey], [usercode.ErrConfig],
	// ctx's cause, or an error of reaching storage.
	List(ctx context.Context, opts ListOptions) (*List, error)

	// Watch starts a watch. It may block until storage has accepted the watch; ctx
	// bounds only that, not the watch's life.
	//
	// Errors: [store.ErrExpired] if opts.From was compacted,
	// [store.ErrFuture], [store.ErrInvalidKey], [usercode.ErrConfig], ctx's
	// cause, or an error of reaching storage.
	Watch(ctx context.Context, opts WatchOptions) (Watcher, error)

	// Traits returns what the caller may rely on. It is constant.
	Traits() Traits
}

// Backend is versioned storage for objects of one type, which its [store.Schema]
// describes. Every write gets the next revision. Reads are linearizable: they see every
// write that was acknowledged before they began. All methods are safe for concurrent
// use. A call whose ctx is done changes nothing and fails with ctx's cause.
//
// The writes are primitive and conditional on a revision. [Storage] implements
// guaranteed updates, preconditions, validation and retries on them.
//
// It never gains methods: what else storage can do are interfaces of their own, such as [Emitter].
type Backend interface {
	ListerWatcher

	// Get returns the newest object under key. Errors: [store.ErrNotFound],
	// [store.ErrInvalidKey], ctx's cause, or an error of reaching storage.
	Get(ctx context.Context, key string) (*store.Object, error)

	// Put stores draft if the object under its key still has prev's revision; a prev
	// that is nil or has no revision means that there must be none. The caller has filled in
	// draft's Key, Labels, Fields and value. Storage fills in the rest, puts the revision
	// into the value by [store.Schema.Stamp], owns draft from then on, and returns it. After
	// an error draft is the caller's again.
	//
	// Errors: [store.ErrExists] without a prev, otherwise [store.ErrNotFound]
	// or [store.ErrConflict], as a [*ConflictError] if storage knows the present
	// object; [store.ErrInvalidKey]; [usercode.ErrConfig]; [store.ErrUnsupported] for a TTL,
	// if storage has none; a panic in the schema's functions as an [usercode.ErrPanic]. With
	// [ErrUncertain] the outcome is unknown: the write may have been done, or may be done
	// later. After any other error the write has not been done and will not be.
	Put(ctx context.Context, draft, prev *store.Object, opts PutOptions) (*store.Object, error)

	// Remove deletes the object under prev's key if it is still prev. It returns the last
	// state with the revision and the time of the deletion, as [store.Schema.Gone] makes it.
	// Errors as for Put, and [usercode.ErrConfig] for a prev that is nil or has no revision,
	// which [CheckExpected] would take for there being no object.
	Remove(ctx context.Context, prev *store.Object) (*store.Object, error)

	// Revision returns the newest revision, linearizably. It is never zero: empty
	// storage has a revision too, since a watch from zero would start now and miss
	// what was written after the empty list.
	Revision(ctx context.Context) (store.Revision, error)

	// Compact discards the history before rev: reads at and watches from older
	// revisions fail with [store.ErrExpired] from now on. A rev at or below the
	// compacted one does nothing; one in the future fails with [store.ErrFuture].
	Compact(ctx context.Context, rev store.Revision) error

	// Compacted returns the oldest revision that can be listed at and watched from;
	// zero if nothing was discarded. With [Traits].KeepsHistory it may be older than this
	// process.
	Compacted(ctx context.Context) (store.Revision, error)

	// Close ends every watch with [store.ErrClosed] and releases the backend's
	// resources. Later calls fail with [store.ErrClosed]. A second Close does nothing.
	Close() error
}

// Emitter is implemented by backends that can add a value to their history without
// storing it as state.
type Emitter interface {
	// Emit gives draft the next revision and shows it to watches as an
	// [store.Emitted] event; Get and List never show it. Ownership of draft is as
	// for Put.
	Emit(ctx context.Context, draft *store.Object) (*store.Object, error)
}

// Identifier is implemented by backends and other sources that know which storage
// their revisions are of, so that a revision can name it. Call it by [StoreID], which
// unwraps decorators. A [Watcher] that is one knows which storage it is of.
type Identifier interface {
	// StoreID returns a unique identity of the storage: revisions of two backends can
	// be compared only if it is equal. Storage that is restored from a copy gets a new
	// one, and an identity that was given up is never used again. It may block; ctx
	// bounds it.
	//
	// Errors: [store.ErrClosed] once the backend is closed, [store.ErrUnsupported] if
	// the storage is not known, ctx's cause, or an error of reaching storage.
	StoreID(ctx context.Context) (string, error)
}

// Unwrapper is implemented by decorators of backends.
type Unwrapper interface {
	// Unwrap returns the decorated backend.
	Unwrap() Backend
}

// StoreID returns the identity of the storage of from, even if that is a decorator. It
// fails with [store.ErrUnsupported] if from does not know it, and otherwise as
// [Identifier].StoreID does.
func StoreID(ctx context.Context, from ListerWatcher) (string, error) {
	for {
		if id, ok := from.(Identifier); ok {
			return id.StoreID(ctx)
		}
		decorator, ok := from.(Unwrapper)
		if !ok {
			return "", fmt.Errorf("%w: the storage has no identity: its revisions end with the process", store.ErrUnsupported)
		}
		from = decorator.Unwrap()
	}
}

// Traits are the properties of a storage.
type Traits struct {
	// Blocks: List, Watch or Get may wait for I/O, so they must not be called on a
	// worker of the pool.
	Blocks bool
	// Bounded: a List or a Watch fails by itself if storage does not answer, or stops in the middle of
	// an answer, so a caller need not bound how long a large answer takes.
	Bounded bool
	// Contiguous: every revision is exactly one event of this type, so a missing
	// number is a lost event. Without it a revision may have any number of events,
	// of different keys.
	Contiguous bool
	// KeepsHistory: the storage and its history outlive the process: a list at Compacted and a
	// watch from there return the changes before the start. A reader may begin there
	// rather than at the newest state.
	KeepsHistory bool
	// Shared: others, such as other processes, write to the storage too, so revisions
	// increase and objects change without calls of this backend.
	Shared bool
	// Identifies: each list says in [List].StoreID which storage it is of, so that a
	// reader need not call [StoreID] before it, which may be a request of its own.
	Identifies bool
	// Type is that of the [store.Schema] of the backend: the type of the objects' values;
	// nil if it is not known.
	Type reflect.Type
}

// PutOptions qualifies a Put.
type PutOptions struct {
	// TTL is the least time before storage deletes the object; zero means that it never
	// expires. Storage in memory or a file deletes it in time; etcd has whole seconds,
	// at least two, and may start again when its leader changes. A later Put without
	// TTL makes the object permanent, unless it keeps the expiry. Storage that has no TTLs
	// fails with [store.ErrUnsupported].
	TTL time.Duration
	// KeepExpiry: the object keeps the expiry of the one that it replaces. TTL must be
	// zero then. It has no effect for a nil prev.
	KeepExpiry bool
}

// Historian is implemented by backends that keep their history in memory, to report its
// size.
type Historian interface {
	// History returns the changes that reads and watches can still go back to.
	History() window.View
}

// # Sharing the state with a cache
//
// A cache over storage that keeps its state in memory does not need a copy of it. It
// requests the storage's own by ListOptions.State and WatchOptions.State:
//
//	List  {State: true} ──▶ List.State                     instead of pages
//	Watch {State: true} ──▶ Batch{Events, State: nil}      more follows at once, or see StateEvery
//	                        Batch{Events, State: at Through}
//
// A state is immutable, so the cache publishes it unchanged. Storage without one ignores
// the options, and the cache applies the events itself. A decorator that changes what a
// watch delivers must not pass the option on.

// ListOptions selects what to list. The zero value lists everything in the newest
// state.
type ListOptions struct {
	// Prefix restricts the list to keys under it, by whole path segments (see
	// [store.HasPrefix]).
	Prefix string
	// Revision lists the state at exactly that revision; zero means the newest.
	// It must be zero when Continue is set.
	Revision store.Revision
	// Start is the key from which on to list, itself included: a key, or the beginning
	// of one as in Prefix. Empty means from the first. With Continue it must be what
	// it was for the first page, or empty.
	Start string
	// Limit is the most objects to return; zero means all.
	Limit int
	// Continue is the token of the previous page; see [List].
	Continue string
	// State requests [List].State. Then no other fields may be set but Revision and
	// Limit.
	State bool
}

// List is one page of objects, in key order.
type List struct {
	// Revision is that of the state that was read, the same on every page.
	Revision store.Revision
	// Items is never nil.
	Items []*store.Object
	// Continue is the token for the next page; "" on the last one.
	Continue string
	// Remaining is the number of objects after this page, -1 if there are some, but
	// their number is unknown.
	Remaining int
	// StoreID identifies the storage that the list is of, see [Traits].Identifies; ""
	// means that only [StoreID] knows.
	StoreID string
	// State, if not nil, is the whole list as storage keeps it, with the storage's
	// indexes: then Items are empty, and it is the last page. It is set only if it was
	// requested.
	State *tree.View
}

// WatchOptions says where a watch starts and what it covers.
type WatchOptions struct {
	// Prefix restricts the watch to keys under it.
	Prefix string
	// From is the revision after which the watch starts: all events have greater ones.
	// Zero means from now on.
	From store.Revision
	// Notify is called when Next has something to return, or an error, after a Next that
	// returned nothing. It is called from any goroutine, possibly while the backend has
	// its locks: it must not block and must not call the backend. Required.
	Notify func()
	// State requests [Batch].State, for a watch without Prefix. Storage then keeps the
	// events that the watch has not read, within bounds of its own.
	State bool
	// StateEvery is how many events since the last state the consumer applies itself: up
	// to that many may come without the state though no more follow. With zero the newest
	// events always have it. Since storage goes on writing to a tree of which it has
	// given a state, each costs it copies of the nodes that it then changes.
	StateEvery int
	// NoPrev: the consumer has the state before each event. Then an event's Prev may be
	// nil, and the Object of a Deleted one may have only its Key and Revision, so that
	// storage need not send or read them. Storage that shares its state may omit them until
	// the first batch with the state, and nothing after it.
	NoPrev bool
	// Name is the watch's name in lists of watches. Optional.
	Name string
}

// Watcher is a running watch, pulled by one consumer. Its methods must not be
// called concurrently with each other, except Close. It never gains methods.
type Watcher interface {
	// Next returns events that were committed since the previous call, in order: at most
	// limit (less than one counts as one), and possibly fewer than there are. Events of
	// one revision are never split, so a batch may have more events of its last
	// revision. It never blocks. After an empty batch, Notify is called when there is
	// something to return.
	//
	// An error ends the watch: [store.ErrExpired] if its position was compacted,
	// [store.ErrClosed], or the error of the connection.
	Next(limit int) (Batch, error)
	// Close ends the watch and releases its resources: Next fails with
	// [store.ErrClosed] from then on. Notify is not called after Close has returned, so
	// Close may wait for a running Notify and must not be called from it. Calling it
	// again does nothing.
	Close()
}

// ProgressRequester is implemented by watchers of storage whose revisions can increase
// without events of the watch, so that a consumer learns at once that it has
// everything.
type ProgressRequester interface {
	// RequestProgress requests a batch, possibly empty, whose Through is at least the
	// revision that storage has now. Notify and Next deliver it like any other; the
	// call returns once it has been requested. It may be called concurrently with Next.
	RequestProgress(ctx context.Context) error
}

// RequestProgress calls w's method of that name. It fails with [store.ErrUnsupported] if
// w has none, because it needs none or storage cannot do it.
func RequestProgress(ctx context.Context, w Watcher) error {
	if r, ok := w.(ProgressRequester); ok {
		return r.RequestProgress(ctx)
	}
	return store.ErrUnsupported
}

// Batch has all changes of the watch with revisions in (After, Through].
type Batch struct {
	// After is the Through of the previous batch, or the watch's start. With any other
	// value the consumer has lost events.
	After store.Revision
	// Through is the revision up to which the batch is complete: there will be no more
	// events at or below it. A batch without events only reports progress.
	Through store.Revision
	// Events are in revision order. Several events of one revision, which only storage
	// without [Traits].Contiguous has, are of different keys, in key order, and in one
	// batch. The consumer must not change the slice.
	Events []store.Event
	// State, if not nil, is the storage's own state at Through. A watch that requested
	// it, of storage that has one, gets it with the newest events, subject to
	// [WatchOptions].StateEvery; any other batch without it is followed by more.
	State *tree.View
}
