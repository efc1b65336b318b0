package replay

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/watchmill/watchmill/engine"
)

const (
	// latencyShards is how many histograms the consumers share: enough that they
	// rarely meet, and far less memory than one each (180 KB).
	latencyShards = 16
	// latencyMax is the longest latency that is told from longer ones.
	latencyMax = time.Hour
)

// Latency is the time from commit to consumer.
type Latency struct {
	// Events is how many were measured.
	Events uint64
	// P50 and P99 are the median and the 99th percentile, with three significant
	// digits. All are zero if nothing was measured.
	P50, P99, Max time.Duration
}

// latencies collects what the consumers measure.
type latencies struct {
	shards [latencyShards]struct {
		mu   sync.Mutex
		hist *hdrhistogram.Histogram
	}
}

func newLatencies() *latencies {
	l := &latencies{}
	for i := range l.shards {
		l.shards[i].hist = hdrhistogram.New(1, int64(latencyMax/time.Microsecond), 3)
	}
	return l
}

// record measures the events of a batch that arrived at now, for the consumer
// with that number; events at or below the revision after were replayed to it.
func (l *latencies) record(consumer int, now time.Time, events []engine.Event[File], after engine.Revision) {
	s := &l.shards[consumer%latencyShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range events {
		if ev := &events[i]; ev.Object != nil && ev.Marks == 0 && ev.Revision > after {
			// Out of range is impossible: both ends are cut off.
			_ = s.hist.RecordValue(min(max(0, now.Sub(ev.Object.Written)), latencyMax).Microseconds())
		}
	}
}

// sum returns what was measured. No consumer may be running any more.
func (l *latencies) sum() Latency {
	total := l.shards[0].hist
	for i := 1; i < len(l.shards); i++ {
		total.Merge(l.shards[i].hist)
	}
	at := func(percentile float64) time.Duration {
		return time.Duration(total.ValueAtPercentile(percentile)) * time.Microsecond
	}
	return Latency{
		Events: uint64(total.TotalCount()),
		P50:    at(50), P99: at(99), Max: time.Duration(total.Max()) * time.Microsecond,
	}
}
