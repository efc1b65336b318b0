package bench_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
)

// BenchmarkWorkload runs each workload once per iteration, at full size or, with
// -short, small. Its metrics are of the last iteration, so that benchstat has one
// sample per -count:
//
//	go test -run '^$' -bench Workload/W1$ -benchtime 1x -count 10 ./bench
func BenchmarkWorkload(b *testing.B) {
	for _, w := range bench.All() {
		b.Run(w.ID, func(b *testing.B) {
			p := w.Full
			if testing.Short() {
				p = w.Small
			}
			var result bench.Result
			var before, after runtime.MemStats
			for range b.N {
				var err error
				runtime.ReadMemStats(&before)
				result, err = w.Run(b.Context(), bench.Watchmill(), p)
				runtime.ReadMemStats(&after)
				require.NoError(b, err)
			}
			reportAll(b, result)
			if deliveries := float64(p.Watchers) * float64(p.Events); slices.ContainsFunc(result, isDeliveries) {
				b.ReportMetric(float64(after.Mallocs-before.Mallocs)/deliveries, "allocs/delivery")
			}
		})
	}
}

func isDeliveries(m bench.Metric) bool { return m.Name == bench.Deliveries }

// reportAll reports the metrics under names that benchstat can read: without
// spaces, with the unit.
func reportAll(b *testing.B, result bench.Result) {
	for _, m := range result {
		unit := strings.TrimSpace(m.Unit)
		if unit != "/s" && unit != "" {
			unit = "-" + unit
		}
		b.ReportMetric(m.Value, strings.ReplaceAll(m.Name, " ", "")+unit)
	}
}
