package script

import (
	"fmt"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
)

// maxTime is the most time that may pass in a scenario, and the largest correction of the clock:
// the virtual clock ends after 292 years. maxPasses is how often a step may let time pass, and
// maxChanges how many changes a transaction may have beyond two, and storage before the engine starts.
const (
	maxTime    = 365 * 24 * time.Hour
	maxPasses  = 100_000
	maxChanges = 100_000
)

// maxBookmarkPeriod is the longest time between two bookmarks: at its end a world waits for one that long.
const maxBookmarkPeriod = time.Minute

// Validate returns a [*engine.ConfigError] for an invalid setup or the first invalid step, nil if there
// is none. It leaves the rest of the setup to the engine, which refuses what it cannot have.
func (s *Scenario) Validate() error {
	if s.Abrupt && s.Drain {
		return &engine.ConfigError{Field: "Drain", Problem: "is set together with Abrupt; choose one end"}
	}
	if s.Impatient && !s.Drain {
		return &engine.ConfigError{Field: "Impatient", Problem: "is set without Drain, whose context it ends; set both"}
	}
	if s.Setup.BookmarkPeriod > maxBookmarkPeriod {
		return &engine.ConfigError{Field: "Setup.BookmarkPeriod", Problem: fmt.Sprintf("is %v; give at most %v", s.Setup.BookmarkPeriod, maxBookmarkPeriod)}
	}
	if s.Setup.Before < 0 || s.Setup.Before > maxChanges {
		return &engine.ConfigError{Field: "Setup.Before", Problem: fmt.Sprintf("is %d; give a number of changes from 0 to %d", s.Setup.Before, maxChanges)}
	}
	if err := s.Setup.validateTransactions(); err != nil {
		return err
	}
	left := maxTime
	for i := range s.Steps {
		step, field := &s.Steps[i], fmt.Sprintf("Steps[%d]", i)
		if err := step.validate(field, &s.Setup); err != nil {
			return err
		}
		if left -= step.time(); left < 0 {
			return &engine.ConfigError{Field: field + ".For", Problem: fmt.Sprintf("makes the scenario last longer than %v; let less time pass", maxTime)}
		}
	}
	return nil
}

// validateTransactions refuses what would make the engine list storage with transactions again.
func (s *Setup) validateTransactions() error {
	switch {
	case s.Transactions && s.SharesState:
		return &engine.ConfigError{Field: "Setup.SharesState", Problem: "is set together with Transactions, each of which storage that shares its state would show in part; leave out one"}
	case s.Transactions && s.ListWhenBehind > 0:
		return &engine.ConfigError{Field: "Setup.ListWhenBehind", Problem: "is set together with Transactions, with which the engine must not list again; leave out one"}
	}
	return nil
}

// time returns how much time passes in a valid step at most.
func (s *Step) time() (passes time.Duration) {
	switch s.Do {
	case Pass:
		passes = time.Duration(s.N) * s.For
	case Get, List, Fetch, WaitFor, Discard:
		passes = s.For
	}
	if s.Meanwhile != nil {
		passes += s.Meanwhile.time()
	}
	return min(passes, 2*maxTime) // many steps within each other could add up to more than a Duration has
}

