package queue

import "time"

// WorkQueueMetrics is told what happens in a [WorkQueue], for counting. The
// methods are called with the queue locked: they must be quick and must not use
// it. After one has panicked none is called any more; see WorkQueueStats. None
// is called after the queue was shut down and has nothing left to do.
type WorkQueueMetrics interface {
	// Added: an item was queued; depth items are queued now.
	Added(depth int)
	// Started: an item went to a worker after it had waited; depth items are
	// still queued.
	Started(depth int, waited time.Duration)
	// Finished: a worker is done with an item that took so long.
	Finished(took time.Duration)
	// Retried: an item was added to wait for a while.
	Retried()
}

// WorkQueueStats is how a [WorkQueue] stands.
type WorkQueueStats struct {
	// Queued, Running and Delayed are numbers of items: waiting for a worker,
	// with a worker, and waiting for their time.
	Queued, Running, Delayed int
	// Unfinished is how long the running items have been running, added up, and
	// Longest how long the oldest has. Zero without a clock.
	Unfinished, Longest time.Duration
	// MetricsErr is the panic that ended the calls of the metrics, as a
	// [*store.PanicError], or nil.
	MetricsErr error
}

// meter calls the metrics, if there are any, and contains their panics.
type meter struct {
	metrics WorkQueueMetrics
	err     error
}

func (m *meter) tell(what func(WorkQueueMetrics)) {
	if m.metrics == nil || m.err != nil {
		return
	}
	defer recovered(&m.err)
	what(m.metrics)
}

// Stats returns how the queue stands.
func (q *WorkQueue[T]) Stats() WorkQueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := WorkQueueStats{Queued: q.queue.len(), Running: len(q.running), Delayed: q.delayed.len(), MetricsErr: q.meter.err}
	now := q.now()
	for _, began := range q.running {
		s.Unfinished += now.Sub(began)
		s.Longest = max(s.Longest, now.Sub(began))
	}
	return s
}
