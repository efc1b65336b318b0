package explore

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/explore/world"
)

func TestRun_SaysWhatIsWrongWithItsConfig(t *testing.T) {
	for field, spoil := range map[string]func(*Config[world.Thing]){
		"Engine.Key":            func(c *Config[world.Thing]) { c.Engine.Key = nil },
		"Engine.Name":           func(c *Config[world.Thing]) { c.Engine.Name = "things" },
		"Engine.Host":           func(c *Config[world.Thing]) { c.Engine.Host = &engine.Host{} },
		"Engine.Window":         func(c *Config[world.Thing]) { c.Engine.Window.MaxEvents = 1 },
		"Engine.FirstRevision":  func(c *Config[world.Thing]) { c.Engine.FirstRevision = 1 },
		"Engine.NoCache":        func(c *Config[world.Thing]) { c.Engine.NoCache = true },
		"Engine.BookmarkPeriod": func(c *Config[world.Thing]) { c.Engine.BookmarkPeriod = time.Second },
		"Engine.ListWhenBehind": func(c *Config[world.Thing]) { c.Engine.ListWhenBehind = 1 },
		"Engine.Backoff":        func(c *Config[world.Thing]) { c.Engine.Backoff = reflector.Backoff{Factor: 3} },
		"Draw":                  func(c *Config[world.Thing]) { c.Draw = nil },
		"Selections[1].Selects": func(c *Config[world.Thing]) { c.Selections[1].Selects = nil },
		"Steps":                 func(c *Config[world.Thing]) { c.Steps = -1 },
		"Seeds":                 func(c *Config[world.Thing]) { c.Seeds = -1 },
		"For":                   func(c *Config[world.Thing]) { c.For = -1 },
		"Workers":               func(c *Config[world.Thing]) { c.Workers = -1 },
	} {
		cfg := Things()
		spoil(&cfg)
		_, err := Run(t.Context(), cfg)
		requireField(t, field, err)
		_, err = Play(cfg, script.Scenario{})
		requireField(t, field, err)
	}
}

func TestPlay_SaysWhatIsWrongWithItsScenario(t *testing.T) {
	for field, step := range map[string]script.Step{
		"Steps[1].Do":              {},
		"Steps[1].N":               {Do: script.Turns, N: -1},
		"Steps[1].Meanwhile.N":     {Do: script.Get, Meanwhile: &script.Step{Do: script.Take}},
		"Steps[1].For":             {Do: script.Pass, For: -time.Second},
		"Steps[1].Start":           {Do: script.Watch},
		"Steps[1].Meanwhile.For":   {Do: script.Get, Meanwhile: &script.Step{Do: script.Jump, For: math.MinInt64}},
		"Steps[1].Start.Consumer":  {Do: script.Follow, Start: &script.Start{Consumer: 200}},
		"Steps[1].Start.Selection": {Do: script.Watch, Start: &script.Start{Selection: -1}},
		"Steps[1].Meanwhile.Do":    {Do: script.Get, Meanwhile: &script.Step{Do: 200}},
	} {
		_, err := Play(Things(), script.Scenario{Steps: []script.Step{{Do: script.Settle}, step}})
		requireField(t, field, err)
	}
	_, err := Play(Things(), script.Scenario{Setup: script.Setup{Window: engine.Window{MaxEvents: -1}}})
	require.ErrorIs(t, err, engine.ErrConfig)
}

// The engine refuses such a watch, which would be found as a defect of it.
func TestPlay_RefusesWatchesThatNoEngineStarts(t *testing.T) {
	for field, start := range map[string]script.Start{
		"Policy":   {Options: engine.WatchOptions{Policy: 99}},
		"Buffer":   {Options: engine.WatchOptions{Buffer: -1}},
		"Timeout":  {Options: engine.WatchOptions{Timeout: -1}},
		"Progress": {Options: engine.WatchOptions{Progress: true}},
		"Last":     {Options: engine.WatchOptions{Last: -1}},
	} {
		_, err := Play(Things(), script.Scenario{Steps: []script.Step{{Do: script.Watch, Start: &start}}})
		requireField(t, "Steps[0].Start.Options."+field, err)
	}
	for _, start := range []script.Start{
		{Back: 1, Options: engine.WatchOptions{Last: 1}},
		{Options: engine.WatchOptions{Last: 1, From: 1}},
		{Options: engine.WatchOptions{Last: 1, InitialState: true}},
	} {
		steps := []script.Step{{Do: script.Watch, Turns: script.Unlimited, Start: &start}}
		_, err := Play(Things(), script.Scenario{Steps: steps})
		requireField(t, "Steps[0].Start.Options.Last", err)
		steps[0].Do = script.Follow // which starts at the list
		finding, err := Play(Things(), script.Scenario{Setup: script.Setup{BookmarkPeriod: time.Second}, Steps: steps})
		require.NoError(t, err)
		require.Nil(t, finding)
	}
}

