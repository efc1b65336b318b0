//go:build !unix

package bench

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// processorTime returns the processors' time that the process has used, including garbage
// collection, as the Go runtime estimates it. The estimate is as of the last collection, so
// processorTime runs one. It includes the time that other programs used a processor which
// the runtime counts as its own.
func processorTime() time.Duration {
	runtime.GC()
	samples := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(samples)
	return time.Duration((samples[0].Value.Float64() - samples[1].Value.Float64()) * float64(time.Second))
}
