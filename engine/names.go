package engine

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watchcache"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/mutation"
	"github.com/watchmill/watchmill/store/window"
)

// The engine's vocabulary, gathered here so that a user imports one package. Some are
// declared elsewhere, where their fields and methods are documented: go doc window.Limits.
type (
	// Revision orders all changes of one engine's storage.
	Revision = store.Revision
	// EventType says what happened: [Added] and so on.
	EventType = store.EventType
	// Marks are properties of an event besides its type: [Initial] and so on.
	Marks = store.Marks
	// Policy says what happens to a watch that lags more than its buffer: [Park],
	// [Terminate] or [Conflate].
	Policy = watcher.Policy
	// ErrorPolicy says how often (Attempts), and after which pauses (Backoff, MaxBackoff), a
	// handler that has returned an error for an event is called again, and whether the watch
	// then ends or skips the event (Skip). The zero value makes five attempts and ends it.
	// See [watcher.ErrorPolicy].
	ErrorPolicy = watcher.ErrorPolicy
	// HandlerError says for which event (Revision, Key) a handler has returned an error
	// (Err), and after how many attempts (Attempts). See [watcher.HandlerError].
	HandlerError = watcher.HandlerError
	// Window bounds how much history the engine keeps, by the age, the number and the
	// bytes of the events (MinAge, MinEvents, MaxEvents, MaxBytes). The zero value keeps at
	// least 75 s, unless that is more than a million events or 256 MiB. Over storage that lasts,
	// such as a file, it keeps the newest 131,072 events, whatever their age, unless they are more
	// than 256 MiB. See [window.Limits].
	Window = window.Limits
	// Backoff spaces the attempts to reconnect to a backend that fails (Initial, Max,
	// Factor, Jitter). See [reflector.Backoff].
	Backoff = reflector.Backoff
	// SourceStats are the Reflector's counters, and its state. See [reflector.Stats].
	SourceStats = reflector.Stats
	// Clock is a source of time: [RealClock], or a virtual one.
	Clock = clock.Clock
	// VirtualClock is a clock that moves only by calls. See [clock.Virtual].
	VirtualClock = clock.Virtual
	// Executor runs the turns of actors. See [actors.Executor].
	Executor = actors.Executor
	// Failure is a panic that was contained: in which actor, with its stack, and what
	// became of the actor; or, with the Reason [actors.ErrWorkerHeld] and without a stack, a turn
	// that holds a worker of the pool for more than a second. See [actors.Failure].
	Failure = actors.Failure
	// Preconditions restrict a write to the object that the caller means, by the revision
	// of its creation (UID), its revision (Revision), or its absence (Absent). See
	// [backend.Preconditions].
	Preconditions = backend.Preconditions
)

// RealClock returns the clock of package time.
func RealClock() Clock { return clock.Real() }

// NewVirtualClock returns a clock that shows start until it is moved.
func NewVirtualClock(start time.Time) *VirtualClock { return clock.NewVirtual(start) }

// NewSeededExecutor returns an executor that runs everything in one goroutine, in an
// order that the seed decides: for [HostConfig].Executor.
func NewSeededExecutor(seed uint64) Executor { return actors.NewSeeded(seed) }

// The types of event. [Added], [Modified] and [Deleted] are changes of state; the other two
// are not.
const (
	// Added: the object was created, or now matches the watch's selector.
	Added = store.Added
	// Modified: the object changed, and matched before and after.
	Modified = store.Modified
	// Deleted: the object is gone, or no longer matches.
	Deleted = store.Deleted
	// Bookmark: everything up to the event's revision has been delivered. It has no object.
	Bookmark = store.Bookmark
	// Emitted: a value of [Engine.Emit] or of a [Topic], which no Get or List shows.
	Emitted = store.Emitted
)

// The marks of an event, which may have several.
const (
	// Initial: the object is part of the state that the watch starts with, not a change.
	Initial = store.Initial
	// InitialEnd: the initial state is complete, which a bookmark tells.
	InitialEnd = store.InitialEnd
	// Conflated: earlier changes to the same key were left out.
	Conflated = store.Conflated
	// Synthetic: the change was found by comparing states after a relist, so that earlier
	// changes of the object may have been left out. The revision of a synthetic deletion is
	// not the true one, but a bound.
	Synthetic = store.Synthetic
	// AfterGap: events before this one may be lost, and no event tells of them: values that
	// were emitted or, for a watch that conflates, objects that came and went. After a relist
	// only the next emitted value has it, and no event tells of objects that came and went.
	AfterGap = store.AfterGap
)

// The policies for a watch that lags more than its buffer. The zero value is [Park].
const (
	// Park keeps the watch where it is, at the cost of its cursor. When its position leaves
	// the window, it delivers its backlog and ends with [ErrExpired].
	Park = watcher.Park
	// Terminate ends the watch with [ErrSlowConsumer] once the time budget that all slow
	// watches share is used up, as Kubernetes does.
	Terminate = watcher.Terminate
	// Conflate delivers, when the position leaves the window, the newest state of each
	// changed key, and deletions, marked [Conflated]. Emitted values that it missed are lost.
	Conflate = watcher.Conflate
)

