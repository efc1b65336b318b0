package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/report"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// documented returns the scenarios in the README and in the documentation of package scenario.
func documented(t *testing.T) (scenarios []*scenario.Scenario) {
	t.Helper()
	for file, block := range map[string]string{"../../README.md": "(?s)```yaml\n(.*?)```", "../scenario/doc.go": `(?s)//\t(name: .*?)\n//\n`} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := regexp.MustCompile(block).FindAllSubmatch(text, -1)
		require.NotEmpty(t, found, file)
		for _, match := range found {
			s, err := scenario.Parse(file, bytes.ReplaceAll(match[1], []byte("//\t"), nil))
			require.NoError(t, err)
			scenarios = append(scenarios, s)
		}
	}
	return scenarios
}

// A reader copies them. They pass, and each of their faults has something to strike, and each policy
// something to do.
func TestRun_DocumentedScenariosPassAndHaveEffects(t *testing.T) {
	for _, s := range documented(t) {
		plan, err := s.Resolve(scenario.Options{})
		require.NoError(t, err)
		rep := inBubble(t, plan)
		require.True(t, rep.OK(), "%v\n%+v", rep.Broken, rep.Assertions)
		require.Len(t, rep.Faults, len(plan.Timeline))
		for _, f := range rep.Faults {
			require.NotZero(t, f.Struck, "%s of %s", f.Name, plan.Name)
		}
		require.NotZero(t, rep.Metrics["conflated"], plan.Name)
	}
}

// tiny resolves a shipped scenario to a size for tests.
func tiny(t *testing.T, name string) *scenario.Plan {
	t.Helper()
	s, err := scenario.Shipped(name)
	require.NoError(t, err)
	plan, err := s.Resolve(scenario.Options{Small: true, Duration: 400 * time.Millisecond})
	require.NoError(t, err)
	for i := range plan.Watchers {
		w := &plan.Watchers[i]
		w.Count = min(w.Count, 40)
		w.Reconnect.Every = min(w.Reconnect.Every, 100*time.Millisecond)
		w.Reconnect.Away = min(w.Reconnect.Away, 10*time.Millisecond)
	}
	for i := range plan.Informers {
		plan.Informers[i].Consume = scenario.Consume{}
	}
	for i := range plan.Caches {
		plan.Caches[i].References = min(plan.Caches[i].References, 500)
	}
	plan.Objects.Count = min(plan.Objects.Count, 500)
	plan.Settle = 20 * time.Second
	for _, w := range plan.Watchers {
		if w.Consume.Slow() {
			plan.Settle = 300 * time.Millisecond
		}
	}
	return plan
}

// timeless are the metrics that do not depend on the machine's speed.
var timeless = []string{"lost", "duplicated", "write-errors", "read-errors", "failed", "stale"}

func TestRun_ShippedScenariosLoseNothing(t *testing.T) {
	for _, name := range scenario.Library() {
		t.Run(name, func(t *testing.T) {
			plan := tiny(t, name)
			rep := inBubble(t, plan)
			require.Empty(t, rep.Broken)
			for _, metric := range timeless {
				require.Zero(t, rep.Metrics[metric], "%s\n%v\n%+v", metric, rep.Errors, rep.Worst)
			}
			for _, g := range rep.Groups {
				require.True(t, g.Slow || g.Unread == 0, "%+v\n%v\n%+v", g, rep.Errors, rep.Worst)
			}
			require.LessOrEqual(t, rep.Metrics["goroutines"], rep.GoroutinesBefore)
			require.Positive(t, rep.Metrics["deliveries"])
			require.Positive(t, rep.Latency[0].Count)
			require.Len(t, rep.Faults, len(plan.Timeline))
			require.NotEmpty(t, rep.Samples)
			require.Len(t, rep.Assertions, len(plan.Assert))
			require.NotEmpty(t, rep.Worst)
			require.Contains(t, rep.Worst[0].Name, "-", "a group, and a number in it")
		})
	}
}

// The report has a value for each metric that a scenario can assert, and no
// other.
func TestRun_MeasuresEveryMetric(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Objects: scenario.Objects{Count: 10}, Writers: []scenario.Writer{{Rate: 1000}}, Watchers: []scenario.Watcher{{}},
		Readers: []scenario.Reader{{Rate: 100}}, Caches: []scenario.Cache{{Rate: 100}}, Informers: []scenario.Informer{{}},
	}))
	require.Len(t, rep.Metrics, len(scenario.Metrics))
	for _, m := range scenario.Metrics {
		require.Contains(t, rep.Metrics, m.Name)
	}
}

