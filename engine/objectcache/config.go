package objectcache

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// DefaultMaxIdle is the kubelet's: five of its resync intervals of one minute. So an
// object that is read once per resync stays followed, and one that is read only at a
// pod's start does not.
const DefaultMaxIdle = 5 * time.Minute

// NeverIdle as [Config].MaxIdle keeps every Reflector running for as long as its
// key is referenced.
const NeverIdle time.Duration = -1

// Config configures a cache. Only Source is required.
type Config[T any] struct {
	// Source has the objects: [engine.Engine.Source], or [engine.SourceOf] a backend.
	// Each referenced key costs it one list and one watch, with the key as prefix. The
	// source of an engine serves them from its cache, so that all keys share the
	// engine's one watch of the backend.
	Source engine.Source[T]
	// Host runs the cache's actors; nil means a host of its own. A given host is not
	// closed with the cache.
	Host *engine.Host
	// Name is the name of the cache in errors and logs; empty means the type's name.
	Name string

	// Immutable reports whether an object will never change, so that nothing
	// needs to follow it any more. It is called once for each state that
	// arrives, from several goroutines at once, and must not block. A panic in
	// it is reported and means false. Nil means that every object may change.
	Immutable func(T) bool
	// MaxIdle is how long a listed object is followed without being read, or waited
	// for by GetNotOlderThan. Zero means [DefaultMaxIdle]; [NeverIdle] means forever.
	MaxIdle time.Duration
	// Backoff spaces the attempts to reconnect to a source that fails, as [engine.Config].Backoff does.
	Backoff engine.Backoff
	// OnError gets every error that no call returns, even those that are retried,
	// as a [*SourceError]; and panics of Immutable and of the host's clock. It is called
	// from several goroutines at once and must not block; [Cache.Close] does not wait there. A
	// panic in it is logged.
	OnError func(error)
}

// settings are a [Config] as the core sees it: what depends on T is a function of
// the untyped object.
type settings struct {
	source    backend.ListerWatcher
	sourceErr error // why the source is invalid
	host      *engine.Host
	name      string
	typeName  string // in place of an empty name
	immutable func(*store.Object) bool
	maxIdle   time.Duration
	backoff   engine.Backoff
	onError   func(error)
}

// settings returns c without its type.
func (c Config[T]) settings() settings {
	s := settings{
		source: c.Source.ListerWatcher, sourceErr: c.Source.Validate(), host: c.Host, name: c.Name, typeName: reflect.TypeFor[T]().String(),
		maxIdle: c.MaxIdle, backoff: c.Backoff, onError: c.OnError,
	}
	if c.Immutable != nil {
		s.immutable = func(o *store.Object) bool { return c.Immutable(typed[T](o).Value) }
	}
	return s
}

func typed[T any](o *store.Object) *engine.Object[T] { return store.As[engine.Object[T]](o) }

// validate returns an [*engine.ConfigError] for the first setting that is wrong.
func (s *settings) validate() error {
	switch {
	case s.sourceErr != nil:
		return s.sourceErr
	case s.maxIdle < 0 && s.maxIdle != NeverIdle:
		return &engine.ConfigError{Field: "MaxIdle", Problem: fmt.Sprintf("is %v; give a duration, zero for %v, or NeverIdle", s.maxIdle, DefaultMaxIdle)}
	}
	if err := engine.ValidateHost("Host", s.host); err != nil {
		return err
	}
	return s.reflector("", discard{}, rand.New(rand.NewPCG(0, 0))).Validate()
}

// withDefaults returns s with defaults for what was left out.
func (s settings) withDefaults() settings {
	s.name = cmp.Or(s.name, s.typeName)
	s.maxIdle = cmp.Or(s.maxIdle, DefaultMaxIdle)
	if s.immutable == nil {
		s.immutable = func(*store.Object) bool { return false }
	}
	if s.onError == nil {
		s.onError = func(error) {}
	}
	return s
}

// reflector returns the configuration of the Reflector of one key.
func (s *settings) reflector(key string, sink reflector.Sink, random *rand.Rand) reflector.Config {
	return reflector.Config{
		Source: s.source, Sink: sink, Prefix: key, Name: "object cache " + s.name, Backoff: s.backoff, Rand: random,
	}
}

// discard is a sink for validating a configuration.
type discard struct{}

// Offer is never called.
func (discard) Offer(reflector.Update) actors.Verdict { return actors.Gone }
