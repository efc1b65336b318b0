package scenario_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/sim/scenario"
)

func TestShipped_ResolveInBothSizes(t *testing.T) {
	require.Subset(t, scenario.Library(), []string{"kubelets", "controllers", "configmaps", "slow-consumers", "reconnect-storm", "event-bus", "git-history"})
	for _, name := range scenario.Library() {
		s, err := scenario.Shipped(name)
		require.NoError(t, err, name)
		require.Equal(t, name, s.Name)
		require.NotEmpty(t, s.About, name)
		full, err := s.Resolve(scenario.Options{})
		require.NoError(t, err, name)
		small, err := s.Resolve(scenario.Options{Small: true})
		require.NoError(t, err, name)
		require.LessOrEqual(t, small.Duration+small.Settle, 10*time.Second, name)
		require.Less(t, small.Duration, full.Duration, name)
		require.NotEqual(t, full.Hash, small.Hash, name)
		require.Equal(t, []bool{false, true}, []bool{full.IsSmall, small.IsSmall}, name)
		require.NotEmpty(t, full.Checks, name)
	}
	_, err := scenario.Shipped("kubelet")
	require.ErrorIs(t, err, scenario.ErrInvalid)
	require.ErrorContains(t, err, "there is no shipped scenario kubelet;")
	require.ErrorContains(t, err, "kubelets")
}

func TestShipped_KubeletsIsAsLargeAsPromised(t *testing.T) {
	s, err := scenario.Shipped("kubelets")
	require.NoError(t, err)
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	require.Equal(t, 150_000, plan.Objects.Count)
	require.GreaterOrEqual(t, plan.WatcherCount(), 5000)
	seen := map[string]bool{}
	for i := range 5000 {
		seen[plan.Select(plan.Watchers[0], i).Fields] = true
	}
	require.Len(t, seen, 5000, "each watches a node of its own")
}

// Each member of a group selects what its templates are for its number.
func TestPlan_FillsTemplatesInForEachMember(t *testing.T) {
	s := scenario.Scenario{
		Objects:   scenario.Objects{Count: 3, Namespaces: 2, Fields: map[string]int{"node": 2}, Labels: map[string]int{"app": 3}},
		Watchers:  []scenario.Watcher{{Labels: "app={app}", Fields: "node={node}"}, {Key: "{key}"}},
		Readers:   []scenario.Reader{{Rate: 1, Labels: "app={app}", Fields: "node={node}", Prefix: "{namespace}"}},
		Informers: []scenario.Informer{{Prefix: "{namespace}/obj-{i}"}},
	}
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	require.Equal(t, scenario.Selection{Labels: "app=app-1", Fields: "node=node-0"}, plan.Select(plan.Watchers[0], 4))
	require.Equal(t, scenario.Selection{Key: "ns-1/obj-1"}, plan.Select(plan.Watchers[1], 4))
	require.Equal(t, scenario.Selection{Labels: "app=app-2", Fields: "node=node-1", Prefix: "ns-1"}, plan.SelectRead(plan.Readers[0], 5))
	require.Equal(t, scenario.Selection{Prefix: "ns-0/obj-6"}, plan.SelectInformer(plan.Informers[0], 6))

	s.Objects.Namespaces = 0
	plan, err = s.Resolve(scenario.Options{})
	require.NoError(t, err)
	require.Equal(t, scenario.Selection{Prefix: "ns-0/obj-1"}, plan.SelectInformer(plan.Informers[0], 1), "there is one namespace")
	require.Equal(t, scenario.Selection{Key: "ns-0/obj-1"}, plan.Select(plan.Watchers[1], 1))
}

// Explain prints a scenario that gives the same plan.
func TestExplain_GivesAScenario(t *testing.T) {
	for _, name := range scenario.Library() {
		s, err := scenario.Shipped(name)
		require.NoError(t, err)
		requireExplained(t, s, scenario.Options{Small: true})
	}
	for _, text := range []string{
		"writers: [{rate: 1000000, mix: {update: 1000000000, create: 0.00001}}]",
		"watchers: [{}]\nfaults: [{kind: fail, when: {probability: 0.00000001}}]",
		`{name: "a\nb: c", about: "\t\r\n a\n", objects: {fields: {a: 2}}, watchers: [{fields: "a!=a\nb: c"}], faults: [{kind: break, name: "a\nb: c"}]}`,
		`{name: "\r", about: "\n", objects: {fields: {a: 2}}, watchers: [{fields: "a!=\ta\t"}, {labels: "\n"}], assert: ["lost\n=\t0\r"]}`,
		`{name: ".nan", about: "-.inf", watchers: [{}], faults: [{kind: break, name: ".Inf"}]}`,
		`{name: "? a", about: "? is it slow", watchers: [{}], faults: [{kind: break, name: "? "}]}`,
		"objects: {fields: {a: 2}, index: []}\nwatchers: [{}]",
		"objects: {fields: {}, labels: {}, index: []}\nwatchers: [{}]\nwriters: []\nassert: []\nsmall: {rates: {}}",
	} {
		s, err := scenario.Parse("f.yaml", []byte(text))
		require.NoError(t, err, text)
		requireExplained(t, s, scenario.Options{})
	}
}

