package script

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

func TestDraw_EveryVerbAndConsumerIsDrawn(t *testing.T) {
	var verbsSeen [verbs]bool
	var consumersSeen [consumers]bool
	for seed := range uint64(30) {
		for _, s := range Draw(seed, 9, 200).Steps {
			verbsSeen[s.Do] = true
			if s.Start != nil {
				consumersSeen[s.Start.Consumer] = true
			}
		}
	}
	require.NotContains(t, verbsSeen[Write:], false)
	require.NotContains(t, consumersSeen, false)
}

// Calls that follow storage that has gone back unnoticed end with the recovery, and most such times are followed.
func TestDraw_UsersCallBetweenARewindAndTheRecovery(t *testing.T) {
	rewinds, followed, calls := 0, 0, 0
	for seed := range uint64(30) {
		unnoticed := false
		for _, s := range Draw(seed, 9, 200).Steps {
			back := rewindIn(&s)
			switch {
			case s.Do == Recover:
				require.True(t, unnoticed)
				unnoticed = false
			case unnoticed:
				calls++
			case back != nil:
				rewinds++
				if unnoticed = back.Unnoticed; unnoticed {
					followed++
				}
			}
		}
		require.False(t, unnoticed)
	}
	require.Greater(t, 2*followed, rewinds)
	require.Greater(t, calls, 3*followed)
	require.Equal(t, "storage goes back unnoticed n=2 seed=0x0", Step{Do: Rewind, N: 2, Unnoticed: true}.String())
}

// Storage has had changes before the engine starts in some scenarios, and keeps them for it in most of these.
func TestDraw_StorageMayHaveAPast(t *testing.T) {
	before, kept := 0, 0
	for seed := range uint64(200) {
		setup := Draw(seed, 9, 200).Setup
		if setup.Before > 0 {
			before++
		}
		if setup.KeepsHistory {
			require.NotZero(t, setup.Before)
			kept++
		}
	}
	require.Greater(t, 2*kept, before)
	require.Greater(t, 200-before, before)
	require.Greater(t, before, 40)
}

// The context of a drain ends in a third of the scenarios that would be abrupt, and in no others.
func TestDraw_DrainsMayBeCutShort(t *testing.T) {
	abrupt, drained, impatient := 0, 0, 0
	for seed := range uint64(400) {
		s := Draw(seed, 9, 1)
		require.NoError(t, s.Validate())
		switch {
		case s.Abrupt:
			abrupt++
		case s.Impatient:
			require.True(t, s.Drain)
			impatient++
		case s.Drain:
			drained++
		}
	}
	require.Greater(t, abrupt, impatient)
	require.Greater(t, drained, impatient)
	require.Greater(t, impatient, 20)
}

// Informers have an index from the start in half of the scenarios that have one, and get others later in half of them.
func TestDraw_InformersAreIndexed(t *testing.T) {
	informers, indexed, later := 0, 0, 0
	for seed := range uint64(300) {
		s := Draw(seed, 9, 200)
		adds := slices.ContainsFunc(s.Steps, func(s Step) bool { return s.Do == Index })
		if s.Setup.InformerBuffer == 0 {
			require.False(t, adds || s.Setup.InformerIndexed)
			continue
		}
		informers++
		if s.Setup.InformerIndexed {
			indexed++
		}
		if adds {
			later++
		}
	}
	require.Greater(t, 3*indexed, informers)
	require.Less(t, indexed, informers)
	require.Greater(t, 3*later, informers)
	require.Less(t, later, informers)
}

// Answers are lost in a third of the scenarios, right before writes.
func TestDraw_AnswersToWritesAreLost(t *testing.T) {
	scenarios, lost := 0, 0
	for seed := range uint64(300) {
		before := lost
		steps := Draw(seed, 9, 200).Steps
		for i, s := range steps {
			if s.Do == LoseAnswers {
				lost++
				require.Contains(t, answeredVerbs, steps[i+1].Do)
			}
		}
		if lost > before {
			scenarios++
		}
	}
	require.Greater(t, scenarios, 60)
	require.Less(t, scenarios, 120)
	require.Greater(t, lost, 3*scenarios)
	require.Equal(t, "answers to writes are lost n=2 seed=0x3", Step{Do: LoseAnswers, N: 2, Seed: 3, Turns: Unlimited}.String())
}

func TestScenario_EveryOneIsKeptByJSON(t *testing.T) {
	for seed := range uint64(30) {
		s := Draw(seed, 9, 200)
		require.NoError(t, s.Validate())
		kept, err := json.Marshal(s)
		require.NoError(t, err)
		var read Scenario
		require.NoError(t, json.Unmarshal(kept, &read))
		require.Equal(t, s, read)
	}
	var s Scenario
	for field, kept := range map[string]string{
		"Verb":     `{"steps": [{"do": "dance"}]}`,
		"Consumer": `{"steps": [{"do": "watch", "start": {"consumer": "unknown"}}]}`,
	} {
		var bad *engine.ConfigError
		require.ErrorAs(t, json.Unmarshal([]byte(kept), &s), &bad)
		require.Equal(t, field, bad.Field)
	}
	require.Equal(t, "Verb(0) n=2", Step{N: 2}.String())
}

// A scenario that was kept before a field was renamed would play without it.
func TestScenario_UnknownFieldOfItsJSONIsRefused(t *testing.T) {
	for field, kept := range map[string]string{
		"again":        `{"seed": 1, "again": true, "steps": []}`,
		"adopted":      `{"seed": 1, "setup": {"adopted": true}, "steps": []}`,
		"direct":       `{"seed": 1, "steps": [{"do": "write", "meanwhile": {"do": "write", "direct": true}}]}`,
		"Linearisable": `{"seed": 1, "steps": [{"do": "watch", "start": {"consumer": "pull", "options": {"Linearisable": true}}}]}`,
	} {
		s := Scenario{Seed: 7}
		require.ErrorContains(t, json.Unmarshal([]byte(kept), &s), field)
		require.Equal(t, Scenario{Seed: 7}, s)
	}
}
