package explore

import "fmt"

// Play plays one scenario, such as a [Finding]'s or one of [Draw], without shrinking it,
// and returns the invariant that it breaks; nil means that every invariant held. It ignores
// the fields of cfg that say how much to explore. It blocks until the scenario has ended.
//
// Errors: a [*ConfigError] for an invalid field of cfg or of the scenario, or what Attach
// returned. A step that the engine refuses without a reason is a finding, not an error.
func Play[T any](cfg Config[T], s Scenario) (*Finding, error) {
	cfg, err := cfg.withDefaults()
	if err == nil {
		err = s.validate()
	}
	if err != nil {
		return nil, err
	}
	f, o := playTraced(&cfg, s, seams[T]{})
	if o.failure == nil {
		return nil, o.err
	}
	return f, nil
}

// validate returns a [*ConfigError] for the first invalid step, nil if there is none.
func (s *Scenario) validate() error {
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
		return &ConfigError{Field: field + ".Do", Problem: fmt.Sprintf("is %v; give one of the verbs, such as Write", s.Do)}
	case s.N < 0:
		return &ConfigError{Field: field + ".N", Problem: "is negative; give a number of what the verb says, or zero"}
	case s.For < 0 && s.Do != Jump:
		return &ConfigError{Field: field + ".For", Problem: "is negative, but only the clock's Jump goes back"}
	}
	if err := s.validateStart(field + ".Start"); err != nil {
		return err
	}
	if s.Meanwhile != nil {
		return s.Meanwhile.validate(field + ".Meanwhile")
	}
	return nil
}

func (s *Step) validateStart(field string) error {
	switch {
	case s.Start == nil && (s.Do == Watch || s.Do == Follow || s.Do == WatchLastList):
		return &ConfigError{Field: field, Problem: fmt.Sprintf("is nil; a step that does %q needs to know which", s.Do)}
	case s.Start == nil:
		return nil
	case s.Start.Consumer >= consumers:
		return &ConfigError{Field: field + ".Consumer", Problem: fmt.Sprintf("is %v; give one of the consumers, such as Pull", s.Start.Consumer)}
	case s.Start.Selection < 0:
		return &ConfigError{Field: field + ".Selection", Problem: "is negative; give the index of one of the Selections"}
	}
	return nil
}
