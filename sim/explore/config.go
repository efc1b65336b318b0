package explore

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
)

// DefaultSteps is the maximum number of steps of a scenario if [Config].Steps is zero; a
// burst of writes counts as one. It is high enough for faults to coincide, and low enough
// for a person to read the scenario.
const DefaultSteps = 200

// DefaultSeeds is how many seeds are explored if neither Seeds nor For of [Config] is
// set: a few seconds of work.
const DefaultSeeds = 500

// Config says what is explored. Engine.Key and Draw are required.
type Config[T any] struct {
	// Engine describes the objects (Key, Labels, Fields, Size and Equal) and, with
	// Index and IndexLabels, what half of the scenarios index. Leave out what each
	// world sets for itself: Host, Backend, Name, Window, NoCache, BookmarkPeriod and
	// Backoff.
	Engine engine.Config[T]
	// Draw draws a value to be written. Everything random in it must come from r.
	// With few different keys more happens to each of them.
	Draw func(r *rand.Rand) T
	// Selections are those that watches and lists request; if there are none, they
	// request all objects.
	Selections []Selection[T]
	// Attach, if set, is called with each new world, before its first step, to start
	// the user's own consumers and to register invariants of them. Calls for different
	// worlds are concurrent, so no state may be shared between worlds. An error ends the
	// exploration.
	Attach func(*World[T]) error
	// Steps is the maximum number of steps of a scenario, a burst counting as one; zero
	// means [DefaultSteps].
	Steps int

	// From is the first seed, and Seeds how many are explored: zero means
	// [DefaultSeeds], or as many as For allows if that is set.
	From  uint64
	Seeds int
	// For is the real time after which no further seed is begun; zero means no bound.
	// Seeds that have begun are finished.
	For time.Duration
	// Workers is how many seeds are explored at a time, each by one goroutine;
	// zero means GOMAXPROCS. The findings do not depend on it. Each goroutine calls
	// Attach for its own worlds.
	Workers int
	// OnProgress, if set, is called for every seed that has been explored, in the order
	// of the seeds, by one goroutine at a time. It must not block, since the other
	// workers wait for it.
	OnProgress func(Progress)
}

// Selection selects objects in two forms: as selectors for the engine, and as a function
// for the judge, which must not call the code that it judges.
type Selection[T any] struct {
	// Key, Prefix, Labels and Fields are as in [engine.WatchOptions].
	Key, Prefix, Labels, Fields string
	// Selects reports whether the selection matches a value. Nil, which matches all,
	// is only for a selection without selectors.
	Selects func(T) bool
}

// whole reports whether the selection has no selectors and so matches everything.
func (s Selection[T]) whole() bool { return s.Key+s.Prefix+s.Labels+s.Fields == "" }

func (s Selection[T]) selects() func(T) bool {
	if s.Selects == nil {
		return everything[T]
	}
	return s.Selects
}

func (s Selection[T]) list(read engine.Read) engine.ListOptions {
	return engine.ListOptions{Key: s.Key, Prefix: s.Prefix, Labels: s.Labels, Fields: s.Fields, Read: read}
}

// ConfigError names the invalid field and how to correct it. It matches
// [engine.ErrConfig].
type ConfigError = engine.ConfigError

// withDefaults returns c with its zero fields set to their defaults, or a
// [*ConfigError].
func (c Config[T]) withDefaults() (Config[T], error) {
	switch {
	case c.Engine.Key == nil:
		return c, &ConfigError{Field: "Engine.Key", Problem: "is nil; every object needs a key"}
	case c.Draw == nil:
		return c, &ConfigError{Field: "Draw", Problem: "is nil; give a function that makes a value from a random source"}
	}
	if err := c.validateOwn(); err != nil {
		return c, err
	}
	for i, s := range c.Selections {
		if s.Selects == nil && !s.whole() {
			return c, &ConfigError{Field: fmt.Sprintf("Selections[%d].Selects", i), Problem: "is nil, which means that everything is shown, but there are selectors; give a function that says the same as they do"}
		}
	}
	if len(c.Selections) == 0 {
		c.Selections = []Selection[T]{{}}
	}
	return c.withAmounts()
}

// validateOwn refuses the fields that each world sets for itself: it would overwrite
// what the user gave.
func (c *Config[T]) validateOwn() error {
	e := &c.Engine
	for _, own := range []struct {
		field string
		given bool
	}{
		{"Host", e.Host != nil},
		{"Backend", e.Backend != nil},
		{"Name", e.Name != ""},
		{"Window", e.Window != engine.Window{}},
		{"NoCache", e.NoCache},
		{"BookmarkPeriod", e.BookmarkPeriod != 0},
		{"Backoff", e.Backoff != reflector.Backoff{}},
	} {
		if own.given {
			return &ConfigError{Field: "Engine." + own.field, Problem: "is set, but each scenario has its own; leave it out"}
		}
	}
	return nil
}

// withAmounts is the part of withDefaults for the fields that say how much to explore.
func (c Config[T]) withAmounts() (Config[T], error) {
	switch {
	case c.Steps < 0:
		return c, &ConfigError{Field: "Steps", Problem: fmt.Sprintf("is %d; give the most steps of a scenario, or zero for %d", c.Steps, DefaultSteps)}
	case c.Seeds < 0:
		return c, &ConfigError{Field: "Seeds", Problem: fmt.Sprintf("is %d; give how many seeds to explore, or zero for %d", c.Seeds, DefaultSeeds)}
	case c.For < 0:
		return c, &ConfigError{Field: "For", Problem: "is negative; give the time to explore for, or zero for no limit"}
	case c.Workers < 0:
		return c, &ConfigError{Field: "Workers", Problem: "is negative; give how many seeds to explore at a time, or zero for GOMAXPROCS"}
	}
	if c.Steps == 0 {
		c.Steps = DefaultSteps
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Seeds == 0 && c.For == 0 {
		c.Seeds = DefaultSeeds
	}
	return c, nil
}
