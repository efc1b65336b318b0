package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// States and lists that watchers are given, and what conflation leads to, are
// compared with what was written: an engine that is right is not accused.
func TestStatesOfAnEngineThatIsRightAreRight(t *testing.T) {
	lively := scenario.Mix{Create: 1, Update: 3, Delete: 1}
	rep := run1(t, &scenario.Scenario{
		Engine:  scenario.Engine{Window: 20, Backoff: time.Millisecond, BackoffMax: 2 * time.Millisecond},
		Objects: scenario.Objects{Count: 20, Fields: map[string]int{"node": 3}},
		Writers: []scenario.Writer{{Rate: 3000, Mix: lively, Move: 0.5}},
		Watchers: []scenario.Watcher{
			{Name: "late", Count: 10, Initial: true, Start: time.Second, Spread: 5 * time.Second, Fields: "node={node}"},
			{Name: "relisting", Count: 3, Initial: true, Reconnect: scenario.Reconnect{Every: time.Millisecond, Away: 20 * time.Millisecond}},
			{Name: "conflating", Count: 3, Policy: scenario.Conflate, Consume: scenario.Consume{Rate: 1000}},
			{Name: "conflating-handlers", Count: 3, Policy: scenario.Conflate, Consumer: scenario.Handler, Fields: "node={node}", Initial: true, Consume: scenario.Consume{Rate: 500}},
		},
		Faults: []scenario.Fault{
			{Kind: scenario.FaultCompact, At: 2 * time.Second, Every: 2 * time.Second},
			{Kind: scenario.FaultRelist, At: 2 * time.Second, Every: 2 * time.Second},
		},
		Assert: []scenario.Assertion{"lost = 0", "failed = 0", "unread = 0", "relists > 0", "conflated > 0", "engine-relists > 0"},
	})
	require.Empty(t, rep.Broken)
	for _, a := range rep.Assertions {
		require.True(t, a.Holds, "%+v\n%+v\n%v", a, rep.Worst, rep.Errors)
	}
}
