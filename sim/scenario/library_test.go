package scenario_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Without these assertions, an engine that does nothing would pass: percentiles are
// of the calls that were made, and an event that was not read is not lost.
func TestShipped_DemandThatEverythingIsDone(t *testing.T) {
	for _, name := range scenario.Library() {
		s, err := scenario.Shipped(name)
		require.NoError(t, err)
		asserted := map[string]bool{}
		for _, a := range s.Assert {
			check, err := a.Check()
			require.NoError(t, err)
			require.False(t, check.Holds(0, 0) && check.Holds(1e15, 0), "%s: %s could never fail", name, a)
			if check.Group == "" {
				asserted[check.Metric.Name] = true
			} else {
				asserted[check.Group+"."+check.Metric.Name] = true
			}
		}
		require.True(t, asserted["lost"], name)
		require.True(t, asserted["failed"], name)
		require.True(t, asserted["write-errors"] && asserted["unwritten"], name)
		if len(s.Readers)+len(s.Caches) > 0 {
			require.True(t, asserted["read-errors"] && asserted["missed-reads"], name)
		}
		if len(s.Caches)+len(s.Informers) > 0 {
			require.True(t, asserted["stale"], name)
		}
		for _, w := range s.Watchers {
			read := asserted["unread"] || asserted[w.Name+".unread"]
			require.Equal(t, !w.Consume.Slow(), read, "%s: %s", name, w.Name)
		}
	}
}

// Without these, faults and slow consumers that have no effect would pass for ones that do no harm.
func TestShipped_DemandTheEffectsThatTheyAreAbout(t *testing.T) {
	for name, effects := range map[string][]string{
		"slow-consumers":  {"conflated", "dismissed.terminated"},
		"reconnect-storm": {"agent.reconnects", "traveller.relists", "fragile.panicked"},
	} {
		s, err := scenario.Shipped(name)
		require.NoError(t, err)
		for _, effect := range effects {
			require.True(t, slices.ContainsFunc(s.Assert, func(a scenario.Assertion) bool {
				return strings.HasPrefix(string(a), effect+" > ")
			}), "%s: %s", name, effect)
		}
	}
}
