package load

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
)

// requireNoneSince requires that every goroutine was there before.
func requireNoneSince(t *testing.T, before goroutines) {
	t.Helper()
	for g := range allGoroutines() {
		require.True(t, before[g], g)
	}
}

// In a bubble time passes as soon as all goroutines wait or have ended, so one that
// has just ended must not be counted any more; runtime.NumGoroutine counts it in hundreds of
// the rounds.
func TestGoroutines_ThatHaveEndedAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := allGoroutines()
		for range 1000 {
			for range 5 {
				go func() {}()
			}
			time.Sleep(time.Millisecond)
			requireNoneSince(t, before)
		}
	})
}

// They come and go with collections, and are not the run's.
func TestGoroutines_OfFinalizersAndCleanupsAreNotCounted(t *testing.T) {
	before := allGoroutines()
	var running sync.WaitGroup
	running.Add(2)
	end := make(chan struct{})
	defer close(end)
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { running.Done(); <-end })
	runtime.AddCleanup(new([64]byte), func(int) { running.Done(); <-end }, 0)
	runtime.GC()
	running.Wait()
	requireNoneSince(t, before)
}

func TestGoroutines_AreAllCountedThoughTheirStacksAreLong(t *testing.T) {
	const count = 2000
	before := allGoroutines()
	var waiting sync.WaitGroup
	waiting.Add(count)
	end := make(chan struct{})
	defer close(end)
	for range count {
		go func() { waiting.Done(); <-end }()
	}
	waiting.Wait()
	since := allGoroutines()
	for g := range before {
		delete(since, g)
	}
	require.Len(t, since, count)
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

// What ends during a run does not make up for what is left.
func TestRun_SaysThatAGoroutineIsLeftThoughAnotherEndsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left, ending := make(chan struct{}), make(chan struct{})
		defer close(left)
		go func() { <-ending }()
		rep := runLeaving(t, func() {
			close(ending)
			go func() { <-left }()
		})
		require.False(t, rep.OK())
		require.Equal(t, rep.GoroutinesBefore+1, rep.Metrics["goroutines"])
	})
}
