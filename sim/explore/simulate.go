package explore

import (
	"fmt"
	"runtime/debug"

	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
)

// Contained is the invariant that no panic escapes from a world, and that none of the
// engine's actors fails.
const Contained judge.Invariant = "contained"

// outcome is the result of playing one scenario.
type outcome struct {
	Counts
	hash uint64
	// failure is the invariant that was broken; nil if none was.
	failure *judge.Failure
	// stack is the stack of the panic that escaped, if one did.
	stack string
	// err is why the scenario could not be played at all.
	err error
}

// ends reports whether no more scenarios are to be played after this one.
func (o *outcome) ends() bool { return o.failure != nil || o.err != nil }

// simulate plays a scenario in a world of its own. The same scenario always has
// the same outcome, but for the stack.
func simulate[T any](cfg *Config[T], s script.Scenario, sabotage seams[T], record func(string)) (o outcome) {
	t := &trace{record: record}
	defer func() { o.Counts, o.hash = t.Counts, t.hash }()
	var w *World[T]
	stack, err := contained(func() (err error) {
		if w, err = newWorld(cfg, s, sabotage, t); err == nil {
			err = w.startMirrors()
		}
		if err == nil {
			err = w.attach()
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w", s.Seed, err)
		}
		return w.run()
	})
	f, failed := err.(*judge.Failure)
	if failed {
		t.say("BROKEN: %v", f)
		o = outcome{failure: f, stack: stack}
	} else {
		o = outcome{err: err}
	}
	t.record = nil // the cleanup below has no part in the failure
	if w != nil {
		w.abandon()
	}
	for w != nil && len(w.cleanups) > 0 { // the world ended before its cleanup, or a cleanup panicked
		_, _ = contained(func() error { w.cleanup(); return nil })
	}
	return o
}

// contained calls play. If that panics, the error is a failure of [Contained], and stack
// is the stack of the panic. The failure does not include it, since stacks have addresses
// that differ from one run to the next.
func contained(play func() error) (stack string, err error) {
	defer func() {
		if r := recover(); r != nil {
			stack, err = string(debug.Stack()), judge.Failed(Contained, "", "%v", r)
		}
	}()
	return "", play()
}
