package replay_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/trace"
)

var bg = context.Background()

func TestRun_EveryWatcherSeesAllOfTheShippedHistory(t *testing.T) {
	report := replayed(t, replay.Options{File: shipped, Watchers: 100, Reconnect: 5, Seed: 1})
	requireOK(t, report)
	require.Equal(t, 100, report.Equal)
	require.Equal(t, 500, report.Resumed)
	require.Equal(t, shippedLines, report.Written)
	require.Equal(t, uint64(100*shippedLines), report.Delivered, "each event once, however often a watch is resumed")
	require.Equal(t, readFile(t, shippedFinal), tsv(t, report.State))
}

// Time in the bubble stands still while any goroutine runs, so the slow watchers are
// as far behind as can be.
func TestRun_SlowWatchersCatchUpAtTheirPace(t *testing.T) {
	for _, policy := range []engine.Policy{engine.Park, engine.Conflate} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				report := replayed(t, replay.Options{File: shipped, Watchers: 10, Slow: 3, Reconnect: 2, Policy: policy, Seed: 1})
				requireOK(t, report)
				require.GreaterOrEqual(t, report.Took, shippedLines*time.Second/load.SlowRate, "a thousand events per second")
				require.Equal(t, uint64(10*shippedLines), report.Delivered, "the window holds them all")
				require.Zero(t, report.Latency.Max, "the latency of slow watchers is not measured")
			})
		})
	}
}

func TestRun_SlowWatchersAreLostUnderTerminate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := replayed(t, replay.Options{File: shipped, Watchers: 4, Slow: 4, Policy: engine.Terminate, Seed: 1})
		require.False(t, report.OK())
		require.Len(t, report.Lost, 1)
		require.Equal(t, "slow consumer", report.Lost[0].Reason)
		require.Equal(t, 4, report.Lost[0].Watchers)
		require.ErrorIs(t, report.Lost[0].Err, engine.ErrSlowConsumer)
		require.Nil(t, report.State, "no watcher has seen the end")
	})
}

func TestRun_SlowWatchersAreLostWhenTheWindowPassesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := replayed(t, replay.Options{File: shipped, Watchers: 4, Slow: 4, Window: 100, Seed: 1})
		require.False(t, report.OK())
		require.Len(t, report.Lost, 1)
		require.Equal(t, "expired", report.Lost[0].Reason)
		require.Equal(t, 4, report.Lost[0].Watchers)
	})
}

func TestSelect_ComparesWhatIsSelected(t *testing.T) {
	changes := []trace.Change{
		put("main.go", "1"), put("actor/pid.go", "1"), put("actor/README.md", "1"),
		put("actor/pid.go", "2"), put("actor/gone.go", "1"), remove("actor/gone.go"), put("actor/deep/x.go", "1"), put("main.go", "2"),
	}
	path := writeTrace(t, t.TempDir(), changes...)
	for selector, want := range map[string]string{
		"dir=actor,ext=go":  "actor/pid.go\t2\n",
		"dir=.":             "main.go\t2\n",
		"ext!=go":           "actor/README.md\t1\n",
		"dir=no/such/place": "",
	} {
		report := replayed(t, replay.Options{File: path, Watchers: 3, Select: selector, Seed: 1})
		requireOK(t, report)
		require.Equal(t, want, tsv(t, report.State), selector)
	}
}

// Watchers with one selector share its evaluation. One that resumes in the middle of the
// events that another has just evaluated must not receive the first of them again.
func TestSelect_WatchersResumeBesideEachOther(t *testing.T) {
	report := replayed(t, replay.Options{File: shipped, Watchers: 50, Reconnect: 30, Select: "dir=actor,ext=go", Seed: 1})
	requireOK(t, report)
	require.Equal(t, 75, report.Objects)
	require.Equal(t, uint64(50*1632), report.Delivered)
}

func TestRun_CountsChangesThatMakeNoDifference(t *testing.T) {
	path := writeTrace(t, t.TempDir(),
		remove("a"), put("a", "1"), put("a", "1"), remove("a"), remove("a"), put("a", "1"), put("a", "2"), put("a", "1"))
	report := replayed(t, replay.Options{File: path, Watchers: 2, Reconnect: 3, Seed: 1})
	requireOK(t, report)
	require.Equal(t, 8, report.Written)
	require.Equal(t, 3, report.NoOps)
	require.Equal(t, uint64(2*5), report.Delivered)
	require.Equal(t, 6, report.Resumed, "those that found no point are made up for at the end")
}

func TestRun_ATraceMayDoNothingAtAll(t *testing.T) {
	report := replayed(t, replay.Options{File: writeTrace(t, t.TempDir(), remove("a"), remove("b")), Watchers: 2, Reconnect: 1, Seed: 1})
	requireOK(t, report)
	require.Zero(t, report.Objects)
	require.Zero(t, report.Delivered)
	require.Empty(t, tsv(t, report.State))
}

