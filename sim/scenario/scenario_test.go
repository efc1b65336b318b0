package scenario_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

func TestShippedScenariosResolveInBothSizes(t *testing.T) {
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
		require.NotEmpty(t, full.Checks, name)
	}
	_, err := scenario.Shipped("kubelet")
	require.ErrorIs(t, err, scenario.ErrInvalid)
	require.ErrorContains(t, err, "kubelets")
}

func TestKubeletsIsAsLargeAsPromised(t *testing.T) {
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

// What explain prints is a scenario that makes the same plan.
func TestExplanationIsAScenario(t *testing.T) {
	for _, name := range scenario.Library() {
		s, err := scenario.Shipped(name)
		require.NoError(t, err)
		plan, err := s.Resolve(scenario.Options{Small: true})
		require.NoError(t, err)
		text, err := plan.Explain()
		require.NoError(t, err)
		again, err := scenario.Parse("explained.yaml", []byte(text))
		require.NoError(t, err, text)
		twice, err := again.Resolve(scenario.Options{})
		require.NoError(t, err)
		require.Equal(t, plan.Hash, twice.Hash, name)
	}
}

func TestGoAndYAMLMakeTheSamePlan(t *testing.T) {
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

func TestErrorsInGoNameTheFieldAndTheFix(t *testing.T) {
	_, err := (&scenario.Scenario{Writers: []scenario.Writer{{Rate: -1}}}).Resolve(scenario.Options{})
	require.ErrorIs(t, err, scenario.ErrInvalid)
	require.EqualError(t, err, "writers[0].rate: is negative: -1; write how many per second, such as 500")
	_, err = (&scenario.Scenario{Watchers: []scenario.Watcher{{}}}).Resolve(scenario.Options{Duration: -1})
	require.ErrorIs(t, err, scenario.ErrInvalid)
}

func TestResolveLeavesTheScenarioAlone(t *testing.T) {
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

func TestFilesAreFoundAndNamed(t *testing.T) {
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

	_, err = scenario.Load(filepath.Join(dir, "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Else two runs of different histories would pass for runs of one plan.
func TestPlanIsAnotherWithAnotherTrace(t *testing.T) {
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
	require.ErrorContains(t, err, "past.ndjson is no regular file")
}

func TestProbabilityIsWhatItSays(t *testing.T) {
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

func TestAssertionsCompare(t *testing.T) {
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

// No input makes the parser panic, and every error has a place.
func FuzzParse(f *testing.F) {
	for _, name := range scenario.Library() {
		data, err := scenario.Source(name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte("watchers: [{<<: *a}, &a {count: 3}, !!str x]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scenario.Parse("f.yaml", data)
		if err != nil {
			require.ErrorIs(t, err, scenario.ErrInvalid)
			require.Contains(t, err.Error(), "f.yaml:")
			return
		}
		if plan, err := s.Resolve(scenario.Options{Small: true}); err == nil {
			_, err = plan.Explain()
			require.NoError(t, err)
		}
	})
}

// What the README shows of scenarios can be run.
func TestScenariosOfTheReadmeAreValid(t *testing.T) {
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