// Scenarios that are written by hand may have what none that is drawn has.
func TestPlay_FindsNoDefectInWhatIsOnlyWrittenByHand(t *testing.T) {
	watch := func(start script.Start) script.Step {
		return script.Step{Do: script.Watch, Turns: script.Unlimited, Start: &start}
	}
	detached := script.Scenario{
		Setup: script.Setup{BookmarkPeriod: time.Second},
		Steps: []script.Step{watch(script.Start{Options: engine.WatchOptions{Detached: true}}), {Do: script.Cancel}, {Do: script.Write}},
	}
	finding, err := Play(Things(), detached)
	require.NoError(t, err)
	require.Nil(t, finding)

	// The selectors of a watch are those of its selection.
	parsed := engine.WatchOptions{LabelSelector: labels.Nothing(), FieldSelector: fields.Nothing()}
	finding, err = Play(Things(), script.Scenario{
		Setup: script.Setup{BookmarkPeriod: time.Second},
		Steps: []script.Step{watch(script.Start{Options: parsed}), {Do: script.Write}, {Do: script.Write, Seed: 1}},
	})
	require.NoError(t, err)
	require.Nil(t, finding)

	// A window that keeps everything, whatever its size.
	everything := script.Scenario{Setup: script.Setup{
		BookmarkPeriod: time.Second, Window: engine.Window{MinEvents: math.MaxInt, MaxEvents: math.MaxInt, MaxBytes: 1},
	}}
	for seed := range uint64(10) {
		everything.Steps = append(everything.Steps, script.Step{Do: script.Write, Seed: seed})
	}
	everything.Steps = append(everything.Steps, script.Step{Do: script.Settle}, script.Step{Do: script.Write, Seed: 10})
	finding, err = Play(Things(), everything)
	require.NoError(t, err)
	require.Nil(t, finding)

	// Storage that keeps more history than the window needs, and nothing happens.
	finding, err = Play(Things(), script.Scenario{Setup: script.Setup{BookmarkPeriod: time.Second, Before: 100, KeepsHistory: true}})
	require.NoError(t, err)
	require.Nil(t, finding)

	uncached := script.Setup{BookmarkPeriod: time.Second, Uncached: true}
	for field, s := range map[string]script.Scenario{
		"Setup.BookmarkPeriod": {
			Setup: script.Setup{BookmarkPeriod: time.Hour}, Steps: []script.Step{watch(script.Start{Options: engine.WatchOptions{Bookmarks: true}})},
		},
		"Setup.Before": {Setup: script.Setup{BookmarkPeriod: time.Second, Before: -1}},
		"Steps[0].Start.Options.Last": {
			Setup: uncached, Steps: []script.Step{watch(script.Start{Uncached: true, Options: engine.WatchOptions{Last: 1}})},
		},
		"Steps[0].Start.Options.Policy": {
			Setup: uncached, Steps: []script.Step{watch(script.Start{Uncached: true, Options: engine.WatchOptions{Policy: engine.Conflate}})},
		},
	} {
		_, err := Play(Things(), s)
		requireField(t, field, err)
		s.Setup.Uncached, s.Setup.BookmarkPeriod, s.Setup.Before = false, time.Minute, 0
		finding, err := Play(Things(), s)
		require.NoError(t, err)
		require.Nil(t, finding)
	}
}

func TestPlay_RefusesTwoEnds(t *testing.T) {
	s := script.Scenario{Setup: script.Setup{BookmarkPeriod: time.Second}, Abrupt: true, Drain: true}
	_, err := Play(Things(), s)
	requireField(t, "Drain", err)
	s.Drain, s.Impatient = false, true
	_, err = Play(Things(), s)
	requireField(t, "Impatient", err)
	s.Abrupt, s.Drain = false, true
	finding, err := Play(Things(), s)
	require.NoError(t, err)
	require.Nil(t, finding)
	s.Impatient = false
	finding, err = Play(Things(), s)
	require.NoError(t, err)
	require.Nil(t, finding)
}

