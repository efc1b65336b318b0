package load

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// A trace does not take longer because the engine does: what is due and cannot be
// made is counted.
func TestATraceThatIsHeldUpEndsInTime(t *testing.T) {
	s := &scenario.Scenario{
		Writers: []scenario.Writer{{Trace: scenario.ShippedTrace}},
		Faults:  []scenario.Fault{{Kind: scenario.FaultStick, When: scenario.During(scenario.OnPut)}},
	}
	plan, err := s.Resolve(scenario.Options{Duration: 100 * time.Millisecond})
	require.NoError(t, err)
	traces, err := readTraces(plan)
	require.NoError(t, err)
	rep, err := Run(t.Context(), plan, Options{})
	require.NoError(t, err)
	require.Positive(t, rep.Metrics["unwritten"])
	require.Equal(t, float64(len(traces[scenario.ShippedTrace])), rep.Metrics["writes"]+rep.Metrics["unwritten"])
}

// Events that an interrupt prevents are not lost.
func TestATraceThatIsInterruptedHasMissedNothing(t *testing.T) {
	r := started(t, &scenario.Scenario{Writers: []scenario.Writer{{Trace: scenario.ShippedTrace}}})
	var err error
	r.traces, err = readTraces(r.plan)
	require.NoError(t, err)
	r.begin()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	newWriter(r, r.callers[0], &r.plan.Writers[0], 0, 0, 1).write(ctx)
	require.Zero(t, r.callers[0].omissions())
}
