package queue

import "time"

// delayedWork is an item that waits for its time.
type delayedWork[T comparable] struct {
	item T
	at   time.Time
	no   uint64
}

func (d delayedWork[T]) before(e delayedWork[T]) bool {
	return d.at.Before(e.at) || d.at.Equal(e.at) && d.no < e.no
}

// AddAfter adds item once d has passed; at once if d is zero or less. If item is
// waiting already, the earlier time counts. The errors are [ErrNoClock] and
// those of Add.
func (q *WorkQueue[T]) AddAfter(item T, d time.Duration) (err error) {
	if q.cfg.Clock == nil {
		return ErrNoClock
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutDown {
		return ErrShutDown
	}
	defer recovered(&err)
	q.meter.tell(WorkQueueMetrics.Retried)
	if d <= 0 {
		q.add(item)
		return nil
	}
	q.delay(item, q.now().Add(d))
	q.arm()
	return nil
}

// AddRateLimited adds item when the limiter says that it may be tried again. The
// errors are [ErrNoLimiter], a panic of the limiter as a [*store.PanicError],
// and those of Add.
func (q *WorkQueue[T]) AddRateLimited(item T) (err error) {
	if q.cfg.Limiter == nil {
		return ErrNoLimiter
	}
	defer recovered(&err)
	return q.AddAfter(item, q.cfg.Limiter.When(item, q.now()))
}

// Forget tells the limiter, if there is one, that item succeeded or was given
// up. It does not take item out of the queue, nor replace Done.
func (q *WorkQueue[T]) Forget(item T) {
	if q.cfg.Limiter != nil {
		q.cfg.Limiter.Forget(item)
	}
}

// NumRequeues returns how many times item was limited since it was last
// forgotten; zero without a limiter.
func (q *WorkQueue[T]) NumRequeues(item T) int {
	if q.cfg.Limiter == nil {
		return 0
	}
	return q.cfg.Limiter.NumRequeues(item)
}

// delay makes item wait until at, or less long if it does already.
func (q *WorkQueue[T]) delay(item T, at time.Time) {
	q.delayNo++
	s := q.delays[item]
	switch {
	case s == nil:
		s = q.delayed.add(delayedWork[T]{item, at, q.delayNo})
		q.delays[item] = s
	case at.Before(s.value.at):
		s.value.at, s.value.no = at, q.delayNo
	default:
		return
	}
	q.delayed.fix(s)
}

// arm sets the timer for the earliest delay.
func (q *WorkQueue[T]) arm() {
	if q.timer != nil {
		if q.delayed.len() > 0 && q.delayed.least().value.at.Equal(q.armed) {
			return
		}
		q.timer.Stop()
		q.timer = nil
	}
	if q.delayed.len() > 0 {
		q.armed = q.delayed.least().value.at
		q.timerNo++
		no := q.timerNo
		q.timer = q.cfg.Clock.AfterFunc(max(q.armed.Sub(q.now()), 1), func() { q.fire(no) })
	}
}

// fire adds what is due. The clock calls it for the timer of the given number,
// perhaps late, when that timer has been stopped and another set: then there is
// nothing due, and the other timer stays.
func (q *WorkQueue[T]) fire(no uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if no == q.timerNo {
		q.timer = nil
	}
	for now := q.now(); q.delayed.len() > 0 && !q.delayed.least().value.at.After(now); {
		q.add(q.undelay())
	}
	q.arm()
	q.settle()
}

// undelay takes out the item whose time is earliest.
func (q *WorkQueue[T]) undelay() T {
	earliest := q.delayed.least()
	delete(q.delays, earliest.value.item)
	q.delayed.remove(earliest)
	return earliest.value.item
}
