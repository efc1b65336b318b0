package script

import (
	"encoding/json"
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