// requireExplained checks that the explanation of a plan gives the same plan.
func requireExplained(t *testing.T, s *scenario.Scenario, o scenario.Options) {
	t.Helper()
	plan, err := s.Resolve(o)
	require.NoError(t, err)
	text, err := plan.Explain()
	require.NoError(t, err)
	again, err := scenario.Parse("explained.yaml", []byte(text))
	require.NoError(t, err, text)
	twice, err := again.Resolve(scenario.Options{})
	require.NoError(t, err, text)
	require.Equal(t, plan.Hash, twice.Hash, text)
	require.Equal(t, []any{plan.Name, plan.About, plan.Assert}, []any{twice.Name, twice.About, twice.Assert}, text)
}

func TestResolve_GoAndYAMLMakeTheSamePlan(t *testing.T) {
	fromYAML, err := scenario.Parse("same.yaml", []byte(`
duration: 20s
objects: {count: 1000, fields: {node: 50}}
writers: [{rate: 500, shape: poisson, mix: {update: 8, create: 1}}]
watchers: [{name: nodes, count: 50, fields: "node={node}", initial: true}]
faults: [{kind: fail, at: 8s, for: 2s, when: {or: [{not: {operation: list}}, {and: [{operation: list}, {probability: 0.5}]}]}}]
assert: [p99 < 50ms]
`))
	require.NoError(t, err)
	inGo := &scenario.Scenario{
		Name:     "same",
		Duration: 20 * time.Second,
		Objects:  scenario.Objects{Count: 1000, Fields: map[string]int{"node": 50}},
		Writers:  []scenario.Writer{{Rate: 500, Shape: scenario.Poisson, Mix: scenario.Mix{Update: 8, Create: 1}}},
		Watchers: []scenario.Watcher{{Name: "nodes", Count: 50, Fields: "node={node}", Initial: true}},
		Faults: []scenario.Fault{{Kind: scenario.FaultFail, At: 8 * time.Second, For: 2 * time.Second, When: scenario.Or(
			scenario.Not(scenario.During(scenario.OnList)),
			scenario.And(scenario.During(scenario.OnList), scenario.Randomly(0.5, 0)),
		)}},
		Assert: []scenario.Assertion{"p99 < 50ms"},
	}
	one, err := fromYAML.Resolve(scenario.Options{})
	require.NoError(t, err)
	two, err := inGo.Resolve(scenario.Options{})
	require.NoError(t, err)
	require.Equal(t, one.Hash, two.Hash)

	other, err := inGo.Resolve(scenario.Options{Seed: 2})
	require.NoError(t, err)
	require.NotEqual(t, one.Hash, other.Hash, "the seed is part of the plan")
}

// Some editors begin files with a mark, which shows in none.
func TestParse_PassesOverAByteOrderMark(t *testing.T) {
	s, err := scenario.Parse("f.yaml", []byte("\ufeffwatchers: [{name: a}]"))
	require.NoError(t, err)
	require.Equal(t, "a", s.Watchers[0].Name)
}

// A copy under another name, or with other assertions, can be compared with the original.
func TestPlan_IsTheSameForTheSameLoad(t *testing.T) {
	hash := func(s scenario.Scenario) string {
		plan, err := s.Resolve(scenario.Options{})
		require.NoError(t, err)
		return plan.Hash
	}
	s := scenario.Scenario{Name: "a", Watchers: []scenario.Watcher{{}}}
	other := scenario.Scenario{Name: "b", About: "It is one.", Watchers: s.Watchers, Assert: []scenario.Assertion{"lost = 0"}}
	require.Equal(t, hash(s), hash(other))
	other.Objects = scenario.Objects{Fields: map[string]int{}, Index: []string{}}
	require.Equal(t, hash(s), hash(other), "what is empty is left out")
	other.Settle = time.Second
	require.NotEqual(t, hash(s), hash(other))
}

