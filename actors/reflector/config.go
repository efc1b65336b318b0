package reflector

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// Defaults of [Config].
const (
	// DefaultPageSize is that of the Kubernetes API server's own reflectors: few
	// enough round trips for a million objects, and pages small enough that
	// their revision does not expire while they are read.
	DefaultPageSize = 10_000
	// DefaultMaxBatch events are 32 KiB, one L1 cache, and amortize the cost of
	// a batch (messages, publishing a snapshot: some microseconds) to
	// nanoseconds per event. A larger batch only delays its first event.
	DefaultMaxBatch = 1024
	// DefaultCallTimeout is the Kubernetes API server's limit for a request.
	DefaultCallTimeout = time.Minute
	// DefaultResumeAttempts take two to four minutes with the default Backoff.
	DefaultResumeAttempts = 8
)

// Config configures a Reflector. Source, Sink and Rand are required; zero
// elsewhere means the default.
type Config struct {
	// Source is what to follow. The Reflector has at most one call of List or
	// Watch running on it at a time.
	Source backend.ListerWatcher
	// Sink receives the updates. A panic in it is a failure of the Reflector,
	// for its supervisor to handle.
	Sink Sink
	// Prefix restricts lists and watches to the keys under it; see
	// [store.HasPrefix].
	Prefix string
	// State asks the source for its own state, to be shared instead of copied;
	// see [backend.List].State. It needs an empty Prefix, and a Sink that reads
	// [Update].State.
	State bool
	// StateEvery is how many events may come without the state though no more follow;
	// see [backend.WatchOptions].StateEvery. Not negative; zero means none.
	StateEvery int
	// Name is what its watches are called; see [backend.WatchOptions].Name. Optional.
	Name string
	// WarmStart begins at the oldest state that the source still has, so that the sink
	// learns of the changes since, and can pass them on: for a source that keeps
	// history from before this process. The first [Update] says in Until when the
	// sink is where the source was at the start. Lists after that are of the newest
	// state.
	WarmStart bool
	// WarmFrom is where a warm start begins, if the source has moved on by the time
	// that it is listed; zero means at the oldest state.
	WarmFrom store.Revision
	// NoPrev is for a Sink that keeps the state: events need not have Prev, nor
	// deletions their object; see [backend.WatchOptions].NoPrev. A watch that begins after the
	// Source gave a State has them all the same.
	NoPrev bool
	// PageSize is the most objects to ask for in one List call. Not negative;
	// default [DefaultPageSize].
	PageSize int
	// MaxBatch is the largest number of events in one update. Not negative;
	// default [DefaultMaxBatch].
	MaxBatch int
	// ResumeAttempts is how many watches in a row may end without an event
	// (refused, broken or closed) before the Reflector lists instead of
	// resuming. Not negative; default [DefaultResumeAttempts].
	ResumeAttempts int
	// ListWhenBehind has the Reflector list instead of resuming a watch if the source has
	// moved on by more than that many revisions meanwhile: for a source that repeats changes
	// more slowly than it lists the state, such as etcd. Each attempt to resume then reads
	// the newest revision first, by a list of one object. Zero means never.
	ListWhenBehind store.Revision
	// Waiting reports whether calls wait for a revision that has not come. Until it no
	// longer does, a [Ref.RequestProgress] is repeated every [ProgressPeriod], since a
	// request is lost if the watch breaks or is not open yet. It is called by
	// RequestProgress, and must neither block nor panic. Optional: without it, each
	// RequestProgress makes one request.
	Waiting func() bool
	// CallTimeout bounds each List call (one page) and each Watch call of a
	// source that blocks and does not bound them itself; see [backend.Traits].
	// Not negative; default [DefaultCallTimeout].
	CallTimeout time.Duration
	// Backoff spaces the attempts to reconnect.
	Backoff Backoff
	// Rand is the source of jitter, used by this Reflector alone. Required
	// unless Backoff.Jitter is [NoJitter].
	Rand *rand.Rand
	// Permanent reports whether an error of a call or a watch will never go
	// away: the Reflector then offers a Final [Unavailable] to its sink and
	// stops. Default [Permanent]. A panic in it counts as false.
	Permanent func(error) bool
	// OnError is called with every error, including those that are retried,
	// once each, in order. It must not block. A panic in it is logged and
	// otherwise ignored. Optional.
	OnError func(error)
}

// Permanent is the default of [Config].Permanent: the source is closed, or does
// not support the request. [store.ErrClosed] is permanent only from a call: a
// watch that ends with it is resumed. A panic never is, whatever its value.
func Permanent(err error) bool {
	if errors.Is(err, usercode.ErrPanic) {
		return false
	}
	return errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnsupported) || errors.Is(err, store.ErrInvalidKey)
}

// Validate returns the errors that [Spawn] would return for c: a
// [*usercode.ConfigError] for each field that is wrong, joined.
func (c Config) Validate() error {
	c = c.withDefaults()
	var problems []error
	demand := func(ok bool, field, problem string) {
		if !ok {
			problems = append(problems, &usercode.ConfigError{Field: field, Problem: problem})
		}
	}
	demand(c.Source != nil, "Source", "is nil; give the storage to follow")
	demand(c.Sink != nil, "Sink", "is nil; give the receiver of the updates")
	demand(c.Rand != nil || c.Backoff.Jitter == NoJitter, "Rand", "is nil; give a seeded *rand.Rand, or set Backoff.Jitter to NoJitter")
	demand(store.ValidatePrefix(c.Prefix) == nil, "Prefix", `is not a prefix of keys; give "" for everything, or path segments like "ns/name"`)
	demand(c.StateEvery >= 0, "StateEvery", "is negative; give a number of events, or zero for the state with each")
	demand(c.PageSize > 0, "PageSize", "is negative; give the number of objects per page, or zero for the default")
	demand(c.MaxBatch > 0, "MaxBatch", "is negative; give a number of events, or zero for the default")
	demand(c.ResumeAttempts > 0, "ResumeAttempts", "is negative; give a number of watches, or zero for the default")
	demand(c.CallTimeout > 0, "CallTimeout", "is negative; give a duration, or zero for the default")
	b := c.Backoff
	demand(b.Initial > 0, "Backoff.Initial", "is negative; give a duration, or zero for the default")
	demand(b.Max >= b.Initial, "Backoff.Max", "is less than Initial; give at least that, or zero for the default")
	demand(b.Factor >= 1, "Backoff.Factor", "is less than 1; give 1 or more, or zero for the default")
	demand(b.Jitter >= 0 && b.Jitter <= 10 || b.Jitter == NoJitter, "Backoff.Jitter", "is not between 0 and 10; give a share of the delay, or NoJitter")
	demand(b.HealthyAfter > 0, "Backoff.HealthyAfter", "is negative; give a duration, or zero for the default")
	return errors.Join(problems...)
}

// withDefaults returns c with defaults for the fields that are zero.
func (c Config) withDefaults() Config {
	c.PageSize = cmp.Or(c.PageSize, DefaultPageSize)
	c.MaxBatch = cmp.Or(c.MaxBatch, DefaultMaxBatch)
	c.ResumeAttempts = cmp.Or(c.ResumeAttempts, DefaultResumeAttempts)
	c.CallTimeout = cmp.Or(c.CallTimeout, DefaultCallTimeout)
	c.Backoff = c.Backoff.withDefaults()
	if c.Permanent == nil {
		c.Permanent = Permanent
	}
	return c
}
