package scenario_test

import (
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
