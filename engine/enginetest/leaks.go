package enginetest

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/engine"
)

// CheckLeaks fails the test if an actor or a timer is left on host, and says
// which. Call it when all engines of the host are closed.
func CheckLeaks(t testing.TB, host *engine.Host) {
	t.Helper()
	if names := host.ActorNames(); len(names) > 0 {
		t.Errorf("enginetest: %d actors are left on the host: %s: close the engines and topics that they belong to",
			len(names), strings.Join(names, ", "))
		return // the timers belong to the actors, or cannot be distinguished from theirs
	}
	if n := host.Timers(); n > 0 {
		t.Errorf("enginetest: %d timers are left on the host's clock, but no actor: stop what AfterFunc returned before the engine is closed", n)
	}
}

// checkGoroutines fails the test if there are goroutines that were not there
// before.
func checkGoroutines(t testing.TB, before goleak.Option) {
	t.Helper()
	if parallel(t) {
		t.Log("enginetest: goroutines are not checked in a parallel test: those of other tests cannot be told apart. Use goleak.VerifyTestMain.")
		return
	}
	if err := goleak.Find(before); err != nil {
		t.Errorf("enginetest: goroutines outlive the engine; a handler or the test itself has started them: %v", err)
	}
}

// parallel reports whether t, or a test that it is part of, called Parallel: it
// then refuses to set variables of the environment, which is the only way to ask.
func parallel(t testing.TB) (refused bool) {
	defer func() { refused = recover() != nil }()
	t.Setenv("WATCHMILL_ENGINETEST", "1")
	return false
}
