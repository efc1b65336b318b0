package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/explore/world"
)

// explored returns the report of an exploration of cfg that has a finding.
func explored(t *testing.T, cfg Config[world.Thing]) *Report {
	r, err := Run(t.Context(), seeds(cfg, 0, 30))
	require.NoError(t, err)
	require.NotNil(t, r.Finding)
	return r
}

func TestFinding_TellsWhatIsWrongAndHowToSeeIt(t *testing.T) {
	f := explored(t, withCounter(3)).Finding
	text := f.String()
	require.Contains(t, text, fmt.Sprintf("seed %d breaks \"never negative\"", f.Seed))
	require.Contains(t, text, "less than nothing is there")
	require.Contains(t, text, fmt.Sprintf("From: %d and Seeds: 1", f.Seed))
	for _, step := range f.Steps {
		require.Contains(t, text, "  "+step+"\n")
	}
	require.Contains(t, text, "  BROKEN: never negative: less than nothing is there\n")
}

// What a scenario has besides its steps is in the text, too: a person may want to write it down.
func TestFinding_TellsHowItsScenarioEnds(t *testing.T) {
	f := &Finding{Scenario: script.Scenario{Abrupt: true, Restart: true}}
	require.Contains(t, f.String(), "closed in the middle of its work")
	require.Contains(t, f.String(), "another engine starts")
	start := script.Start{Options: engine.WatchOptions{Detached: true, From: 7}}
	require.Contains(t, start.String(), "detached from=7")
}

func TestFinding_ShowsTheEndOfALongTrace(t *testing.T) {
	f := &Finding{Trace: []string{"the first line"}}
	for range maxTraceLines {
		f.Trace = append(f.Trace, "a line")
	}
	require.NotContains(t, f.String(), "the first line")
	require.Contains(t, f.String(), "(1 lines before")
	require.Equal(t, maxTraceLines, strings.Count(f.String(), "  a line\n"))
}

// The scenario of a finding is all that is needed to reproduce it.
func TestFinding_ScenarioIsKeptAsJSON(t *testing.T) {
	cfg := withCounter(3)
	f := explored(t, cfg).Finding
	kept, err := json.Marshal(f.Scenario)
	require.NoError(t, err)
	var s script.Scenario
	require.NoError(t, json.Unmarshal(kept, &s))
	again, err := Play(cfg, s)
	require.NoError(t, err)
	require.Equal(t, f.ShortProblem, again.Problem)
	require.Equal(t, f.Trace, again.Trace)
	require.Equal(t, f.Steps, again.Steps)
	none, err := Play(withCounter(0), s)
	require.NoError(t, err)
	require.Nil(t, none, "nothing is wrong with it for others")
}

// The seeds above that of a finding are not counted, whatever the timing of the workers.
func TestReport_IsTheSameForAnyNumberOfWorkers(t *testing.T) {
	cfg := withCounter(3)
	report := func(workers int) *Report {
		cfg.Workers = workers
		r := explored(t, cfg)
		r.Elapsed = 0
		return r
	}
	one := report(1)
	require.Equal(t, int(one.Finding.Seed)+1, one.Seeds)
	require.Equal(t, one, report(2))
	require.Equal(t, one, report(7))
}

func TestRun_AnInterruptEndsTheShrinking(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := seeds(withCounter(3), 0, 30)
	at := explored(t, cfg).Finding.Seed
	cfg.OnProgress = func(p Progress) {
		if p.Done == int(at)+1 {
			cancel()
		}
	}
	r, err := Run(ctx, cfg)
	require.NoError(t, err)
	require.True(t, r.Interrupted)
	require.Len(t, r.Finding.Steps, r.Finding.Drawn, "as it was drawn")
	require.Equal(t, r.Finding.Problem, r.Finding.ShortProblem)
}