// Why a watch ended.
var (
	// ErrStopped: Stop was called, or the watch's context is done; then the error is the
	// context's cause, too.
	ErrStopped = watcher.ErrStopped
	// ErrExpired: the revision to continue from, of a watch, a list or a checkpoint, is no
	// longer kept: list again, and watch from the list's revision. The error may be an
	// [*ExpiredError].
	ErrExpired = store.ErrExpired
	// ErrSlowConsumer: the watch's policy is [Terminate], and the time budget of slow
	// watches is used up.
	ErrSlowConsumer = watcher.ErrSlowConsumer
	// ErrHandlerPanic: the handler panicked. The error is a [*PanicError].
	ErrHandlerPanic = watcher.ErrHandlerPanic
	// ErrHandler: the handler returned errors for as often as its [ErrorPolicy] permits.
	// The error is a [*HandlerError].
	ErrHandler = watcher.ErrHandler
	// ErrDeadline: the watch's Timeout has passed. It is a [context.DeadlineExceeded], too.
	ErrDeadline = watcher.ErrDeadline
	// ErrEngineClosed: the engine, or the topic, was closed. Calls fail with it, too.
	ErrEngineClosed = watcher.ErrEngineClosed
)

// Errors of calls.
var (
	// ErrNotFound: there is no object under the key.
	ErrNotFound = store.ErrNotFound
	// ErrExists: there is an object under the key already.
	ErrExists = store.ErrExists
	// ErrConflict: the object has changed since the caller read it.
	ErrConflict = store.ErrConflict
	// ErrPrecondition: the object is not the one that the caller means, as its
	// [Preconditions] say. The error is a [*PreconditionError], and an [ErrConflict], too.
	ErrPrecondition = store.ErrPrecondition
	// ErrFuture: the revision has not happened yet, or not within the time that a read waits
	// for it. The error is a [*FutureError].
	ErrFuture = store.ErrFuture
	// ErrInvalidKey: the key cannot name an object. The error is a [*KeyError].
	ErrInvalidKey = store.ErrInvalidKey
	// ErrInvalidContinue: the continue token was not made by this storage.
	ErrInvalidContinue = store.ErrInvalidContinue
	// ErrInvalidSelector: Labels, Fields, Key or Prefix does not parse, or Key and Prefix are given
	// together. The error is a [*SelectorError].
	ErrInvalidSelector = store.ErrInvalidSelector
	// ErrUnknownIndex: there is no index of that name.
	ErrUnknownIndex = store.ErrUnknownIndex
	// ErrUnknownField: the configuration declares no field of that name. The error is an
	// [*UnknownFieldError].
	ErrUnknownField = store.ErrUnknownField
	// ErrNoLabels: a selector of labels, and the configuration has neither Labels nor
	// LabelValues. The error is a [*SelectorError].
	ErrNoLabels = store.ErrNoLabels
	// ErrUnsupported: the storage cannot do that.
	ErrUnsupported = store.ErrUnsupported
	// ErrNilHandler: the handler is nil.
	ErrNilHandler = watcher.ErrNilHandler
	// ErrConsumerConflict: the watch is consumed in another way already: by one of Next,
	// Events, Batches, Chan and a handler, or by the loop over Events whose body has called.
	ErrConsumerConflict = watcher.ErrConsumerConflict
	// ErrMutated: a shared object was changed. The error is a [*MutationError].
	ErrMutated = mutation.ErrMutated
	// ErrNotReady: the cache has no state yet, or its storage cannot be reached. The error
	// is a [*NotReadyError], which says when to retry, or that this does not help: watches
	// end with it, too, if storage has ended for good.
	ErrNotReady = watchcache.ErrNotReady
	// ErrInconsistent: the cache differs from storage. The cache lists again. The error is
	// an [*InconsistencyError].
	ErrInconsistent = watchcache.ErrInconsistent
	// ErrCacheFailed: the cache failed and relists. It is the cause of an
	// [ErrNotReady], which says when to retry.
	ErrCacheFailed = watchcache.ErrFailed
	// ErrWatchNotStarted: the engine failed while it started the watch, which is
	// lost. Watch again.
	ErrWatchNotStarted = dispatcher.ErrFailed
)

// Errors with details, for errors.As:
//
//	var expired *engine.ExpiredError
//	if errors.As(err, &expired) { ... expired.Oldest ... }
type (
	// ExpiredError says which revision expired (Requested), and the oldest that can still
	// be asked for (Oldest; zero if unknown). See [store.ExpiredError].
	ExpiredError = store.ExpiredError
	// FutureError says which revision has not been reached (Requested), and which has
	// (Current). See [store.FutureError].
	FutureError = store.FutureError
	// KeyError says what is wrong with a key (Key, Reason). See [store.KeyError].
	KeyError = store.KeyError
	// PreconditionError says which precondition did not hold (Key; Field is "UID",
	// "Revision" or "Absent"), and both revisions (Want, Got). See [store.PreconditionError].
	PreconditionError = store.PreconditionError
	// SelectorError says which option has a bad selector (Field, Input), and why (Err).
	// See [store.SelectorError].
	SelectorError = store.SelectorError
	// UnknownFieldError says which field is not declared (Name), and which are (Declared).
	// See [store.UnknownFieldError].
	UnknownFieldError = store.UnknownFieldError
	// MutationError says which shared object was changed in place (Key, Revision), and how
	// (Before, After). See [mutation.Error].
	MutationError = mutation.Error
	// NotReadyError says when to retry (RetryAfter), or that this does not help (Final), and
	// why (Cause; nil while the cache fills). See [watchcache.NotReadyError].
	NotReadyError = watchcache.NotReadyError
	// EndError says why a watch ended (Reason), with its name (Watch). See [watcher.EndError].
	EndError = watcher.EndError
	// PanicError says on which event the handler of a watch panicked (Revision, Key), and
	// with what (Value, Stack). See [watcher.PanicError].
	PanicError = watcher.PanicError
)
