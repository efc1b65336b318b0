package load

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// In a bubble time passes as soon as all goroutines wait or have ended, so one that
// has just ended must not be counted any more; runtime.NumGoroutine counts it in hundreds of
// the rounds.
func TestGoroutines_ThatHaveEndedAreNotCounted(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runFinalizers() // they are counted while they run, and without collections there are no others
	synctest.Test(t, func(t *testing.T) {
		before := goroutines()
		for range 5000 {
			for range 5 {
				go func() {}()
			}
			time.Sleep(time.Millisecond)
			require.LessOrEqual(t, goroutines(), before, "goroutines from before the test may end")
		}
	})
}

// runLeaving runs a plan that asserts that no goroutine is left, and does something once the goroutines before it are counted.
func runLeaving(t *testing.T, do func()) *report.Report {
	t.Helper()
	rep, err := Run(t.Context(), brief(t, &scenario.Scenario{
		Watchers: []scenario.Watcher{{}}, Writers: []scenario.Writer{{Rate: 100}}, Assert: []scenario.Assertion{"goroutines = start"},
	}), Options{Observe: func(*engine.Host) (func(), error) {
		do()
		return nil, nil
	}})
	require.NoError(t, err)
	return rep
}

// On a busy machine, what the program did before a run may be about to end when it begins.
func TestRun_LeavesNoGoroutineThoughAnotherEndsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ending := make(chan struct{})
		go func() { <-ending }()
		rep := runLeaving(t, func() { close(ending) })
		require.True(t, rep.OK(), "%+v", rep.Assertions)
	})
}

// A goroutine that runs on is told of.
func TestRun_SaysThatAGoroutineIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan struct{})
		defer close(left)
		rep := runLeaving(t, func() { go func() { <-left }() })
		require.False(t, rep.OK())
		require.Equal(t, rep.GoroutinesBefore+1, rep.Metrics["goroutines"])
	})
}

// runFinalizers runs those that are due. They run in no order, but before those of the next
// collection.
func runFinalizers() {
	for range 2 {
		var ran atomic.Bool
		runtime.SetFinalizer(new([64]byte), func(*[64]byte) { ran.Store(true) })
		for !ran.Load() {
			runtime.GC()
		}
	}
}
