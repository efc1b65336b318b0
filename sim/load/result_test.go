package load

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/scenario"
)

// Watchers that the scenario makes slow are behind, unread and late. One of
// them that has lost events is reported; they must not hide the healthy ones.
func TestTheWorstAreNotThoseWhoAreMeantToBeSlow(t *testing.T) {
	healthy := &watchers{spec: &scenario.Watcher{Name: "healthy"}}
	slow := &watchers{spec: &scenario.Watcher{Name: "slow", Consume: scenario.Consume{Rate: 1}}}
	add := func(g *watchers, lag uint64, read bool) *watcher {
		w := &watcher{group: g, number: len(g.all), read: read}
		w.lag.Store(lag)
		g.all = append(g.all, w)
		return w
	}
	for range 20 {
		add(slow, 1000, false)
	}
	loser := add(slow, 0, true)
	add(healthy, 1, true)
	add(healthy, 0, false)
	add(healthy, 2, true)
	r := &run{groups: []*watchers{slow, healthy}}
	worst := r.worst(&judgement{verdicts: map[*watcher]judge.Verdict{loser: {Lost: 1}}})
	names := []string{}
	for _, w := range worst {
		names = append(names, w.Name)
	}
	require.Len(t, names, maxWorst)
	require.Equal(t, []string{"slow-20", "healthy-1", "healthy-2", "healthy-0", "slow-0", "slow-1"}, names[:6])
}