func TestResolve_ErrorsNameTheFieldAndTheFix(t *testing.T) {
	_, err := (&scenario.Scenario{Writers: []scenario.Writer{{Rate: -1}}}).Resolve(scenario.Options{})
	require.ErrorIs(t, err, scenario.ErrInvalid)
	require.EqualError(t, err, "writers[0].rate: is negative: -1; write how many per second, such as 500")
	for _, d := range []time.Duration{-1, scenario.MaxDuration + 1} {
		_, err = (&scenario.Scenario{Watchers: []scenario.Watcher{{}}}).Resolve(scenario.Options{Duration: d})
		require.ErrorIs(t, err, scenario.ErrInvalid)
		require.EqualError(t, err, "Options.Duration: is "+d.String()+"; write one from 0 to 24h0m0s")
	}
	empty := scenario.Fault{Kind: scenario.FaultFail, When: scenario.Not(scenario.And(nil))}
	_, err = (&scenario.Scenario{Watchers: []scenario.Watcher{{}}, Faults: []scenario.Fault{empty}}).Resolve(scenario.Options{})
	require.EqualError(t, err, "faults[0].when.not.and[0]: is empty; write a condition, such as operation: list")
}

// However short the load is made, what is over at a time does not go on until the end.
func TestResolve_ShorterTimesDoNotVanish(t *testing.T) {
	s := scenario.Scenario{
		Duration: time.Hour,
		Objects:  scenario.Objects{Count: 1},
		Writers:  []scenario.Writer{{Rate: 1, Stop: time.Millisecond}},
		Faults: []scenario.Fault{
			{Kind: scenario.FaultStick, At: time.Minute, For: time.Millisecond},
			{Kind: scenario.FaultBreak, Every: time.Second},
		},
	}
	short, err := s.Resolve(scenario.Options{Duration: time.Second})
	require.NoError(t, err)
	require.Equal(t, time.Microsecond, short.Writers[0].Stop)
	require.Equal(t, time.Microsecond, short.Faults[0].For)

	shortest, err := s.Resolve(scenario.Options{Duration: time.Millisecond})
	require.NoError(t, err)
	require.Equal(t, time.Microsecond, shortest.Faults[1].Every, "it repeats, if less often")
}

// What is before the end of the load is so in a load of another length, what stops has begun
// before, and a fault is not more frequent than it may be, though times are rounded.
func TestResolve_OtherTimesAreInOrder(t *testing.T) {
	s := scenario.Scenario{
		Duration: 10 * time.Second,
		Writers: []scenario.Writer{
			{Rate: 1, Start: time.Second, Stop: time.Second + time.Microsecond},
			{Rate: 1, Start: 10*time.Second - time.Nanosecond, Stop: 10 * time.Second},
		},
		Watchers: []scenario.Watcher{
			{Start: time.Second, Spread: 9*time.Second - time.Nanosecond},
			{Start: 10*time.Second - time.Nanosecond},
		},
		Faults: []scenario.Fault{
			{Kind: scenario.FaultBreak, At: 10*time.Second - time.Nanosecond},
			{Kind: scenario.FaultStick, Every: time.Millisecond, For: time.Millisecond},
			{Kind: scenario.FaultFail, For: scenario.MaxDuration},
			{Kind: scenario.FaultFail, Every: scenario.MaxDuration, For: scenario.MaxDuration},
		},
	}
	for _, d := range []time.Duration{
		1, time.Microsecond, 3 * time.Microsecond, time.Millisecond, time.Second, 9999 * time.Millisecond, 10004 * time.Millisecond, scenario.MaxDuration,
	} {
		plan, err := s.Resolve(scenario.Options{Duration: d})
		require.NoError(t, err)
		require.Contains(t, plan.Timeline, scenario.Moment{At: plan.Faults[0].At, Until: plan.Faults[0].At}, "it still happens, in %v", d)
		requireExplained(t, &s, scenario.Options{Duration: d})
	}
}

// A load is over after its duration, so no writer goes on.
func TestResolve_WritersStopAtTheEnd(t *testing.T) {
	s := scenario.Scenario{Duration: time.Second, Writers: []scenario.Writer{{Rate: 1, Stop: time.Minute}, {Rate: 1}}}
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	for _, w := range plan.Writers {
		require.Equal(t, time.Second, w.Stop)
	}
}

// Each writer has a part of every burst.
func TestResolve_ABurstHasAWriteOfEachWriter(t *testing.T) {
	s := scenario.Scenario{Writers: []scenario.Writer{{Count: 5, Rate: 10, Shape: scenario.Bursts, Burst: 3}, {Count: 5, Rate: 10, Shape: scenario.Bursts}}}
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	for _, w := range plan.Writers {
		require.Equal(t, 5, w.Burst)
	}
}