func (s *Step) validate(field string, setup *Setup) error {
	switch {
	case s.Do == 0 || s.Do >= verbs:
		return &engine.ConfigError{Field: field + ".Do", Problem: fmt.Sprintf("is %v; give one of the verbs, such as Write", s.Do)}
	case setup.Transactions && slices.Contains(relistVerbs, s.Do):
		return &engine.ConfigError{Field: field + ".Do", Problem: fmt.Sprintf("is %q, which makes the engine list again, as it must not with Setup.Transactions; leave out one", s.Do)}
	case !setup.Transactions && s.Do == Transact:
		return &engine.ConfigError{Field: field + ".Do", Problem: fmt.Sprintf("is %q, which storage has only with Setup.Transactions; set that", s.Do)}
	case s.N < 0:
		return &engine.ConfigError{Field: field + ".N", Problem: "is negative; give a number of what the verb says, or zero"}
	case s.N == 0 && s.Do.counts():
		return &engine.ConfigError{Field: field + ".N", Problem: fmt.Sprintf("is zero; a %q step needs the number of events, objects or calls", s.Do)}
	case s.N > maxPasses && s.Do == Pass:
		return &engine.ConfigError{Field: field + ".N", Problem: fmt.Sprintf("is %d; let time pass at most %d times, each for longer", s.N, maxPasses)}
	case s.N > maxChanges && s.Do == Transact:
		return &engine.ConfigError{Field: field + ".N", Problem: fmt.Sprintf("is %d; give a transaction at most %d changes", s.N, maxChanges)}
	case s.For < 0 && s.Do != Jump:
		return &engine.ConfigError{Field: field + ".For", Problem: "is negative, but only the clock's Jump goes back"}
	case s.For < -maxTime || s.For > maxTime, s.Do == Pass && s.N > 0 && s.For > maxTime/time.Duration(s.N):
		return &engine.ConfigError{Field: field + ".For", Problem: fmt.Sprintf("is %v; give no more than %v in all", s.For, maxTime)}
	}
	if err := s.validateStart(field+".Start", setup); err != nil {
		return err
	}
	if s.Meanwhile != nil {
		return s.Meanwhile.validate(field+".Meanwhile", setup)
	}
	return nil
}

// counts reports whether a step with the verb is about N things, at least one.
func (v Verb) counts() bool {
	switch v {
	case Take, Pages, NextPage, FailLists, FailWatches, SlowLists, FailCalls, LoseAnswers, Fail:
		return true
	}
	return false
}

func (s *Step) validateStart(field string, setup *Setup) error {
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
	if setup.Transactions && s.Start.Options.Policy == engine.Conflate {
		return &engine.ConfigError{Field: field + ".Options.Policy", Problem: "is Conflate, which compares states, as is impossible with Setup.Transactions; give Park or Terminate"}
	}
	return s.validateOptions(field+".Options", s.Start.Uncached && setup.Uncached)
}

// validateOptions refuses the options with which the engine, with a cache or without, starts no watch.
// [Follow] and [WatchLastList] start one at a list, whatever Last says, and [WatchLastList] does not
// have the policy Conflate without a cache.
func (s *Step) validateOptions(field string, uncached bool) error {
	switch o := &s.Start.Options; {
	case !o.Policy.Valid():
		return &engine.ConfigError{Field: field + ".Policy", Problem: fmt.Sprintf("is %v; give Park, Terminate or Conflate", o.Policy)}
	case o.Buffer < 0:
		return &engine.ConfigError{Field: field + ".Buffer", Problem: "is negative; give a number of events, or zero for the default"}
	case o.Timeout < 0:
		return &engine.ConfigError{Field: field + ".Timeout", Problem: "is negative; give a duration, or zero for none"}
	case o.Progress && !o.Bookmarks:
		return &engine.ConfigError{Field: field + ".Progress", Problem: "is set without Bookmarks; set both, since bookmarks are how progress is told"}
	case o.Last < 0:
		return &engine.ConfigError{Field: field + ".Last", Problem: "is negative; give the number of events to start with, or zero"}
	case o.Last > 0 && s.Do == Watch && (o.InitialState || o.From > 0 || s.Start.Back != 0):
		return &engine.ConfigError{Field: field + ".Last", Problem: "is given with InitialState, From or Back; choose one start"}
	case uncached && o.Last > 0 && s.Do == Watch:
		return &engine.ConfigError{Field: field + ".Last", Problem: "needs the cache, which the engine of the watch does not have; leave it out"}
	case uncached && o.Policy == engine.Conflate && s.Do != WatchLastList:
		return &engine.ConfigError{Field: field + ".Policy", Problem: "is Conflate, which needs the cache that the engine of the watch does not have; give Park or Terminate"}
	}
	return nil
}
