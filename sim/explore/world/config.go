package world

import (
	"fmt"
	"math/rand/v2"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
)

// Config says which engine is explored, and how its clients select. Engine.Key and Draw are
// required.
type Config[T any] struct {
	// Engine describes the objects. Leave out Host, Backend, FirstRevision, Name, Window,
	// NoCache, BookmarkPeriod, Backoff and ListWhenBehind, which each world sets.
	Engine engine.Config[T]
	// Draw draws a value to be written. Everything random in it must come from r.
	Draw func(r *rand.Rand) T
	// Selections are those that watches and lists request. A scenario names them by
	// index, modulo their number.
	Selections []Selection[T]
	// Attach, if set, is called with each new world, before its first step.
	Attach func(*World[T]) error
}

// Selection selects objects in two forms: as selectors for the engine, and as a function
// for the judge, which must not call the code that it judges.
type Selection[T any] struct {
	// Key, Prefix, Labels and Fields are as in [engine.WatchOptions].
	Key, Prefix, Labels, Fields string
	// Selects reports whether the selection matches a value. Nil, which matches all,
	// is only for a selection without selectors.
	Selects func(T) bool
	// start is the first key that a list has; empty means the first of all.
	start string
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
	return engine.ListOptions{Key: s.Key, Prefix: s.Prefix, Start: s.start, Labels: s.Labels, Fields: s.Fields, Read: read}
}

// everything selects every value.
func everything[T any](T) bool { return true }

// WithDefaults returns c with one selection, of everything, if it has none, or a
// [*engine.ConfigError].
func (c Config[T]) WithDefaults() (Config[T], error) {
	switch {
	case c.Engine.Key == nil:
		return c, &engine.ConfigError{Field: "Engine.Key", Problem: "is nil; every object needs a key"}
	case c.Draw == nil:
		return c, &engine.ConfigError{Field: "Draw", Problem: "is nil; give a function that makes a value from a random source"}
	}
	if err := c.validateOwn(); err != nil {
		return c, err
	}
	for i, s := range c.Selections {
		if s.Selects == nil && !s.whole() {
			return c, &engine.ConfigError{Field: fmt.Sprintf("Selections[%d].Selects", i), Problem: "is nil, but the selection has selectors; give the function that matches the same values"}
		}
	}
	if len(c.Selections) == 0 {
		c.Selections = []Selection[T]{{}}
	}
	return c, nil
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
		{"FirstRevision", e.FirstRevision != 0},
		{"Name", e.Name != ""},
		{"Window", e.Window != engine.Window{}},
		{"NoCache", e.NoCache},
		{"BookmarkPeriod", e.BookmarkPeriod != 0},
		{"Backoff", e.Backoff != reflector.Backoff{}},
		{"ListWhenBehind", e.ListWhenBehind != 0},
	} {
		if own.given {
			return &engine.ConfigError{Field: "Engine." + own.field, Problem: "is set, but each scenario has its own; leave it out"}
		}
	}
	return nil
}