// run1 runs a scenario briefly.
func run1(t *testing.T, s *scenario.Scenario) *report.Report {
	t.Helper()
	rep, err := Run(t.Context(), brief(t, s), Options{})
	require.NoError(t, err)
	return rep
}

func brief(t *testing.T, s *scenario.Scenario) *scenario.Plan {
	t.Helper()
	plan, err := s.Resolve(scenario.Options{Duration: 100 * time.Millisecond})
	require.NoError(t, err)
	return plan
}

// inBubble runs a plan in a synctest bubble, so that the machine's speed does not
// matter.
func inBubble(t *testing.T, plan *scenario.Plan) (rep *report.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		rep, err = Run(t.Context(), plan, Options{})
		require.NoError(t, err)
	})
	return rep
}

func TestRun_ReportsAssertionsThatDoNotHold(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Watchers: []scenario.Watcher{{}}, Writers: []scenario.Writer{{Rate: 100}},
		Assert: []scenario.Assertion{"writes = 0", "lost = 0"},
	}))
	require.False(t, rep.OK())
	require.False(t, rep.Assertions[0].Holds)
	require.Positive(t, rep.Assertions[0].Value)
	require.True(t, rep.Assertions[1].Holds)
}

func TestRun_InterruptedReportsWhatRanSoFar(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	s := &scenario.Scenario{
		Duration: time.Hour, Objects: scenario.Objects{Count: 10},
		Writers:  []scenario.Writer{{Rate: 500}},
		Watchers: []scenario.Watcher{{}, {Consumer: scenario.Handler}, {Consumer: scenario.Channel}, {Start: time.Minute}},
		Readers:  []scenario.Reader{{Rate: 100}},
		Faults:   []scenario.Fault{{Kind: scenario.FaultStick, When: scenario.During(scenario.OnGet)}},
	}
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	rep, err := Run(ctx, plan, Options{ProgressEvery: 10 * time.Millisecond, OnProgress: func(p Progress) {
		if p.Deliveries > 10 {
			interrupt()
		}
	}})
	require.NoError(t, err)
	require.True(t, rep.Interrupted)
	require.False(t, rep.OK())
	require.Empty(t, rep.Assertions)
	require.Empty(t, rep.Broken)
	require.Zero(t, rep.Metrics["lost"])
	require.Zero(t, rep.Metrics["failed"])
	require.NotContains(t, rep.Metrics, "unread", "nothing was to be read to its end")
	require.NotContains(t, rep.Metrics, "stale")
	for _, g := range rep.Groups {
		require.Zero(t, g.Unread, g.Name)
	}
	require.False(t, rep.Worst[0].Unread)
	require.Positive(t, rep.Metrics["deliveries"])
	require.NotContains(t, strings.Join(rep.Errors, "\n"), context.Canceled.Error())

	before := time.Now()
	interrupt()
	rep, err = Run(ctx, plan, Options{}) // before it began
	require.NoError(t, err)
	require.True(t, rep.Interrupted)
	require.False(t, rep.Started.Before(before))
	var written bytes.Buffer
	require.NoError(t, rep.WriteJSON(&written))
	for _, list := range []string{"assertions", "groups", "latency", "samples", "worst"} {
		require.Contains(t, written.String(), `"`+list+`": [`)
	}
}

