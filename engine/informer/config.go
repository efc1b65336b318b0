package informer

import (
	"fmt"
	"math/rand/v2"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// Config says what an informer mirrors and how. Only Source is required. The
// functions must be quick and pure: they run while a change is being taken in,
// and panics in them are errors.
type Config[T any] struct {
	// Source is what to mirror: [engine.Engine.Source], a backend, or a fake
	// such as enginetest.Source.
	Source backend.ListerWatcher[T]
	// Prefix mirrors only the keys under it, by whole path segments.
	Prefix string
	// Host is what the informer runs on; nil means one of its own. A given host
	// is not closed with the informer.
	Host *engine.Host
	// Name is what the informer is called in errors and logs; empty means the
	// type's name.
	Name string

	// Transform changes a value before it is stored, say to drop what nobody
	// reads. It must return a new value rather than change its argument, which
	// is shared. It is called exactly once for each state of each object.
	Transform func(T) (T, error)
	// Indexers are the indexes to begin with; see
	// [SharedInformer.AddIndexers].
	Indexers store.Indexers[T]
	// Identity tells an object from another that had the same key before: where
	// it differs, handlers get a deletion and an addition instead of an update.
	// Nil means the revision at which the object was created, which every
	// backend of this module keeps.
	Identity func(*Object[T]) string

	// ItemErrors says what to do about an object for which Transform or an
	// IndexFunc fails.
	ItemErrors ItemErrorPolicy
	// OnError is told every error that no call returns: those of the source,
	// even if they are retried, of single objects, of handlers. It is called
	// from several goroutines at once and must not block. A panic in it is
	// logged.
	OnError func(error)
	// Backoff spaces the attempts to come back to a source that fails.
	Backoff reflector.Backoff
}

// ItemErrorPolicy says what becomes of an object for which Transform or an
// IndexFunc fails. In any case OnError is told, and all other objects go on.
type ItemErrorPolicy uint8

const (
	// Skip goes on without: if Transform fails, the state before, if there was
	// one, stays; if an IndexFunc fails, the object is stored but is not in that
	// index.
	Skip ItemErrorPolicy = iota
	// Quarantine does the same and keeps the object in a list, until a later
	// state of it is well or it is deleted; see [SharedInformer.Quarantined].
	Quarantine
	// Fail ends the informer: what was mirrored before can still be read.
	Fail
)

// String returns the policy's name in lower case.
func (p ItemErrorPolicy) String() string {
	switch p {
	case Skip:
		return "skip"
	case Quarantine:
		return "quarantine"
	case Fail:
		return "fail"
	}
	return fmt.Sprintf("ItemErrorPolicy(%d)", uint8(p))
}

// validate returns an [*engine.ConfigError] for the first field that is wrong.
func (c *Config[T]) validate() error {
	switch {
	case c.Source == nil:
		return &engine.ConfigError{Field: "Source", Problem: "is nil; give what to mirror, such as the Source of an engine"}
	case c.ItemErrors > Fail:
		return &engine.ConfigError{Field: "ItemErrors", Problem: fmt.Sprintf("is %v; give Skip, Quarantine or Fail", c.ItemErrors)}
	}
	if err := store.ValidatePrefix(c.Prefix); err != nil {
		return &engine.ConfigError{Field: "Prefix", Problem: fmt.Sprintf(`is no prefix of keys (%v); give "" for everything, or path segments like "ns/name"`, err)}
	}
	if err := c.reflector(nowhere[T]{}, rand.New(rand.NewPCG(0, 0))).Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// reflector is what the informer's Reflector is told.
func (c *Config[T]) reflector(sink reflector.Sink[T], random *rand.Rand) reflector.Config[T] {
	return reflector.Config[T]{Source: c.Source, Sink: sink, Prefix: c.Prefix, Backoff: c.Backoff, Rand: random}
}

// nowhere is a sink to check a configuration with.
type nowhere[T any] struct{}

// Offer is never called.
func (nowhere[T]) Offer(reflector.Update[T]) actors.Verdict { return actors.Gone }

func (c Config[T]) withDefaults() Config[T] {
	if c.Name == "" {
		c.Name = fmt.Sprintf("%T", *new(T))
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return c
}
