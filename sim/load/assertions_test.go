package load

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// Nobody writes, so nothing was quick.
func TestALatencyOfNothingIsNotShort(t *testing.T) {
	rep := run1(t, &scenario.Scenario{
		Watchers: []scenario.Watcher{{}},
		Assert:   []scenario.Assertion{"p99 < 50ms", "informer-p99 < 1ms", "lost = 0"},
	})
	require.False(t, rep.OK())
	for _, a := range rep.Assertions[:2] {
		require.True(t, a.Unmeasured, a.Text)
		require.False(t, a.Holds, a.Text)
		require.Equal(t, "not known: nothing was measured", a.Shown())
	}
	require.True(t, rep.Assertions[2].Holds)
}

func TestEveryTimeIsThatOfAStage(t *testing.T) {
	for _, m := range scenario.Metrics {
		_, known := timed[m.Name]
		require.Equal(t, m.Unit == scenario.Time, known, m.Name)
	}
}
