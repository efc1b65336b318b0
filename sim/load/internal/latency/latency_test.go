package latency_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/load/internal/latency"
)

func TestRecorder_CutsOffAndSumsUp(t *testing.T) {
	r := latency.NewRecorder()
	for i := range 100 {
		r.Record(i, int64(i+1)*int64(time.Millisecond))
	}
	r.RecordAll(0, []int64{int64(48 * time.Hour), -5})
	other := latency.NewHistogram()
	r.Drain(other)
	r.Drain(other)
	s := latency.Stage("x", "", r.Total())
	require.Equal(t, int64(102), s.Count)
	require.Equal(t, int64(102), other.TotalCount(), "what was drained once is not drained again")
	require.InEpsilon(t, 0.050, s.P50, 0.03)
	require.InEpsilon(t, time.Hour.Seconds(), s.Max, 0.03)
	require.Equal(t, 100.0, s.Curve[len(s.Curve)-1].Percentile)
}

func TestStage_WithoutEventsIsZero(t *testing.T) {
	s := latency.Stage("none", "", latency.NewHistogram())
	require.Zero(t, s.P99)
	require.Zero(t, s.Max)
	require.Empty(t, s.Curve)
}

func TestRecorder_LosesNothingWhileItIsDrained(t *testing.T) {
	r := latency.NewRecorder()
	var recording sync.WaitGroup
	for by := range 4 {
		recording.Go(func() {
			for range 1000 {
				r.Record(by, 1000)
			}
		})
	}
	for range 50 {
		r.Drain()
	}
	recording.Wait()
	r.Drain()
	require.Equal(t, int64(4000), r.Total().TotalCount())
}
