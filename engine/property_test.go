package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/explore"
)

// TestRows153To157_RandomHistories holds random histories against versioned
// storage as plainly as it can be said:
//
//   - 153: a watch's revisions increase, after an initial state in key order;
//   - 154: what it delivers is what its selection shows of all that happened,
//     unless it says otherwise;
//   - 155: nothing up to a bookmark comes after it, everything before;
//   - 156: a list and a watch from there make every later state;
//   - 157: a linearizable read sees all that was acknowledged before;
//
// and every watch ends for exactly one reason, and nothing outlives Close, which
// comes at any moment. What the histories are made of is in sim/explore, what
// they are held to in sim/judge. More of them: watchmill sim explore.
func TestRows153To157_RandomHistories(t *testing.T) {
	histories := explore.Things()
	histories.Seeds = 1000
	report, err := explore.Run(t.Context(), histories)
	require.NoError(t, err)
	if f := report.Finding; f != nil {
		t.Fatalf("watchmill sim explore --seed %d: %s\n\n%s\n%s", f.Seed, f.Problem, f.Setup, strings.Join(f.Trace, "\n"))
	}
	require.Equal(t, histories.Seeds, report.Seeds)
}