// Without assertions a scenario demands no more than its faults allow.
func TestResolve_DemandsOnlyWhatNoFaultPrevents(t *testing.T) {
	s := scenario.Scenario{Objects: scenario.Objects{Count: 1}, Writers: []scenario.Writer{{Rate: 1}}, Readers: []scenario.Reader{{Rate: 1}}}
	for kind, want := range map[scenario.FaultKind][]scenario.Assertion{
		"":                    {"write-errors = 0", "read-errors = 0"},
		scenario.FaultCompact: {"write-errors = 0"},
		scenario.FaultFail:    nil,
	} {
		s.Faults = nil
		if kind != "" {
			s.Faults = []scenario.Fault{{Kind: kind}}
		}
		plan, err := s.Resolve(scenario.Options{})
		require.NoError(t, err)
		require.Equal(t, want, plan.Assert, "%s", kind)
	}
}

func TestResolve_LeavesTheScenarioAlone(t *testing.T) {
	s, err := scenario.Shipped("reconnect-storm")
	require.NoError(t, err)
	before, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	_, err = s.Resolve(scenario.Options{Small: true, Duration: time.Second, Seed: 99})
	require.NoError(t, err)
	after, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestLoad_FilesAreFoundAndNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	write := func(content string) {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	write("watchers: [{}]\nwriters: [{trace: past.ndjson}]\n")
	_, err := scenario.Load(file)
	require.ErrorContains(t, err, file+":2:12: writers[0].trace: ")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "past.ndjson"), []byte(`{"t":1,"op":"put","key":"a","version":"1"}`), 0o600))
	s, err := scenario.Load(file)
	require.NoError(t, err)
	require.Equal(t, "mine", s.Name)
	plan, err := s.Resolve(scenario.Options{})
	require.NoError(t, err)
	n := 0
	for change, err := range plan.Changes(plan.Writers[0]) {
		require.NoError(t, err)
		require.Equal(t, "a", change.Key)
		n++
	}
	require.Equal(t, 1, n, "the trace is beside the file")
	past := filepath.Join(dir, "past.ndjson")
	require.Equal(t, past, plan.TraceFile(plan.Writers[0]))

	write("watchers: [{}]\nwriters: [{rate: 1}, {trace: git-history}, {trace: " + strconv.Quote(past) + "}]\n")
	s, err = scenario.Load(file)
	require.NoError(t, err)
	plan, err = s.Resolve(scenario.Options{})
	require.NoError(t, err)
	require.Empty(t, plan.TraceFile(plan.Writers[0]))
	require.Empty(t, plan.TraceFile(plan.Writers[1]), "it is no file")
	require.Equal(t, past, plan.TraceFile(plan.Writers[2]))

	_, err = scenario.Load(filepath.Join(dir, "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The engine refuses less.
func TestValidate_KnowsTheEnginesBackoff(t *testing.T) {
	s := scenario.Scenario{Watchers: []scenario.Watcher{{}}, Engine: scenario.Engine{BackoffMax: reflector.DefaultInitial}}
	require.NoError(t, s.Validate())
	s.Engine.BackoffMax--
	require.ErrorIs(t, s.Validate(), scenario.ErrInvalid)
}

// Otherwise two runs of different histories would count as runs of one plan.
func TestPlan_IsAnotherWithAnotherTrace(t *testing.T) {
	dir := t.TempDir()
	file, past := filepath.Join(dir, "mine.yaml"), filepath.Join(dir, "past.ndjson")
	require.NoError(t, os.WriteFile(file, []byte("watchers: [{}]\nwriters: [{trace: past.ndjson}]\n"), 0o600))
	hash := func(key string) string {
		require.NoError(t, os.WriteFile(past, []byte(`{"t":1,"op":"put","key":"`+key+`","version":"1"}`), 0o600))
		s, err := scenario.Load(file)
		require.NoError(t, err)
		plan, err := s.Resolve(scenario.Options{})
		require.NoError(t, err)
		return plan.Hash
	}
	require.Equal(t, hash("a"), hash("a"))
	require.NotEqual(t, hash("a"), hash("b"))

	s, err := scenario.Load(file)
	require.NoError(t, err)
	require.NoError(t, os.Remove(past))
	_, err = s.Resolve(scenario.Options{})
	require.ErrorContains(t, err, "writers[0].trace: past.ndjson: no such file")
	require.NoError(t, os.Symlink(os.DevNull, past))
	_, err = scenario.Load(file)
	require.ErrorContains(t, err, "past.ndjson is not a regular file")
}

func TestRandomly_HoldsAsOftenAsItSays(t *testing.T) {
	for _, p := range []float64{0.01, 0.25, 0.5, 0.9} {
		c := scenario.Randomly(p, 7)
		struck := 0
		for i := range uint64(100_000) {
			if c.Holds(scenario.OnList, i) {
				struck++
			}
		}
		require.Less(t, math.Abs(float64(struck)/100_000-p), 0.01, "%v", p)
	}
}

func TestAssertion_Compares(t *testing.T) {
	for text, holds := range map[scenario.Assertion][3]bool{ // for 1, 2 and 3
		"lost < 2": {true, false, false}, "lost <= 2": {true, true, false}, "lost = 2": {false, true, false},
		"lost >= 2": {false, true, true}, "lost > 2": {false, false, true},
		"goroutines = start": {false, false, true},
	} {
		c, err := text.Check()
		require.NoError(t, err)
		for i, want := range holds {
			require.Equal(t, want, c.Holds(float64(i+1), 3), "%s for %d", text, i+1)
		}
	}
}

// fuzzSeeds are short because the fuzzer minimizes each input that reaches new code,
// which takes time with the square of the length: with whole scenarios as seeds, it
// does nothing else for minutes.
var fuzzSeeds = []string{
	"duration: 5s\nwatchers: [{}]\n",
	"watchers: [{}]\nobjects: {count: 9, fields: {a: 3}, index: [a]}\n",
	"writers: [{rate: 5, shape: bursts, burst: 3, mix: {emit: 1}}]\n",
	"writers:\n  - {rate: 50, hot: 1.5, start: 1s, stop: 2s}\n",
	"writers: [{rate: 1e2, count: 0, mix: {update: 0.}}]\n",
	"objects: {labels: {a: 2}}\nwatchers: [{labels: \"a={a}\"}]\n",
	"watchers:\n- name: w\n  reconnect:\n    every: 1s\n",
	"readers: [{rate: 1, mode: not-older, limit: 5}]\n",
	"objects: {count: 1}\ncaches: [{rate: 5, churn: 0.5}]\n",
	"informers: [{handlers: 2, prefix: \"{namespace}\"}]\n",
	"watchers: [{}]\nfaults: [{kind: fail, when: {not: {probability: .5}}}]\n",
	"watchers: [{}]\nfaults: [{kind: jump, jump: -1h, every: 2s}]\n",
	"watchers: [{}]\nassert: [p99 < 5ms, heap<=1MiB]\n",
	"watchers: [{name: w}]\nsmall: {watchers: {w: 3}}\n",
	"about: >-\n  folded\n  text # no comment\nwatchers: [{}]\n",
	"watchers: [{<<: *a}, &a {count: 3}, !!str x]",
	"watchers: [&a {name: w}, {<<: *a, name: v}]",
	"objects: {fields: &f {a: 3, b: 4}, labels: {b: 5, <<: *f}}\nwatchers: [{}]\n",
	"a: &a [*a]",
	"%YAML 1.2\n---\n? 'a'\n: \"\\x41\"\n...\n",
}

// maxFuzzed is the longest input that is parsed, for the same reason.
const maxFuzzed = 300

// No input makes the parser panic, every error has a position and shows little of the
// input, and the explanation of a plan gives the same plan.
func FuzzParse(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > maxFuzzed {
			return
		}
		s, err := scenario.Parse("f.yaml", data)
		if err != nil {
			requireErrors(t, err)
			return
		}
		if _, err := s.Resolve(scenario.Options{Small: true}); err != nil {
			require.ErrorIs(t, err, scenario.ErrInvalid)
			return
		}
		requireExplained(t, s, scenario.Options{Small: true})
	})
}

// requireErrors checks that errors are few and short, and have positions.
func requireErrors(t *testing.T, err error) {
	t.Helper()
	var errs scenario.Errors
	require.ErrorAs(t, err, &errs)
	require.LessOrEqual(t, len(errs), 101)
	for _, e := range errs {
		require.ErrorIs(t, e, scenario.ErrInvalid)
		require.Positive(t, e.Line)
		require.Positive(t, e.Column)
		require.NotEmpty(t, e.Problem)
		require.NotEmpty(t, e.Fix)
		require.Less(t, utf8.RuneCountInString(e.Error()), 1500)
	}
}

// The scenarios in the README are valid.
func TestReadme_ItsScenariosAreValid(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(readme, -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		s, err := scenario.Parse("README.yaml", block[1])
		require.NoError(t, err)
		_, err = s.Resolve(scenario.Options{Small: true})
		require.NoError(t, err)
	}
}