// Faults hit the calls of their conditions: each list and each watch fails, so the
// engine never serves the missing events, but no watcher loses one.
func TestRun_LosesNothingToFaults(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Engine:  scenario.Engine{Backoff: time.Millisecond, BackoffMax: 2 * time.Millisecond},
		Objects: scenario.Objects{Count: 20},
		Writers: []scenario.Writer{{Rate: 1000, Mix: scenario.Mix{Create: 1, Update: 2, Delete: 1}}},
		Watchers: []scenario.Watcher{
			{Name: "all", Count: 3}, {Name: "handlers", Count: 3, Consumer: scenario.Handler},
			{Name: "restless", Reconnect: scenario.Reconnect{Every: 5 * time.Millisecond}},
		},
		Faults: []scenario.Fault{
			{Kind: scenario.FaultBreak, At: 5 * time.Second / 100, Every: time.Second},
			{Kind: scenario.FaultRelist, At: 2 * time.Second},
			{Kind: scenario.FaultFail, At: 2 * time.Second, For: time.Second, When: scenario.Or(
				scenario.And(scenario.During(scenario.OnList), scenario.Randomly(0.5, 3)), scenario.During(scenario.OnWatch))},
			{Kind: scenario.FaultStick, At: 4 * time.Second, For: time.Second, When: scenario.During(scenario.OnNext)},
			{Kind: scenario.FaultPanic, At: 6 * time.Second},
			{Kind: scenario.FaultReconnect, At: 7 * time.Second},
			{Kind: scenario.FaultCompact, At: 7 * time.Second},
			{Kind: scenario.FaultJump, At: 8 * time.Second, Jump: -time.Hour},
			{Kind: scenario.FaultFail, At: 8 * time.Second, When: scenario.During(scenario.OnPut)},
		},
	}))
	require.Empty(t, rep.Broken)
	require.Zero(t, rep.Metrics["lost"])
	require.Zero(t, rep.Metrics["unread"], "%+v", rep.Worst)
	require.Positive(t, rep.Metrics["write-errors"], "the last fault makes them fail")
	require.Positive(t, rep.Metrics["reconnects"])
	struck := map[string]uint64{}
	for _, f := range rep.Faults {
		struck[f.Kind] += f.Struck
	}
	require.Equal(t, uint64(7), struck["reconnect"])
	require.Equal(t, uint64(3), struck["panic"])
	require.Positive(t, struck["break"])
}

// On a page that observes the run, and in errors, a watch has the name that its watcher has in
// the report, which says why a watch has ended without repeating it.
func TestRun_WatchesAreCalledWhatTheReportCallsTheirWatchers(t *testing.T) {
	plan, err := (&scenario.Scenario{
		Writers: []scenario.Writer{{Rate: 100}},
		Watchers: []scenario.Watcher{
			{Name: "pulls", Count: 2}, {Name: "handles", Count: 2, Consumer: scenario.Handler}, {Name: "follows", Consumer: scenario.Follow},
		},
		Objects: scenario.Objects{Count: 5},
		Faults:  []scenario.Fault{{Kind: scenario.FaultPanic, At: time.Second}},
	}).Resolve(scenario.Options{Duration: 2 * time.Second})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var host *engine.Host
		named := map[string]bool{}
		rep, err := Run(t.Context(), plan, Options{
			Observe: func(h *engine.Host) (func(), error) { host = h; return nil, nil },
			OnProgress: func(Progress) {
				for _, running := range host.Engines() {
					for _, w := range running.Watches() {
						named[w.Name] = true
					}
				}
			},
			ProgressEvery: 10 * time.Millisecond,
		})
		require.NoError(t, err)
		require.Equal(t, []string{"dispatch latency", "follows-0", "handles-0", "handles-1", "pulls-0", "pulls-1"}, slices.Sorted(maps.Keys(named)))
		var ends []string
		for _, w := range rep.Worst {
			ends = append(ends, w.LastEnd)
		}
		require.Contains(t, strings.Join(ends, "\n"), "watch handler panicked on")
		require.NotContains(t, strings.Join(ends, "\n"), ": watch handler panicked on")
	})
}

func TestRun_RefusesABadTraceBeforeItBegins(t *testing.T) {
	plan := tiny(t, "git-history")
	plan.Writers[0].Trace = "none.ndjson"
	_, err := Run(t.Context(), plan, Options{})
	require.ErrorContains(t, err, "none.ndjson")
}

// An engine that needs longer than a call of WaitForRevision waits is waited for nevertheless.
func TestRun_WaitsForAnEngineThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newStartedRun(t, &scenario.Scenario{Objects: scenario.Objects{Count: 3}, Writers: []scenario.Writer{{Rate: 1}}})
		silence := r.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
		time.AfterFunc(2*engine.DefaultFreshnessTimeout, silence.Remove)
		require.NoError(t, r.populate(t.Context()))
		require.NoError(t, r.openWatchers(t.Context(), new(sync.WaitGroup)))
		require.EqualValues(t, 4, r.engine.Revision())
	})
}

