package explore

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/world"
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
	// Index and IndexLabels, what half of the scenarios index. Leave out Host, Backend,
	// FirstRevision, Name, Window, NoCache, BookmarkPeriod, Backoff and ListWhenBehind, which
	// each world sets.
	Engine engine.Config[T]
	// Draw draws a value to be written. Everything random in it must come from r.
	// With few different keys more happens to each of them.
	Draw func(r *rand.Rand) T
	// Selections are those that watches and lists request; if there are none, they
	// request all objects.
	Selections []world.Selection[T]
	// Attach, if set, is called with each new world, before its first step, to start
	// the user's own consumers and to register invariants of them. Calls for different
	// worlds are concurrent, so no state may be shared between worlds. An error ends the
	// exploration.
	Attach func(*world.World[T]) error
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

// ConfigError names the invalid field and how to correct it. It matches
// [engine.ErrConfig].
type ConfigError = engine.ConfigError

// world returns the configuration of every world.
func (c *Config[T]) world() world.Config[T] {
	return world.Config[T]{Engine: c.Engine, Draw: c.Draw, Selections: c.Selections, Attach: c.Attach}
}

// validate returns a [*ConfigError] for the first wrong field of those that say how much to explore.
func (c *Config[T]) validate() error {
	switch {
	case c.Steps < 0:
		return &ConfigError{Field: "Steps", Problem: fmt.Sprintf("is %d; give the most steps of a scenario, or zero for %d", c.Steps, DefaultSteps)}
	case c.Seeds < 0:
		return &ConfigError{Field: "Seeds", Problem: fmt.Sprintf("is %d; give how many seeds to explore, or zero for %d", c.Seeds, DefaultSeeds)}
	case c.For < 0:
		return &ConfigError{Field: "For", Problem: "is negative; give the time to explore for, or zero for no limit"}
	case c.Workers < 0:
		return &ConfigError{Field: "Workers", Problem: "is negative; give how many seeds to explore at a time, or zero for GOMAXPROCS"}
	}
	return nil
}

// withDefaults returns c with defaults for the zero fields that say how much to explore.
func (c Config[T]) withDefaults() Config[T] {
	c.Steps, c.Workers = cmp.Or(c.Steps, DefaultSteps), cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	if c.Seeds == 0 && c.For == 0 {
		c.Seeds = DefaultSeeds
	}
	return c
}

// Things returns the configuration with which the engine itself is explored: few keys, and
// every kind of selection.
func Things() Config[world.Thing] {
	c := world.Things()
	return Config[world.Thing]{Engine: c.Engine, Draw: c.Draw, Selections: c.Selections}
}
