package controller

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/queue"
)

// MaxWorkers is the most calls of Reconcile that a controller makes at once. Each has a goroutine.
const MaxWorkers = 1_000_000

// Config configures a controller. Reconcile and either Source or Informer are required.
type Config[T any] struct {
	// Source is the source of the objects: [engine.Engine.Source], or [engine.SourceOf] a
	// backend. Prefix restricts it to the keys under a path, by whole segments.
	Source engine.Source[T]
	Prefix string
	// Informer is a shared informer to use in place of one of the controller's own. The
	// controller does not close it, and runs on its host.
	Informer *informer.SharedInformer[T]
	// Host is the host that the controller runs on; nil means one of its own. The
	// controller does not close a given host.
	Host *engine.Host
	// Name is the controller's name in errors and logs; empty means the type's name.
	Name string

	// Reconcile brings the real state in line with the object, which is nil if it has
	// been deleted. It is first called when the informer has synced: before that it is not
	// known which objects there are. The object is shared and must not be changed. Up to
	// Workers calls, for different keys, run concurrently. ctx ends when the controller is
	// closed. It may block.
	Reconcile func(ctx context.Context, key string, object *engine.Object[T]) (Result, error)
	// Keys returns the keys to reconcile after a change; nil means the key of the object
	// that has changed. It must be quick: it is called for every change, and those that wait
	// for it are kept, however many; see [Stats].Lag. The informer's OnError gets a panic in
	// it. Where they follow from what an object refers to, return those of Old, too: it may
	// refer to something else by now, even if it is deleted.
	Keys func(informer.Notification[T]) []string

	// Workers is how many calls may run at once, at most [MaxWorkers]; zero means one.
	Workers int
	// Limiter decides how long a key that failed waits before it is tried again; nil
	// means [queue.NewDefaultRateLimiter]: 5 ms and doubling, up to 1000 s, and longer
	// while more than ten keys a second fail. [queue.NewExponentialRateLimiter] takes other
	// bounds. A change of the object does not wait for that, also one that Reconcile has made:
	// to pause after such a write, keep the pause in the object, and return it as
	// Result.RequeueAfter.
	Limiter queue.RateLimiter[string]
	// MaxAttempts is how many calls in a row may fail for a key before it is given up;
	// zero means that it is never given up. A key that was given up is reconciled again
	// when it changes, at the next Resync, and when a delay is over that began before: of
	// an earlier failure, of Result.RequeueAfter, or of EnqueueAfter. The count is in memory alone,
	// and Reconcile does not get it: to store that an object has failed, count in the object.
	// The package's example of jobs does both.
	MaxAttempts int
	// Resync is the period after which every object is reconciled again; zero means
	// never.
	Resync time.Duration
	// OnError gets each failed call as a [*ReconcileError], and the errors of the
	// controller's own informer. It is called from several goroutines at once and must
	// not block. A panic in it is logged. A call that returns an error after Close, which
	// has ended its context, counts as ended and not as failed; one that panics has failed.
	//
	// If Source is an engine that cannot read its storage at first, that engine's OnError is told, too. A
	// program that gives both the same OnError can leave out each [*informer.SourceError] that is not Final.
	OnError func(error)
	// Metrics, if any, gets measurements; see package controller/prommetrics.
	Metrics Metrics
}

// Result says what follows a successful call. The zero value means nothing.
type Result struct {
	// RequeueAfter is the delay until the key is reconciled again, even without a change; zero
	// means only after a change. An earlier delay of the key is not taken back: the key is
	// reconciled when the first of them is over.
	RequeueAfter time.Duration
}

// validate returns an [*engine.ConfigError] for the first field that is wrong.
func (c *Config[T]) validate() error {
	wrong := func(field, problem string) error { return &engine.ConfigError{Field: field, Problem: problem} }
	switch {
	case c.Reconcile == nil:
		return wrong("Reconcile", "is nil; give the function that is called for each object")
	case c.Informer == nil && c.Source.ListerWatcher == nil:
		return wrong("Source", "is not set; give Engine.Source(), or an Informer to share")
	case c.Informer != nil && c.Source.ListerWatcher != nil:
		return wrong("Source", "is set together with Informer; give one of the two")
	case c.Informer != nil && (c.Host != nil || c.Prefix != ""):
		return wrong("Informer", "has a host and a prefix of its own; leave out Host and Prefix")
	case c.Workers < 0:
		return wrong("Workers", "is negative; zero means one")
	case c.Workers > MaxWorkers:
		return wrong("Workers", fmt.Sprintf("is %d; give at most %d: each has a goroutine", c.Workers, MaxWorkers))
	case c.MaxAttempts < 0:
		return wrong("MaxAttempts", "is negative; zero means any number")
	case c.Resync < 0:
		return wrong("Resync", "is negative; zero means never")
	}
	return engine.ValidateHost("Host", c.Host)
}

// settings are a [Config] without its type.
type settings struct {
	name        string
	workers     int
	maxAttempts int
	limiter     queue.RateLimiter[string]
	onError     func(error)
	metrics     Metrics // nil without
	reconcile   func(ctx context.Context, key string) (Result, error)
	// synced reports whether it is known which objects there are.
	synced func() bool
}

// settings returns c without its type and its functions of it.
func (c *Config[T]) settings() settings {
	return settings{
		name:    cmp.Or(c.Name, reflect.TypeFor[T]().String()),
		workers: c.Workers, maxAttempts: c.MaxAttempts, limiter: c.Limiter, onError: c.OnError, metrics: c.Metrics,
	}
}

// withDefaults returns s with defaults for what was left out.
func (s settings) withDefaults() settings {
	s.workers = cmp.Or(s.workers, 1)
	if s.limiter == nil {
		s.limiter = queue.NewDefaultRateLimiter[string]()
	}
	if s.onError == nil {
		s.onError = func(error) {}
	}
	return s
}
