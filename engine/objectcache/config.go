package objectcache

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend"
)

// DefaultMaxIdle is the kubelet's: five of its resync intervals of one minute.
// What is read once per resync so never stops, and what is read only when
// something starts, does.
const DefaultMaxIdle = 5 * time.Minute

// NeverIdle as [Config].MaxIdle keeps every Reflector running for as long as its
// key is referenced.
const NeverIdle time.Duration = -1

// Config says where the objects are and when to stop following them. Only Source
// is required.
type Config[T any] struct {
	// Source is where the objects are: [engine.Engine.Source], a backend, or a
	// fake such as enginetest.Source. Each referenced key is one list and one
	// watch of it, under the key as prefix. The source of an engine serves them
	// from its cache, so that all keys share the engine's one stream.
	Source backend.ListerWatcher[T]
	// Host is what the cache runs on; nil means one of its own. A given host is
	// not closed with the cache.
	Host *engine.Host
	// Name is what the cache is called in errors and logs; empty means the
	// type's name.
	Name string

	// Immutable reports whether an object will never change, so that nothing
	// needs to follow it any more. It is called once for each state that
	// arrives, from several goroutines at once, and must not block. A panic in
	// it is reported and means false. Nil means that every object may change.
	Immutable func(T) bool
	// MaxIdle is how long an object that has arrived is followed without being
	// read. Zero means [DefaultMaxIdle]; [NeverIdle] means for ever.
	MaxIdle time.Duration
	// Backoff spaces the attempts to come back to a source that fails.
	Backoff reflector.Backoff
	// OnError is told every error that no call returns, even those that are
	// retried, as a [*SourceError]; and panics of Immutable. It is called from
	// several goroutines at once, must not block and must not call
	// [Cache.Close]. A panic in it is logged.
	OnError func(error)
}

// validate returns an [ErrConfig] that names what is wrong.
func (c *Config[T]) validate() error {
	switch {
	case c.Source == nil:
		return &engine.ConfigError{Field: "Source", Problem: "is nil; give where the objects are, such as the Source of an engine"}
	case c.MaxIdle < 0 && c.MaxIdle != NeverIdle:
		return &engine.ConfigError{Field: "MaxIdle", Problem: fmt.Sprintf("is %v; give a duration, zero for %v, or NeverIdle", c.MaxIdle, DefaultMaxIdle)}
	}
	if err := c.reflector("", nowhere[T]{}, rand.New(rand.NewPCG(0, 0))).Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// reflector is what the Reflector of one key is told.
func (c *Config[T]) reflector(key string, sink reflector.Sink[T], random *rand.Rand) reflector.Config[T] {
	return reflector.Config[T]{Source: c.Source, Sink: sink, Prefix: key, Backoff: c.Backoff, Rand: random}
}

// nowhere is a sink to check a configuration with.
type nowhere[T any] struct{}

// Offer is never called.
func (nowhere[T]) Offer(reflector.Update[T]) actors.Verdict { return actors.Gone }

func (c Config[T]) withDefaults() Config[T] {
	if c.Name == "" {
		c.Name = fmt.Sprintf("%T", *new(T))
	}
	if c.MaxIdle == 0 {
		c.MaxIdle = DefaultMaxIdle
	}
	if c.Immutable == nil {
		c.Immutable = func(T) bool { return false }
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return c
}
