package explore

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
)

// DefaultSteps is the most steps of a scenario if [Config].Steps is zero; a burst of
// writes counts as one. It is enough for faults to meet, and few enough to be read.
const DefaultSteps = 200

// DefaultSeeds is how many seeds are explored if neither Seeds nor For of [Config] is
// set: some seconds of work.
const DefaultSeeds = 500

// Config says what is explored. Engine.Key and Draw are required.
type Config[T any] struct {
	// Engine says what the objects are: Key, Labels, Fields, Size and Equal, and
	// with Index and IndexLabels what is indexed in half of the scenarios. What
	// each world has of its own must be left out: Host, Backend, Name, Window,
	// NoCache, BookmarkPeriod and Backoff.
	Engine engine.Config[T]
	// Draw draws a value to be written. All that is random in it must come from
	// r. Few different keys make for more that happens to each.
	Draw func(r *rand.Rand) T
	// Selections are what watches and lists ask for; none means everything.
	Selections []Selection[T]
	// Attach, if set, is called with each new world, before its first step, to start
	// the user's own consumers and to register invariants of them. Each world needs
	// state of its own. An error ends the exploration.
	Attach func(*World[T]) error
	// Steps is the most that a scenario has; zero means [DefaultSteps].
	Steps int

	// From is the first seed, Seeds how many there are: zero means
	// [DefaultSeeds], or as many as For allows if that is set.
	From  uint64
	Seeds int
	// For is the real time after which no further seed is begun; zero means no bound.
	// Seeds that have begun are finished.
	For time.Duration
	// Workers is how many seeds are explored at a time, each by one goroutine;
	// zero means GOMAXPROCS. It changes nothing that is found. Attach is called
	// by any of the goroutines.
	Workers int
	// OnProgress, if set, is called for every seed that is through, in their order,
	// by one goroutine at a time. It must not block.
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

// whole reports whether the engine is asked for everything.
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

// ConfigError names the field that is wrong and how to mend it. It is an
// [engine.ErrConfig].
type ConfigError = engine.ConfigError

// withDefaults fills in what was left out, or returns a [*ConfigError].
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

// validateOwn refuses what each world has of its own, which would be
// overwritten.
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

// withAmounts does the part of withDefaults that is about how much to explore.
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
