//go:build !unix

package bench

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// processorTime is what the process has used of the processors, garbage collection
// included, as the Go runtime estimates it: up to the last collection, so there is
// one now. Time that other programs have had on a processor of the runtime's counts, too.
func processorTime() time.Duration {
	runtime.GC()
	samples := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(samples)
	return time.Duration((samples[0].Value.Float64() - samples[1].Value.Float64()) * float64(time.Second))
}
