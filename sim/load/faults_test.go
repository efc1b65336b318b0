package load

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// A watcher that has no watch cannot be hit, and the report must not count it.
func TestFaults_DoNotHitAWatcherWithoutAWatch(t *testing.T) {
	r := started(t, &scenario.Scenario{Objects: scenario.Objects{Count: 10}, Watchers: []scenario.Watcher{{}}})
	r.reading = t.Context()
	w := r.groups[0].all[0]
	storm := &scenario.Fault{Kind: scenario.FaultReconnect, Share: 1}
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
