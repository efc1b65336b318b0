package load

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
)

// Watchers that the scenario makes slow lag and are late. They must not hide the
// others in the report, unless they have lost events.
func TestWorst_AreNotTheWatchersThatAreMeantToBeSlow(t *testing.T) {
	healthy := &watchers{spec: &scenario.Watcher{Name: "healthy"}}
	slow := &watchers{spec: &scenario.Watcher{Name: "slow", Consume: scenario.Consume{Rate: 1}}}
	add := func(g *watchers, lag uint64, read bool) *watcher {
		w := &watcher{group: g, number: len(g.all), read: read}
		w.lag.Store(lag)
		g.all = append(g.all, w)
		return w
	}
	for range 20 {
		add(slow, 1000, false)
	}
	loser := add(slow, 0, true)
	add(healthy, 1, true)
	add(healthy, 0, false)
	add(healthy, 2, true)
	r := &run{groups: []*watchers{slow, healthy}}
	worst := r.worst(&judgement{verdicts: map[*watcher]judge.Verdict{loser: {Lost: 1}}})
	names := []string{}
	for _, w := range worst {
		names = append(names, w.Name)
	}
	require.Len(t, names, maxWorst)
	require.Equal(t, []string{"slow-20", "healthy-1", "healthy-2", "healthy-0", "slow-0", "slow-1"}, names[:6])
}

// What fails in one group is not a mark on the others.
func TestGroups_HaveTheirOwnFailures(t *testing.T) {
	r := newStartedRun(t, &scenario.Scenario{
		Objects: scenario.Objects{Count: 1},
		Writers: []scenario.Writer{{Name: "fails", Rate: 1}, {Name: "writes", Rate: 1}},
		Readers: []scenario.Reader{{Name: "misses", Rate: 1}, {Name: "reads", Rate: 1}},
		Caches:  []scenario.Cache{{Name: "stale", Rate: 1, Count: 2, References: 2}, {Name: "current", Rate: 1}},
	})
	r.callersOf("writers", "fails").failed.Store(7)
	r.callersOf("readers", "misses").missed.Store(8)
	r.cacheUsers[0].stale, r.cacheUsers[1].stale = 4, 5
	for _, g := range r.groupReports(r.judge()) {
		require.Equal(t, map[string]string{"fails": "7 failed", "misses": "8 not made in time", "stale": "9 stale"}[g.Name], g.Remarks(), g.Name)
	}
	require.Equal(t, 9, r.stale())
}

// States, lists and the results of conflation are compared with what was written; a
// correct engine has no failures.
func TestJudge_FindsNothingInACorrectEngine(t *testing.T) {
	lively := scenario.Mix{Create: 1, Update: 3, Delete: 1}
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Engine:  scenario.Engine{Window: 20, Backoff: time.Millisecond, BackoffMax: 2 * time.Millisecond},
		Objects: scenario.Objects{Count: 20, Fields: map[string]int{"node": 3}},
		Writers: []scenario.Writer{{Rate: 3000, Mix: lively, Move: 0.5}},
		Watchers: []scenario.Watcher{
			{Name: "late", Count: 10, Initial: true, Start: time.Second, Spread: 5 * time.Second, Fields: "node={node}"},
			{Name: "relisting", Count: 3, Initial: true, Reconnect: scenario.Reconnect{Every: time.Millisecond, Away: 20 * time.Millisecond}},
			{Name: "conflating", Count: 3, Policy: scenario.Conflate, Consume: scenario.Consume{Rate: 1000}},
			{Name: "conflating-handlers", Count: 3, Policy: scenario.Conflate, Consumer: scenario.Handler, Fields: "node={node}", Initial: true, Consume: scenario.Consume{Rate: 500}},
		},
		Faults: []scenario.Fault{
			{Kind: scenario.FaultCompact, At: 2 * time.Second, Every: 2 * time.Second},
			{Kind: scenario.FaultRelist, At: 2 * time.Second, Every: 2 * time.Second},
		},
		Assert: []scenario.Assertion{"lost = 0", "failed = 0", "unread = 0", "relists > 0", "conflated > 0", "engine-relists > 0"},
	}))
	require.Empty(t, rep.Broken)
	for _, a := range rep.Assertions {
		require.True(t, a.Holds, "%+v\n%+v\n%v", a, rep.Worst, rep.Errors)
	}
}

