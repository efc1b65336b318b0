package queue

import (
	"context"
	"slices"
)

// Pop waits for a delta, takes it out and calls process with it; initial tells
// whether it came from the first Replace. It returns what process returns, its
// panic as a [*store.PanicError], ctx's error if ctx ends first, and [ErrClosed]
// once the queue is closed and empty.
//
// One call processes at a time, and the others wait. process may use the queue,
// except for Pop and PopBatch. What failed is not queued again: that would put
// old state behind new.
func (q *RealFIFO[T]) Pop(ctx context.Context, process func(delta Delta[T], initial bool) error) error {
	return q.pop(ctx, 1, func(batch []Delta[T], initial bool) error { return process(batch[0], initial) })
}

// PopBatch is Pop for several deltas at a time: as many as are queued, at most
// RealFIFOConfig.BatchSize, of different objects, and all from the first Replace
// or none. A delta that concerns all objects comes alone. process owns the
// batch, which is never empty.
func (q *RealFIFO[T]) PopBatch(ctx context.Context, process func(batch []Delta[T], initial bool) error) error {
	return q.pop(ctx, q.cfg.BatchSize, process)
}

func (q *RealFIFO[T]) pop(ctx context.Context, limit int, process func([]Delta[T], bool) error) (err error) {
	if err := q.gate.enter(ctx); err != nil {
		return err
	}
	batch, initial := q.takeBatch(limit)
	if q.cfg.Known != nil {
		q.popped = slices.Clone(batch)
	}
	q.room.Broadcast()
	q.gate.mu.Unlock()
	initials := len(batch) * count(initial)
	defer func() {
		q.gate.mu.Lock()
		defer q.gate.mu.Unlock()
		q.popped = nil
		q.gate.leave(initials)
	}()
	defer recovered(&err)
	return process(batch, initial)
}

// takeBatch takes the next batch out of the queue, which is not empty.
func (q *RealFIFO[T]) takeBatch(limit int) (batch []Delta[T], initial bool) {
	waiting := q.queue.waiting()
	n := batchLen(waiting, limit)
	batch = make([]Delta[T], n)
	for i := range batch {
		batch[i] = waiting[i].delta
	}
	initial = waiting[0].initial
	q.queue.drop(n)
	return batch, initial
}

// batchLen returns how many of the first of waiting, of which there are some,
// can be processed together.
func batchLen[T any](waiting []realEntry[T], limit int) int {
	if limit == 1 || concernsAll(waiting[0].delta.Type) {
		return 1
	}
	keys := make(map[string]struct{}, min(limit, len(waiting)))
	for n, entry := range waiting {
		_, twice := keys[entry.delta.Key]
		if n == limit || twice || entry.initial != waiting[0].initial || concernsAll(entry.delta.Type) {
			return n
		}
		keys[entry.delta.Key] = struct{}{}
	}
	return len(waiting)
}

// concernsAll reports whether a delta of type t concerns no single object.
func concernsAll(t DeltaType) bool { return t >= DeltaReplacedAll }