// A deletion that the engine finds by comparing two states may get a revision inside a transaction.
func TestPlay_RefusesToListAgainWhereThereAreTransactions(t *testing.T) {
	for field, s := range map[string]script.Scenario{
		"Setup.SharesState":    {Setup: script.Setup{SharesState: true}},
		"Setup.ListWhenBehind": {Setup: script.Setup{ListWhenBehind: 1}},
		"Steps[0].Do":          {Steps: []script.Step{{Do: script.Expire}}},
		"Steps[0].Meanwhile.Do": {Steps: []script.Step{
			{Do: script.Get, Turns: script.Unlimited, Meanwhile: &script.Step{Do: script.Rewind, N: 1}},
		}},
		"Steps[0].Start.Options.Policy": {Steps: []script.Step{
			{Do: script.Watch, Turns: script.Unlimited, Start: &script.Start{Options: engine.WatchOptions{Policy: engine.Conflate}}},
		}},
	} {
		s.Setup.Transactions = true
		_, err := Play(Things(), s)
		requireField(t, field, err)
		s.Setup.Transactions, s.Setup.BookmarkPeriod = false, time.Second
		finding, err := Play(Things(), s)
		require.NoError(t, err)
		require.Nil(t, finding)
	}
}

// Storage whose state the engine shares would show a transaction in part, and each of its changes takes
// real time.
func TestPlay_RefusesTransactionsThatStorageCannotHave(t *testing.T) {
	transact := func(n int) []script.Step { return []script.Step{{Do: script.Transact, N: n}} }
	for field, s := range map[string]script.Scenario{
		"Steps[0].Do": {Steps: transact(1)},
		"Steps[0].Meanwhile.Do": {Steps: []script.Step{
			{Do: script.Get, Turns: script.Unlimited, Meanwhile: &script.Step{Do: script.Transact}},
		}},
		"Steps[0].N": {Setup: script.Setup{Transactions: true}, Steps: transact(math.MaxInt)},
	} {
		_, err := Play(Things(), s)
		requireField(t, field, err)
		s.Setup.Transactions, s.Setup.BookmarkPeriod, s.Steps[0].N = true, time.Second, 3
		finding, err := Play(Things(), s)
		require.NoError(t, err)
		require.Nil(t, finding)
	}
}

// The clock cannot show more than 292 years, and each passing takes real time.
func TestPlay_RefusesToLetMoreTimePassThanAYear(t *testing.T) {
	const year = 365 * 24 * time.Hour
	pass := func(n int, d time.Duration) script.Step { return script.Step{Do: script.Pass, N: n, For: d} }
	for what, c := range map[string]struct {
		field string
		steps []script.Step
	}{
		"all of time":          {"Steps[0].For", []script.Step{pass(1, math.MaxInt64)}},
		"a product that wraps": {"Steps[0].For", []script.Step{pass(1<<16, 1<<48)}},
		"too often":            {"Steps[0].N", []script.Step{pass(math.MaxInt, 1)}},
		"in several steps":     {"Steps[2].For", []script.Step{pass(1, year/2), pass(2, year/4), pass(1, 1)}},
		"in reads": {"Steps[1].For", []script.Step{
			{Do: script.List, For: year}, {Do: script.Get, Turns: script.Unlimited, For: time.Second},
		}},
		"meanwhile": {"Steps[1].For", []script.Step{
			pass(1, year-time.Second), {Do: script.Get, Meanwhile: &script.Step{Do: script.Pass, N: 2, For: time.Second}},
		}},
	} {
		_, err := Play(Things(), script.Scenario{Steps: c.steps})
		require.Error(t, err, what)
		requireField(t, c.field, err)
	}
	finding, err := Play(Things(), script.Scenario{
		Setup: script.Setup{BookmarkPeriod: time.Second}, Steps: []script.Step{pass(2, year/2), {Do: script.Jump, For: year}, {Do: script.Jump, For: -year}},
	})
	require.NoError(t, err)
	require.Nil(t, finding)
}

// Without a number these steps would do something else than the verb says, and what they did
// would be found as an error of the engine.
func TestPlay_RefusesStepsWithoutTheirNumber(t *testing.T) {
	for _, verb := range []script.Verb{script.Take, script.Pages, script.NextPage, script.FailLists, script.FailWatches, script.SlowLists, script.FailCalls, script.Fail} {
		steps := []script.Step{{Do: script.Write, Turns: script.Unlimited}, {Do: verb, Turns: script.Unlimited}}
		_, err := Play(Things(), script.Scenario{Steps: steps})
		requireField(t, "Steps[1].N", err)
		steps[1].N = 1
		finding, err := Play(Things(), script.Scenario{Setup: script.Setup{BookmarkPeriod: time.Second}, Steps: steps})
		require.NoError(t, err)
		require.Nil(t, finding)
	}
}

// requireField requires that err names the field.
func requireField(t *testing.T, field string, err error) {
	t.Helper()
	require.ErrorIs(t, err, engine.ErrConfig)
	var bad *ConfigError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, field, bad.Field)
}