// So it is before a history is replayed, and only ctx ends that.
func TestReplay_WaitsForAnEngineThatIsLate(t *testing.T) {
	h := History{Watchers: 1, Changes: []trace.Change{{Op: trace.Put, Key: "a", Version: "1"}}}
	h.Open = func(schema store.Schema) (backend.Backend, error) {
		beneath, err := memory.New(schema, memory.Options{FirstRevision: 1})
		b := faulty.New(beneath, faulty.Options{Blocks: true})
		late := faulty.Delay(2 * engine.DefaultFreshnessTimeout)
		b.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: func(ctx context.Context, c *faulty.Call, proceed func()) {
			if c.ListOptions.Limit == 1 { // not the engine's list, but the check that the storage is empty
				proceed()
				return
			}
			late(ctx, c, proceed)
		}})
		return b, err
	}
	synctest.Test(t, func(t *testing.T) {
		rep, err := Replay(t.Context(), h)
		require.NoError(t, err)
		require.True(t, rep.OK())
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), engine.DefaultFreshnessTimeout+time.Second)
		defer stop()
		rep, err := Replay(ctx, h)
		require.NoError(t, err)
		require.True(t, rep.Interrupted)
	})
}

// Writes that wait for one that hangs are late too, though each is quick once it is
// made.
func TestLatency_CountsFromWhenAWriteWasDue(t *testing.T) {
	s := &scenario.Scenario{
		Objects:  scenario.Objects{Count: 10},
		Writers:  []scenario.Writer{{Rate: 100}},
		Watchers: []scenario.Watcher{{}},
		Faults:   []scenario.Fault{{Kind: scenario.FaultStick, For: 5 * time.Second, When: scenario.During(scenario.OnPut)}},
	}
	plan, err := s.Resolve(scenario.Options{Duration: 2 * time.Second})
	require.NoError(t, err)
	rep := inBubble(t, plan)
	names := []string{}
	for _, stage := range rep.Latency {
		names = append(names, stage.Name)
	}
	require.Equal(t, []string{"end to end", "commit", "cache", "dispatch", "handed over", "read", "object", "informer"}, names)
	for _, stage := range rep.Latency[:2] {
		require.Greater(t, stage.P90, 0.1, "%s: half of the writes were due while the first was stuck, which was for a second at most", stage.Name)
	}
	for _, stage := range rep.Latency[2:5] {
		require.Less(t, stage.P50, rep.Latency[0].P90, "%s counts from storing", stage.Name)
	}
}

// What an engine shows late because it has listed is as late as what it shows late because it has resumed.
func TestLatency_CountsWhatARelistHasFound(t *testing.T) {
	for _, ends := range []scenario.FaultKind{scenario.FaultBreak, scenario.FaultRelist} {
		plan, err := (&scenario.Scenario{
			Duration: 10 * time.Second,
			Writers:  []scenario.Writer{{Rate: 100, Mix: scenario.Mix{Create: 1}}},
			Watchers: []scenario.Watcher{{}, {Consumer: scenario.Handler}, {Consumer: scenario.Follow}},
			Faults: []scenario.Fault{
				{Kind: scenario.FaultFail, At: 1900 * time.Millisecond, For: 5 * time.Second,
					When: scenario.Or(scenario.During(scenario.OnList), scenario.During(scenario.OnWatch))},
				{Kind: ends, At: 2 * time.Second},
			},
		}).Resolve(scenario.Options{})
		require.NoError(t, err)
		rep := inBubble(t, plan)
		for _, g := range rep.Groups[1:] {
			require.Greater(t, g.Max, 4.0, "%s %s", ends, g.Name)
		}
		require.Greater(t, rep.Latency[3].Max, 4.0, "%s %s", ends, rep.Latency[3].Name)
	}
}

// A cache that is later than Engine.WaitForRevision waits is that late.
func TestLatency_CountsWhatTheCacheWasLateByInASilence(t *testing.T) {
	plan, err := (&scenario.Scenario{
		Duration: 30 * time.Second,
		Writers:  []scenario.Writer{{Rate: 100}},
		Faults:   []scenario.Fault{{Kind: scenario.FaultStick, At: 5 * time.Second, For: 10 * time.Second, When: scenario.During(scenario.OnNext)}},
	}).Resolve(scenario.Options{})
	require.NoError(t, err)
	rep := inBubble(t, plan)
	require.Equal(t, "cache", rep.Latency[2].Name)
	require.InDelta(t, 10, rep.Latency[2].Max, 0.5)
}

// Initial states do not count as throughput: otherwise many objects would look like a
// fast engine.
func TestDeliveries_AreOfTheLoad(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Objects:  scenario.Objects{Count: 500},
		Writers:  []scenario.Writer{{Rate: 100}},
		Watchers: []scenario.Watcher{{Initial: true}, {Initial: true, Consumer: scenario.Handler}},
	}))
	require.Equal(t, 2*rep.Metrics["writes"], rep.Metrics["deliveries"])
	require.Positive(t, rep.Metrics["deliveries/s"])
}

