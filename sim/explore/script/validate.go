package script

import (
	"fmt"

	"github.com/watchmill/watchmill/engine"
)

// Validate returns a [*engine.ConfigError] for the first invalid step, nil if there is none.
func (s *Scenario) Validate() error {
	for i := range s.Steps {
		if err := s.Steps[i].validate(fmt.Sprintf("Steps[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) validate(field string) error {
	switch {
	case s.Do == 0 || s.Do >= verbs:
		return &engine.ConfigError{Field: field + ".Do", Problem: fmt.Sprintf("is %v; give one of the verbs, such as Write", s.Do)}
	case s.N < 0:
		return &engine.ConfigError{Field: field + ".N", Problem: "is negative; give a number of what the verb says, or zero"}
	case s.N == 0 && s.Do.counts():
		return &engine.ConfigError{Field: field + ".N", Problem: fmt.Sprintf("is zero; a %q step needs the number of events, objects or calls", s.Do)}
	case s.For < 0 && s.Do != Jump:
		return &engine.ConfigError{Field: field + ".For", Problem: "is negative, but only the clock's Jump goes back"}
	}
	if err := s.validateStart(field + ".Start"); err != nil {
		return err
	}
	if s.Meanwhile != nil {
		return s.Meanwhile.validate(field + ".Meanwhile")
	}
	return nil
}

// counts reports whether a step with the verb is about N things, of which there must be one.
func (v Verb) counts() bool {
	switch v {
	case Take, Pages, NextPage, FailLists, FailWatches, SlowLists:
		return true
	}
	return false
}

func (s *Step) validateStart(field string) error {
	switch {
	case s.Start == nil && (s.Do == Watch || s.Do == Follow || s.Do == WatchLastList):
		return &engine.ConfigError{Field: field, Problem: fmt.Sprintf("is nil; a %q step needs the watch to start", s.Do)}
	case s.Start == nil:
		return nil
	case s.Start.Consumer >= consumers:
		return &engine.ConfigError{Field: field + ".Consumer", Problem: fmt.Sprintf("is %v; give one of the consumers, such as Pull", s.Start.Consumer)}
	case s.Start.Selection < 0:
		return &engine.ConfigError{Field: field + ".Selection", Problem: "is negative; give the index of one of the Selections"}
	}
	return nil
}
