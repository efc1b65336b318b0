package queue

import "context"

// ShutDown refuses what comes from now on. What is queued can still be got; what
// is delayed is dropped and returned, in the order of its times. It does not
// wait, and ends the waiting of ShutDownWithDrain.
func (q *WorkQueue[T]) ShutDown() (dropped []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutDown, q.aborted = true, true
	dropped = q.dropDelayed()
	q.settle()
	return dropped
}

// ShutDownWithDrain refuses what comes from now on and waits until all that came
// before is done: what is queued, what workers have, what was added again
// meanwhile, and, by the queue's [DrainPolicy], what is delayed. Workers have to
// go on until Get returns [ErrShutDown].
//
// The errors are ctx's if ctx ends first, and [ErrShutDown] if ShutDown was
// called: there may be work left then. The queue stays shut down; calling this
// again waits again.
func (q *WorkQueue[T]) ShutDownWithDrain(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutDown = true
	switch q.cfg.Drain {
	case DrainNow:
		for _, item := range q.dropDelayed() {
			q.add(item)
		}
	case DrainWithout:
		q.dropDelayed()
	case DrainInTime:
	}
	q.settle()
	err := await(ctx, &q.drained, func() bool { return q.aborted || q.idle() })
	if err == nil && !q.idle() {
		return ErrShutDown
	}
	return err
}

// ShuttingDown reports whether the queue was shut down, with or without drain.
func (q *WorkQueue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shutDown
}

// dropDelayed takes out all that is delayed.
func (q *WorkQueue[T]) dropDelayed() (dropped []T) {
	for q.delayed.len() > 0 {
		dropped = append(dropped, q.undelay())
	}
	q.arm()
	return dropped
}

// exhausted reports whether no item will be queued any more.
func (q *WorkQueue[T]) exhausted() bool {
	return q.shutDown && len(q.dirty) == 0 && q.delayed.len() == 0
}

// idle reports whether there is nothing left to do.
func (q *WorkQueue[T]) idle() bool { return q.exhausted() && len(q.running) == 0 }

// settle wakes whoever waits for the end, if it may have come.
func (q *WorkQueue[T]) settle() {
	if q.shutDown {
		q.some.Broadcast()
		q.drained.Broadcast()
	}
}