// Calls that a slow storage delays are counted; otherwise latency would be that of
// the few that were made.
func TestCalls_NotMadeInTimeAreCounted(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Objects: scenario.Objects{Count: 10},
		Writers: []scenario.Writer{{Rate: 50}},
		Readers: []scenario.Reader{{Rate: 50, Op: scenario.Get}},
		Faults:  []scenario.Fault{{Kind: scenario.FaultDelay, Delay: 70 * time.Millisecond}},
	}))
	require.Equal(t, 5.0, rep.Metrics["writes"]+rep.Metrics["unwritten"])
	require.Equal(t, 5.0, rep.Metrics["reads"]+rep.Metrics["missed-reads"])
	require.Positive(t, rep.Metrics["unwritten"])
	require.Positive(t, rep.Metrics["missed-reads"])
}

func TestReaders_ReadInEveryMode(t *testing.T) {
	s := &scenario.Scenario{
		Objects: scenario.Objects{Count: 50, Namespaces: 2, Fields: map[string]int{"node": 5}},
		Writers: []scenario.Writer{{Rate: 200}},
	}
	for _, mode := range []scenario.ReadMode{scenario.Latest, scenario.Cached, scenario.NotOlder, scenario.Exact} {
		s.Readers = append(s.Readers,
			scenario.Reader{Rate: 100, Mode: mode, Fields: "node={node}", Prefix: "{namespace}", Limit: 3},
			scenario.Reader{Rate: 100, Mode: mode, Op: scenario.Get})
	}
	s.Readers[2].Limit = 0 // a cached list has no pages
	rep := inBubble(t, brief(t, s))
	require.Zero(t, rep.Metrics["read-errors"], "%v", rep.Errors)
	for _, g := range rep.Groups {
		require.Positive(t, g.Events, g.Name)
	}
}

func TestProgress_HasThePhase(t *testing.T) {
	s := &scenario.Scenario{
		Objects:  scenario.Objects{Count: 20_000},
		Writers:  []scenario.Writer{{Rate: 400}},
		Watchers: []scenario.Watcher{{Consume: scenario.Consume{Rate: 200}}},
	}
	plan, err := s.Resolve(scenario.Options{Duration: time.Second})
	require.NoError(t, err)
	var phases []Phase
	last := map[Phase]Progress{}
	_, err = Run(t.Context(), plan, Options{ProgressEvery: time.Millisecond, OnProgress: func(p Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
		if p.Phase != Settling || last[Settling].Unsettled == 0 {
			last[p.Phase] = p
		}
	}})
	require.NoError(t, err)
	require.Equal(t, []Phase{Preparing, Loading, Settling}, phases)
	require.Positive(t, last[Preparing].Created)
	require.Zero(t, last[Preparing].WriteRate)
	require.Equal(t, 20_000, last[Loading].Created)
	require.Positive(t, last[Loading].Writes)
	require.Equal(t, 1, last[Settling].Unsettled, "the watcher that is slow")
}

func TestErrors_ThatDifferInNumbersAreOne(t *testing.T) {
	var f failures
	for i := range 100 {
		f.note("engine", fmt.Errorf("handler is %d behind", i))
	}
	f.note("writers", errors.New("full"))
	require.Equal(t, []string{"engine: handler is 0 behind (100 times like this)", "writers: full"}, f.all())
	for i := range 20 {
		f.note("writers", errors.New(strings.Repeat("x", i+1)))
	}
	require.Len(t, f.all(), maxFailures)
}

// What a watcher has not come to when the time is up is not lost, whatever calls it.
func TestRun_WatchersThatAreCutOffLoseNothing(t *testing.T) {
	for _, consumer := range []scenario.Consumer{scenario.Batches, scenario.Handler, scenario.Channel, scenario.Follow, scenario.Queue} {
		plan, err := (&scenario.Scenario{
			Duration: time.Second, Settle: 500 * time.Millisecond, Objects: scenario.Objects{Count: 10},
			Writers:  []scenario.Writer{{Rate: 1000}},
			Watchers: []scenario.Watcher{{Count: 20, Consumer: consumer, Consume: scenario.Consume{Rate: 50}}},
		}).Resolve(scenario.Options{})
		require.NoError(t, err)
		rep := inBubble(t, plan)
		require.Empty(t, rep.Broken, consumer)
		require.Zero(t, rep.Metrics["lost"], consumer)
		require.Equal(t, 20.0, rep.Metrics["unread"], consumer)
	}
}
