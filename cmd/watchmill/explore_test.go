package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/explore"
)

func TestExplore_SaysThatNothingWasFound(t *testing.T) {
	out, errs, status := command(t.Context(), "sim", "explore", "--seeds", "10", "--from", "40")
	require.Zero(t, status, out+errs)
	require.Contains(t, out, "explored   10 seeds from 40 in ")
	require.Contains(t, out, "found      nothing: every invariant held\n")
	require.Regexp(t, `simulated  \d\d,\d{3} messages, [\d,]+ per second: \d,\d{3} turns`, out)
}

func TestExplore_ASeedGivesTheSameHashAgain(t *testing.T) {
	hash := func() string {
		out, errs, status := command(t.Context(), "sim", "explore", "--seed", "42", "--json")
		require.Zero(t, status, errs)
		var r explore.Report
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.Equal(t, 1, r.Seeds)
		require.Equal(t, uint64(42), r.From)
		return r.Hash
	}
	require.Equal(t, hash(), hash())
}

func TestExplore_RefusesWhatItCannotDo(t *testing.T) {
	for mention, args := range map[string][]string{
		"--seeds is -1": {"--seeds=-1"},
		"--seeds is 0":  {"--seeds=0"},
		"--for is -1s":  {"--for=-1s"},
		"--for is 0s":   {"--for=0s"},
		"--seed and --from can't be used together":  {"--seed=1", "--from=2"},
		"--seeds and --seed can't be used together": {"--seed=1", "--seeds=2"},
		"--seed and --for can't be used together":   {"--seed=1", "--for=2s"},
	} {
		_, errs, status := command(t.Context(), append([]string{"sim", "explore"}, args...)...)
		require.Equal(t, exitUsage, status, errs)
		require.Contains(t, errs, mention)
	}
}

// What is found is told in a form that leads back to it.
func TestExplore_TellsAFindingWithItsReplay(t *testing.T) {
	finding := &explore.Report{From: 3, Seeds: 1, Finding: &explore.Finding{
		Seed: 3, Invariant: "ordered", Problem: "ordered: w0, event 4: late", ShortProblem: "ordered: w0, event 1: late",
		Setup: "an engine", Steps: []string{"write", "take w0"}, Drawn: 80, Trace: []string{"write", "  w0 gets ADDED a@2"},
	}}
	var out stringWriter
	require.NoError(t, writeExploreText(&out, finding))
	require.Contains(t, string(out), "explored   1 seed from 3 in ")
	require.Contains(t, string(out), `found      seed 3 breaks "ordered"`)
	require.Contains(t, string(out), "has 2 of the 80 steps")
	require.Contains(t, string(out), "  take w0\n")
	require.Contains(t, string(out), "\nOr run it: watchmill sim explore --seed 3\n")
	require.Equal(t, exitBroken, complain(&out, errBroken))
}

// What took hours to find is not lost with its report.
func TestExplore_TellsOfAFindingAlthoughItsReportCannotBeWritten(t *testing.T) {
	for finding, want := range map[*explore.Finding]struct {
		status int
		errs   string
	}{
		nil: {exitFailed, "watchmill: writing the report: disk full\n"},
		{Seed: 3, Invariant: "ordered"}: {exitBroken, `watchmill: writing the report: disk full
watchmill: seed 3 breaks "ordered": run watchmill sim explore --seed 3
`},
	} {
		var errs bytes.Buffer
		status := complain(&errs, unwrittenFinding(&streams{stderr: &errs}, finding, errors.New("disk full")))
		require.Equal(t, want.status, status)
		require.Equal(t, want.errs, errs.String())
	}
}

func TestExplore_SaysThatItWasInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	out, errs, status := command(ctx, "sim", "explore", "--seeds", "5")
	require.Equal(t, exitInterrupted, status)
	require.Empty(t, errs)
	require.Contains(t, out, "stopped    interrupted before the end")
	require.Contains(t, out, "explored   0 seeds from 1 in ")
}

type stringWriter []byte

func (w *stringWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
