package load

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// A fault that meets nothing has tested nothing, and a handler that has no event does not panic.
func TestFaults_ThatStruckNothingAreReported(t *testing.T) {
	rep := inBubble(t, brief(t, &scenario.Scenario{
		Objects: scenario.Objects{Count: 10},
		Writers: []scenario.Writer{{Rate: 100}},
		Watchers: []scenario.Watcher{
			{Name: "idle", Consumer: scenario.Handler, Key: "ns-0/obj-10"}, {Name: "busy", Count: 2, Consumer: scenario.Handler},
		},
		Faults: []scenario.Fault{
			{Name: "in vain", Kind: scenario.FaultPanic, Group: "idle", At: time.Second, Every: time.Second},
			{Name: "panics", Kind: scenario.FaultPanic, At: 2 * time.Second},
			{Name: "no list", Kind: scenario.FaultFail, When: scenario.During(scenario.OnList), At: 3 * time.Second},
			{Name: "break", Kind: scenario.FaultBreak, At: 4 * time.Second},
		},
	}))
	require.Equal(t, []string{"the fault in vain, at 10ms, struck nothing", "the fault no list, at 30ms, struck nothing"}, rep.Remarks)
	for _, f := range rep.Faults {
		require.Equal(t, map[string]uint64{"panics": 2, "break": 1}[f.Name], f.Struck, f.Name)
	}
}

// A watcher that has no watch cannot be hit, and the report must not count it.
func TestFaults_DoNotHitAWatcherWithoutAWatch(t *testing.T) {
	r := newStartedRun(t, &scenario.Scenario{Objects: scenario.Objects{Count: 10}, Watchers: []scenario.Watcher{{}}})
	r.reading = t.Context()
	w := r.groups[0].all[0]
	storm := &occurrence{of: &scenario.Fault{Kind: scenario.FaultReconnect, Share: 1}}
	require.Zero(t, r.faults.disturbWatchers(storm, 0))

	create(t, r, 0)
	watch, err := w.open(t.Context())
	require.NoError(t, err)
	left := make(chan error)
	go func() { left <- w.consume(t.Context(), watch) }()
	for w.interrupt.Load() == nil {
		runtime.Gosched()
	}
	require.Equal(t, 1, r.faults.disturbWatchers(storm, 0))
	require.ErrorIs(t, <-left, errReconnect)
	w.leave(watch)
	require.Zero(t, r.faults.disturbWatchers(storm, 0))
}
