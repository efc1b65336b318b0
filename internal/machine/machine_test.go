package machine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	statBefore = "cpu  1000 0 500 8000 100 0 50 50 0 0\ncpu0 1 2\n"
	statAfter  = "cpu  1100 0 550 8030 100 0 50 70 0 0\ncpu0 1 2\n"
	selfBefore = "42 (a (strange) name) S 1 1 1 0 -1 0 0 0 0 5 600 100 10 3 20 0 9 0\n"
	selfAfter  = "42 (a (strange) name) S 1 1 1 0 -1 0 0 0 0 90 670 120 20 13 20 0 9 0\n"
)

// What others had is what programs had without us, and what other machines took.
func TestOthers_AreProgramsAndMachines(t *testing.T) {
	before, ok := parseTicks(statBefore, selfBefore)
	require.True(t, ok)
	after, ok := parseTicks(statAfter, selfAfter)
	require.True(t, ok)
	// 200 in all, of which 150 busy, 110 of them ours, and 20 stolen.
	require.InDelta(t, 0.3, after.taken(before), 1e-9)
	require.Zero(t, before.taken(before))
	// The time of waiting can go back, by which there is more work than time.
	waited, ok := parseTicks("cpu  1100 0 550 8000 60 0 50 50 0 0\n", selfBefore)
	require.True(t, ok)
	require.Equal(t, 1.0, waited.taken(before))
	for _, broken := range []string{"", "cpu 1 2", "cpu a b c d e f g h", "intr 1 2 3 4 5 6 7 8 9"} {
		_, ok := parseTicks(broken, selfBefore)
		require.False(t, ok, broken)
	}
	_, ok = parseTicks(statBefore, "42 (cut) S 1")
	require.False(t, ok)
}

func TestOthers_HaveAShare(t *testing.T) {
	o := WatchOthers()
	for range 3 {
		share := o.Share()
		require.GreaterOrEqual(t, share, 0.0)
		require.LessOrEqual(t, share, 1.0)
	}
	require.Zero(t, new(Others).Share(), "where the system does not report it")
}

// In a bubble, time passes only while nothing runs: no timer is late, but for one whose
// goroutine is not let run.
func TestTimers_SayHowLateOneWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timers Timers
		ctx, cancel := context.WithCancel(t.Context())
		go timers.Run(ctx)
		time.Sleep(time.Second)
		require.Zero(t, timers.Late())
		timers.record(3 * time.Millisecond)
		timers.record(2 * time.Millisecond)
		require.Equal(t, 3*time.Millisecond, timers.Late())
		require.Zero(t, timers.Late())
		cancel()
	})
}
