package script

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShrink_LeavesOutWhatIsNotNeeded(t *testing.T) {
	var s Scenario
	for n := range 100 {
		s.Steps = append(s.Steps, Step{Do: Turns, N: n})
	}
	has := func(s Scenario, n int) bool {
		return slices.ContainsFunc(s.Steps, func(s Step) bool { return s.N == n })
	}
	short := Shrink(t.Context(), s, func(s Scenario) bool { return has(s, 3) && has(s, 64) && has(s, 99) })
	require.Len(t, short.Steps, 3)
	require.Len(t, s.Steps, 100, "the drawn one is as it was")
}