func TestRun_AnyTraceIsSeenAsItIs(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		changes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) trace.Change {
			key := rapid.SampledFrom([]string{"a", "b", "a/b", "ü/x.go", ".x"}).Draw(t, "key")
			if rapid.Bool().Draw(t, "delete") {
				return remove(key)
			}
			return put(key, rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "version"))
		}), 1, 60).Draw(t, "changes")
		state, differences := trace.State{}, 0
		for _, c := range changes {
			if state.Apply(c) {
				differences++
			}
		}
		watchers := rapid.IntRange(1, 4).Draw(t, "watchers")
		report := replayed(t, replay.Options{
			File: writeTrace(t, dir, changes...), Watchers: watchers,
			Reconnect: rapid.IntRange(0, 4).Draw(t, "reconnect"), Seed: rapid.Uint64().Draw(t, "seed"),
			Policy: rapid.SampledFrom([]engine.Policy{engine.Park, engine.Conflate}).Draw(t, "policy"),
		})
		requireOK(t, report)
		require.Equal(t, len(changes)-differences, report.NoOps)
		require.Equal(t, uint64(watchers*differences), report.Delivered)
		require.Equal(t, tsv(t, state), tsv(t, report.State))
	})
}

func TestSpeed_IsAFactorOfTheTimesInTheTrace(t *testing.T) {
	path := writeTrace(t, t.TempDir(), put("a", "1"), put("a", "2"), put("a", "3"), put("a", "4")) // three seconds
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, 6*time.Second, replayed(t, replay.Options{File: path, Watchers: 1, Speed: 0.5}).Took)
		require.Equal(t, 300*time.Millisecond, replayed(t, replay.Options{File: path, Watchers: 1, Speed: 10}).Took)
		require.Zero(t, replayed(t, replay.Options{File: path, Watchers: 1}).Took)
	})
}

func TestSpeed_TimesThatGoBackDoNotHoldUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	require.NoError(t, os.WriteFile(path, []byte(`{"t":100,"op":"put","key":"a","version":"1"}
{"t":50,"op":"put","key":"a","version":"2"}
{"t":101,"op":"put","key":"a","version":"3"}
`), 0o600))
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, time.Second, replayed(t, replay.Options{File: path, Watchers: 1, Speed: 1}).Took)
	})
}

func TestRun_ReportsWhatRanIfInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(bg, 2*time.Second)
		defer cancel()
		report, err := replay.Run(ctx, replay.Options{File: shipped, Watchers: 5, Slow: 2, Seed: 1})
		require.NoError(t, err)
		require.True(t, report.Interrupted)
		require.False(t, report.OK())
		require.Empty(t, report.Lost, "they stopped because they were told to")
		require.Equal(t, 2*time.Second, report.Took)
		require.Equal(t, shippedLines, report.Written)
		require.Greater(t, report.Delivered, uint64(3*shippedLines))
		require.Less(t, report.Delivered, uint64(5*shippedLines))
		require.Nil(t, report.State)
	})
}

func TestRun_InterruptedWriterReportsHowFarItCame(t *testing.T) {
	path := writeTrace(t, t.TempDir(), put("a", "1"), put("a", "2"), put("a", "3"))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(bg, 1500*time.Millisecond)
		defer cancel()
		report, err := replay.Run(ctx, replay.Options{File: path, Watchers: 1, Speed: 1})
		require.NoError(t, err)
		require.True(t, report.Interrupted)
		require.Equal(t, 2, report.Written)
	})
	gone, cancel := context.WithCancel(bg)
	cancel()
	report, err := replay.Run(gone, replay.Options{File: path, Watchers: 1})
	require.NoError(t, err)
	require.True(t, report.Interrupted)
	require.Zero(t, report.Written)
}

func TestProgress_ComesNowAndThenAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		var last load.ReplayProgress
		replayed(t, replay.Options{
			File: shipped, Watchers: 2, Slow: 1, Seed: 1,
			OnProgress:    func(p load.ReplayProgress) { calls.Add(1); last = p },
			ProgressEvery: 4 * time.Second,
		})
		require.Equal(t, int32(3), calls.Load(), "after 4 s, 8 s and at the end")
		require.Equal(t, load.ReplayProgress{Written: shippedLines, Changes: shippedLines, Finished: 2, Watchers: 2, Delivered: 2 * shippedLines}, last)
	})
}

func TestRun_RefusesBadTracesBeforeAnythingRuns(t *testing.T) {
	path := writeTrace(t, t.TempDir(), put("a", "1"), put("b", "1"), put("/bad", "1"), put("c", "1"))
	_, err := replay.Run(bg, replay.Options{File: path, Watchers: 1})
	require.ErrorIs(t, err, engine.ErrInvalidKey)
	var bad *trace.Error
	require.ErrorAs(t, err, &bad)
	require.Equal(t, 3, bad.Line)

	report := replayed(t, replay.Options{File: path, Watchers: 1, KeepGoing: true})
	requireOK(t, report)
	require.Equal(t, 1, report.BadLines)
	require.ErrorIs(t, errors.Join(report.Errors...), engine.ErrInvalidKey)
	require.Equal(t, 3, report.Written)
}

func TestKeepGoing_NeedsSomethingToGoOnWith(t *testing.T) {
	_, err := replay.Run(bg, replay.Options{File: "no such file", Watchers: 1, KeepGoing: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = replay.Run(bg, replay.Options{File: writeTrace(t, t.TempDir(), put("/", "1")), Watchers: 1, KeepGoing: true})
	require.ErrorIs(t, err, engine.ErrInvalidKey)
}
