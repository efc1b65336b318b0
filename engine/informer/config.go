package informer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/cache"
)

// Config configures an informer. Only Source is required. The functions must be
// quick and pure: they run while the informer applies a change, and panics in them
// are errors.
type Config[T any] struct {
	// Source is what to follow: [engine.Engine.Source], or [engine.SourceOf] a
	// backend.
	Source engine.Source[T]
	// Prefix follows only the keys under it, by whole path segments.
	Prefix string
	// Host is where the informer's actors run; nil means one of its own. A given host
	// is not closed with the informer.
	Host *engine.Host
	// Name is the informer's name in errors and logs; empty means the type's name.
	Name string

	// Transform changes a value before it is stored, for example to drop unused
	// fields. It must return a new value rather than change its argument, which
	// is shared. It is called once for each state of each object; for one that it has failed
	// for, again if the source is listed again.
	Transform func(T) (T, error)
	// Indexers are the indexes to begin with; see
	// [SharedInformer.AddIndexers].
	Indexers cache.Indexers[T]
	// Identity distinguishes an object from an earlier one under the same key:
	// where it differs, handlers get a deletion and an addition instead of an
	// update. Nil means the revision at which the object was created, which every
	// backend of this module keeps.
	Identity func(*Object[T]) string

	// ItemErrors says what to do about an object for which Transform or an
	// IndexFunc fails.
	ItemErrors ItemErrorPolicy
	// OnError gets every error that no call returns: of the source, even if it is
	// retried, of single objects, of handlers. It is called from several
	// goroutines at once and must not block. A panic in it is logged.
	OnError func(error)
	// Backoff spaces the attempts to reconnect to a source that fails, as [engine.Config].Backoff does.
	Backoff engine.Backoff
}

// ItemErrorPolicy says what happens to an object for which Transform or an
// IndexFunc fails. In any case OnError gets the error; other objects are not
// affected.
type ItemErrorPolicy uint8

const (
	// Skip continues: if Transform fails, the object's previous state, if any,
	// stays, unless a list shows that this is of an object that was deleted meanwhile, or of
	// storage that may have been replaced; if an IndexFunc fails, the object is stored but is
	// not in that index.
	Skip ItemErrorPolicy = iota
	// Quarantine does the same and keeps the object in a list, until the functions
	// succeed for a later state of it or it is deleted; see
	// [SharedInformer.Quarantined].
	Quarantine
	// Fail ends the informer; its last state can still be read.
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

// settings are a [Config] as the core sees it: what depends on T is a function of
// the untyped object.
type settings struct {
	source     backend.ListerWatcher
	sourceErr  error // why it is invalid
	prefix     string
	host       *engine.Host
	name       string
	typeName   string       // in place of an empty name
	schema     store.Schema // only of New and Clone
	transform  func(*store.Object) (*store.Object, error)
	indexers   cache.Indexers[*store.Object]
	identity   func(*store.Object) string
	itemErrors ItemErrorPolicy
	onError    func(error)
	backoff    engine.Backoff
}

// settings returns c without its type.
func (c Config[T]) settings() settings {
	s := settings{
		source: c.Source.ListerWatcher, sourceErr: c.Source.Validate(), prefix: c.Prefix, host: c.Host, name: c.Name, typeName: reflect.TypeFor[T]().String(),
		schema: engine.Config[T]{}.Schema(), indexers: untypedIndexers(c.Indexers),
		itemErrors: c.ItemErrors, onError: c.OnError, backoff: c.Backoff,
	}
	if c.Transform != nil {
		s.transform = untypedTransform(c.Transform)
	}
	if c.Identity != nil {
		s.identity = func(o *store.Object) string { return c.Identity(typed[T](o)) }
	}
	return s
}

func typed[T any](o *store.Object) *Object[T] { return store.As[Object[T]](o) }

// untypedTransform returns a function that makes a new object with the value that
// transform returns.
func untypedTransform[T any](transform func(T) (T, error)) func(*store.Object) (*store.Object, error) {
	return func(o *store.Object) (*store.Object, error) {
		transformed := *typed[T](o)
		var err error
		transformed.Value, err = transform(transformed.Value)
		return store.Header(&transformed), err
	}
}

// untypedIndexers returns the same indexes over objects instead of their values.
func untypedIndexers[T any](indexers cache.Indexers[T]) cache.Indexers[*store.Object] {
	untyped := make(cache.Indexers[*store.Object], len(indexers))
	for name, values := range indexers {
		if values == nil {
			untyped[name] = nil
			continue
		}
		untyped[name] = func(o *store.Object) ([]string, error) { return values(typed[T](o).Value) }
	}
	return untyped
}

// validate returns an [*engine.ConfigError] for the first setting that is wrong.
func (s *settings) validate() error {
	switch {
	case s.sourceErr != nil:
		return s.sourceErr
	case s.itemErrors > Fail:
		return &engine.ConfigError{Field: "ItemErrors", Problem: fmt.Sprintf("is %v; give Skip, Quarantine or Fail", s.itemErrors)}
	}
	if err := engine.ValidateHost("Host", s.host); err != nil {
		return err
	}
	if err := store.ValidatePrefix(s.prefix); err != nil {
		return &engine.ConfigError{Field: "Prefix", Problem: fmt.Sprintf(`is not a prefix of keys (%v); give "" for everything, or path segments like "ns/name"`, err)}
	}
	return s.reflector(discard{}, rand.New(rand.NewPCG(0, 0))).Validate()
}

// withDefaults returns s with defaults for what was left out.
func (s settings) withDefaults() settings {
	s.name = cmp.Or(s.name, s.typeName)
	if s.onError == nil {
		s.onError = func(error) {}
	}
	return s
}

// reflector returns the configuration of the informer's Reflector.
func (s *settings) reflector(sink reflector.Sink, random *rand.Rand) reflector.Config {
	return reflector.Config{
		Source: s.source, Sink: sink, Prefix: s.prefix, Name: "informer " + s.name, Backoff: s.backoff, Rand: random,
	}
}

// discard is a sink for validating a configuration.
type discard struct{}

// Offer is never called.
func (discard) Offer(reflector.Update) actors.Verdict { return actors.Gone }
