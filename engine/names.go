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
)

// The engine's vocabulary, gathered here so that a user imports one package.
type (
	// Revision orders all changes of one engine's storage.
	Revision = store.Revision
	// EventType says what happened.
	EventType = store.EventType
	// Marks are properties of an event beside its type.
	Marks = store.Marks
	// Policy says what happens to a watch that stays stalled.
	Policy = watcher.Policy
	// ErrorPolicy says what happens after a handler has returned an error for an event.
	ErrorPolicy = watcher.ErrorPolicy
	// HandlerError says for which event a handler has returned an error.
	HandlerError = watcher.HandlerError
	// Window bounds how much history the engine keeps.
	Window = store.WindowLimits
	// Backoff spaces the attempts to reconnect to a backend that fails.
	Backoff = reflector.Backoff
	// SourceStats are the Reflector's counters.
	SourceStats = reflector.Stats
	// Clock is a source of time: [RealClock], or a virtual one.
	Clock = clock.Clock
	// VirtualClock is a clock that moves only by calls.
	VirtualClock = clock.Virtual
	// Executor runs the turns of actors.
	Executor = actors.Executor
	// Failure is a panic in an actor.
	Failure = actors.Failure
	// Preconditions restrict a write to the object that the caller means.
	Preconditions = backend.Preconditions
)

// RealClock returns the clock of package time.
func RealClock() Clock { return clock.Real() }

// NewVirtualClock returns a clock that shows start until it is moved.
func NewVirtualClock(start time.Time) *VirtualClock { return clock.NewVirtual(start) }

// NewSeeded returns an executor that runs everything in one goroutine, in an
// order that the seed decides: for [HostConfig].Executor.
func NewSeeded(seed uint64) Executor { return actors.NewSeeded(seed) }

// The types of event.
const (
	Added    = store.Added
	Modified = store.Modified
	Deleted  = store.Deleted
	Bookmark = store.Bookmark
	Emitted  = store.Emitted
)

// The marks of an event.
const (
	Initial    = store.Initial
	InitialEnd = store.InitialEnd
	Conflated  = store.Conflated
	Synthetic  = store.Synthetic
	AfterGap   = store.AfterGap
)

// The policies.
const (
	Park      = watcher.Park
	Terminate = watcher.Terminate
	Conflate  = watcher.Conflate
)

// Why a watch ended.
var (
	ErrStopped      = watcher.ErrStopped
	ErrExpired      = store.ErrExpired
	ErrSlowConsumer = watcher.ErrSlowConsumer
	ErrHandlerPanic = watcher.ErrHandlerPanic
	ErrHandler      = watcher.ErrHandler
	ErrDeadline     = watcher.ErrDeadline
	ErrEngineClosed = watcher.ErrEngineClosed
)

// Errors of calls.
var (
	ErrNotFound         = store.ErrNotFound
	ErrExists           = store.ErrExists
	ErrConflict         = store.ErrConflict
	ErrPrecondition     = store.ErrPrecondition
	ErrFuture           = store.ErrFuture
	ErrInvalidKey       = store.ErrInvalidKey
	ErrInvalidContinue  = store.ErrInvalidContinue
	ErrInvalidSelector  = store.ErrInvalidSelector
	ErrUnknownIndex     = store.ErrUnknownIndex
	ErrUnknownField     = store.ErrUnknownField
	ErrUnsupported      = store.ErrUnsupported
	ErrNilHandler       = watcher.ErrNilHandler
	ErrConsumerConflict = watcher.ErrConsumerConflict
	ErrMutated          = mutation.ErrMutated
	ErrNotReady         = watchcache.ErrNotReady
	ErrInconsistent     = watchcache.ErrInconsistent
	// ErrCacheFailed: the cache failed and relists. It is the cause of an
	// [ErrNotReady], which says when to retry.
	ErrCacheFailed = watchcache.ErrFailed
	// ErrWatchNotStarted: the engine failed while it started the watch, which is
	// lost. Watch again.
	ErrWatchNotStarted = dispatcher.ErrFailed
)

// Errors with details, for errors.As.
type (
	// ExpiredError says which revision expired and the oldest available one.
	ExpiredError = store.ExpiredError
	// FutureError says which revision has not been reached.
	FutureError = store.FutureError
	// KeyError says what is wrong with a key.
	KeyError = store.KeyError
	// PreconditionError says which precondition did not hold.
	PreconditionError = store.PreconditionError
	// SelectorError says which selector does not parse, and why.
	SelectorError = store.SelectorError
	// UnknownFieldError says which field is not declared, and which are.
	UnknownFieldError = store.UnknownFieldError
	// MutationError says which shared object was changed, and how.
	MutationError = mutation.Error
	// NotReadyError says when to retry.
	NotReadyError = watchcache.NotReadyError
	// EndError is why a watch ended, with the watch's name.
	EndError = watcher.EndError
	// PanicError is the reason that a watch ended whose handler panicked.
	PanicError = watcher.PanicError
)