// What one watcher or one handler of an informer has seen is enough for a run to fail.
func TestJudge_ReportsWhatIsBroken(t *testing.T) {
	r := newStartedRun(t, &scenario.Scenario{Watchers: []scenario.Watcher{{Name: "w", Count: 2}}, Informers: []scenario.Informer{{Name: "in"}}})
	require.Empty(t, r.judge().broken)
	w, o := r.groups[0].all[1], &engine.Object[content.Item]{Key: "a", Revision: 7}
	w.trail.Begin(6)
	for range 2 {
		w.trail.Receive(&engine.Event[content.Item]{Type: engine.Added, Revision: 7, Object: o})
	}
	r.informerGroups[0].Handlers()[0].Receive(informer.Notification[content.Item]{Type: engine.Deleted, Object: o})
	broken := r.judge().broken
	require.Len(t, broken, 2)
	require.Contains(t, broken[0], "unique: w-1: it got ADDED at revision 7 after revision 7")
	require.Contains(t, broken[1], "in, handler 0, got ")
}

// A reference, or a handler of an informer, that has not come to the last write is stale, whether it has
// an older state of the object or none.
func TestStale_IsWhatHasNotTheLastWrite(t *testing.T) {
	for name, c := range map[string]struct {
		later []judge.Entry
		stale int
	}{
		"all have it":      {nil, 0},
		"a later change":   {[]judge.Entry{{}}, 2},
		"a later deletion": {[]judge.Entry{{Deleted: true}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newStartedRun(t, &scenario.Scenario{
				Objects: scenario.Objects{Count: 1}, Caches: []scenario.Cache{{Name: "cache", Rate: 1}}, Informers: []scenario.Informer{{Name: "in"}},
			})
			rev := create(t, r, 0)
			require.NoError(t, r.fillCaches(t.Context()))
			settle := func(ctx context.Context) int {
				var settling sync.WaitGroup
				r.settleCaches(ctx, &settling)
				r.settleInformers(ctx, &settling)
				settling.Wait()
				return r.stale()
			}
			require.Zero(t, settle(t.Context()), "which waits for it")
			for _, e := range c.later {
				e.Key, e.Revision = r.plan.Objects.Key(0), rev+1
				r.ledger.Note(e)
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			require.Equal(t, c.stale, settle(over))
		})
	}
}

// Handlers that are meant to be slow are not measured for the run.
func TestLatency_OfInformersIsThatOfThoseAtFullSpeed(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Objects: scenario.Objects{Count: 10}, Writers: []scenario.Writer{{Rate: 1000}},
		Informers: []scenario.Informer{{Name: "fast"}, {Name: "slow", Consume: scenario.Consume{Rate: 100}}},
	}))
	fast, slow := rep.Groups[1], rep.Groups[2]
	require.Equal(t, []string{"fast", "slow"}, []string{fast.Name, slow.Name})
	require.Positive(t, slow.Measured)
	require.Equal(t, fast.Measured, rep.Latency[timed["informer-p99"].stage].Count)
}

// An engine that has listed its storage again is excused from the events in between, but not from showing
// how the state has changed.
func TestJudge_FindsADifferenceThatIsNotShown(t *testing.T) {
	for _, leftOut := range []bool{false, true} {
		r := newStartedRun(t, &scenario.Scenario{Watchers: []scenario.Watcher{{Count: 2}}})
		w := r.groups[0].all[0]
		first := create(t, r, 0)
		watch, err := w.open(t.Context())
		require.NoError(t, err)
		listed := create(t, r, 1)
		create(t, r, 2)
		r.ledger.Gap(first, listed)
		for seen := 0; seen < 2; {
			events, err := watch.Next(t.Context())
			require.NoError(t, err)
			seen += len(events)
			for _, ev := range events {
				switch {
				case ev.Revision != listed:
					w.take(ev)
				case !leftOut:
					ev.Marks = engine.Synthetic
					w.take(ev)
				}
			}
		}
		w.leave(watch)
		w.read = true
		require.Equal(t, uint64(oneIf(leftOut)), r.judge().lost)
	}
}
