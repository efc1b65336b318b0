package engine

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// DefaultFreshnessTimeout is how long a read waits for the cache to reach the
// revision that it needs: the API server's 3 s.
const DefaultFreshnessTimeout = 3 * time.Second

// ErrConfig is what every error of a wrong configuration is.
var ErrConfig = errors.New("invalid configuration")

// ConfigError names the field that is wrong and how to mend it.
type ConfigError struct {
	Field   string
	Problem string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("invalid configuration: %s %s", e.Field, e.Problem)
}

// Is makes errors.Is(err, ErrConfig) true.
func (e *ConfigError) Is(target error) bool { return target == ErrConfig }

// Config says what an engine holds and how. Only Key is required.
type Config[T any] struct {
	// Key returns the object's key: path segments separated by slashes, such as
	// "namespace/name". Required.
	Key func(T) string
	// Labels and Fields return what selectors match on.
	Labels func(T) labels.Set
	Fields func(T) fields.Set
	// Size estimates the bytes that a value holds, for Window.MaxBytes; nil
	// means [store.DefaultSize] for each.
	Size func(T) int
	// Equal reports whether two values are the same, so that an update that
	// changes nothing writes nothing; nil means reflect.DeepEqual.
	Equal func(a, b T) bool

	// Index names fields, IndexLabels labels, that lists can be narrowed by
	// without looking at every object. Watches need no index: the dispatcher
	// indexes what they ask for by itself.
	Index       []string
	IndexLabels []string

	// Window bounds the history that watches can resume from.
	Window Window
	// Capacity is short for Window.MaxEvents; zero turns the cache off: all
	// reads and watches then go to the backend. Nil means the default.
	Capacity *int

	// Backend is where objects live; nil means memory of the engine's own. A
	// given backend is not closed with the engine.
	Backend backend.Backend[T]
	// Host is what the engine runs on; nil means one of its own. A given host is
	// not closed with the engine.
	Host *Host
	// Name is what the engine's actors are called in errors and logs; empty
	// means the type's name.
	Name string

	// BookmarkPeriod is the time between two bookmarks of a watch; zero means
	// one minute.
	BookmarkPeriod time.Duration
	// FreshnessTimeout is how long a read waits for a revision; zero means
	// [DefaultFreshnessTimeout].
	FreshnessTimeout time.Duration
	// VerifyEvery is the time between two comparisons of the cache with the
	// backend, see [Engine.Verify]; up to half of it is added at random. Zero
	// means never. What they find is told to OnError.
	VerifyEvery time.Duration
	// Backoff spaces the attempts to come back to a backend that fails.
	Backoff reflector.Backoff
	// DetectMutations proves that nobody changes a shared object: whoever does
	// is reported through OnError as a [*MutationError], when the object is next
	// superseded, deleted or read, with some later call, or at Close. It prints
	// every value at least twice, so it is for tests. It reads the values while
	// others use them: those with locks or caches inside are not for it, and a
	// change that is made at that moment is a data race that -race finds.
	DetectMutations bool
	// OnError is told every error that no call returns, such as those of a
	// backend that is retried. It must not block.
	OnError func(error)
}

// validate returns a [*ConfigError] for the first field that is wrong.
func (c *Config[T]) validate() error {
	switch {
	case c.Key == nil:
		return &ConfigError{"Key", "is nil; every object needs a key: give a function such as func(p Pod) string { return p.Name }"}
	case c.Capacity != nil && *c.Capacity < 0:
		return &ConfigError{"Capacity", fmt.Sprintf("is %d; give the events to keep, 0 to turn the cache off, or nil for the default", *c.Capacity)}
	case c.Capacity != nil && c.Window.MaxEvents != 0:
		return &ConfigError{"Capacity", "and Window.MaxEvents are both set; they mean the same, give one"}
	case len(c.Index) > 0 && c.Fields == nil:
		return &ConfigError{"Index", "names fields, but Fields is nil; give a function that returns them"}
	case len(c.IndexLabels) > 0 && c.Labels == nil:
		return &ConfigError{"IndexLabels", "names labels, but Labels is nil; give a function that returns them"}
	case c.BookmarkPeriod < 0:
		return &ConfigError{"BookmarkPeriod", "is negative; zero means one minute"}
	case c.FreshnessTimeout < 0:
		return &ConfigError{"FreshnessTimeout", "is negative; zero means 3 s"}
	case c.VerifyEvery < 0:
		return &ConfigError{"VerifyEvery", "is negative; zero means never"}
	case c.VerifyEvery > 0 && !c.cached():
		return &ConfigError{"VerifyEvery", "is set, but Capacity 0 turns the cache off: there is nothing to compare"}
	}
	if err := c.Window.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c.validateIndexes()
}

func (c *Config[T]) validateIndexes() error {
	seen := make(map[store.Attribute]bool)
	for _, a := range c.indexes() {
		switch {
		case a.Name == "":
			return &ConfigError{"Index", "has an empty name; give the field's or label's name"}
		case seen[a]:
			return &ConfigError{"Index", fmt.Sprintf("names %s twice", a)}
		}
		seen[a] = true
	}
	return nil
}

// indexes returns the attributes to index.
func (c *Config[T]) indexes() []store.Attribute {
	attributes := make([]store.Attribute, 0, len(c.Index)+len(c.IndexLabels))
	for _, name := range c.Index {
		attributes = append(attributes, store.FieldAttribute(name))
	}
	for _, name := range c.IndexLabels {
		attributes = append(attributes, store.LabelAttribute(name))
	}
	return attributes
}

// cached reports whether there is a cache.
func (c *Config[T]) cached() bool { return c.Capacity == nil || *c.Capacity > 0 }

// withDefaults fills in what was left out.
func (c Config[T]) withDefaults() Config[T] {
	if c.BookmarkPeriod == 0 {
		c.BookmarkPeriod = dispatcher.DefaultBookmarkPeriod
	}
	if c.FreshnessTimeout == 0 {
		c.FreshnessTimeout = DefaultFreshnessTimeout
	}
	if c.Name == "" {
		c.Name = fmt.Sprintf("%T", *new(T))
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	if c.Capacity != nil {
		c.Window.MaxEvents = *c.Capacity
	}
	return c
}

func (c *Config[T]) schema() store.Schema[T] {
	return store.Schema[T]{Key: c.Key, Labels: c.Labels, Fields: c.Fields, Size: c.Size, Equal: c.Equal}
}
