package queue

import (
	"cmp"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/usercode"
)

// delayedWork is an item that is added at a time.
type delayedWork[T comparable] struct {
	item T
	at   time.Time
	no   uint64
}

func (d delayedWork[T]) before(e delayedWork[T]) bool {
	return d.at.Before(e.at) || d.at.Equal(e.at) && d.no < e.no
}

// AddAfter adds item once d has passed, or at once if d is zero or less. If item is
// delayed already, the earlier time counts; to add it at once, here or by Add, does not
// end its delay. The errors are [ErrNoClock], those of Add, and a panic of the clock as a
// [*usercode.PanicError]: the item is delayed nevertheless, and its timer, if there is none, is set
// by the next call of Add, AddAfter, Done or ShutDownWithDrain.
func (q *WorkQueue[T]) AddAfter(item T, d time.Duration) (err error) {
	if q.cfg.Clock == nil {
		return ErrNoClock
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutDown {
		return ErrShutDown
	}
	defer q.meter.call(WorkQueueMetrics.Retried) // last, since it may end the goroutine
	defer func() {                               // even if a function of the user ends the goroutine
		if failed := q.arm(); err == nil {
			err = failed
		}
	}()
	return comparing(func() {
		if d <= 0 {
			q.add(item)
			return
		}
		now := q.now()
		q.delay(item, now.Add(d))
		q.addDue(now) // the clock may have been set forward
	})
}

// AddRateLimited adds item after the delay that the limiter returns. The errors are
// [ErrNoLimiter], a panic of the limiter as a [*usercode.PanicError], and those of Add.
func (q *WorkQueue[T]) AddRateLimited(item T) error {
	if q.cfg.Limiter == nil {
		return ErrNoLimiter
	}
	var wait time.Duration
	if err := usercode.Call("RateLimiter.When", "", func() { wait = q.cfg.Limiter.When(item, q.cfg.Clock.Now()) }); err != nil {
		return err
	}
	return q.AddAfter(item, wait)
}

// Forget resets the limiter's count for item, after it succeeded or was given up. It
// does not remove item from the queue, and does not replace Done. A panic of the
// limiter is the caller's.
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

// delay delays item until at, or until its present time if that is earlier.
func (q *WorkQueue[T]) delay(item T, at time.Time) {
	q.delayNo++
	s := q.delays.entries[item]
	switch {
	case s == nil:
		s = q.delayed.add(delayedWork[T]{item, at, q.delayNo})
		q.delays.put(item, s)
	case at.Before(s.value.at):
		s.value.at, s.value.no = at, q.delayNo
	default:
		return
	}
	q.delayed.fix(s)
}

// arm sets the timer for the earliest delay. A panic of the clock is the error: if it has set no
// timer then, the next call tries again, and a timer that it has not stopped finds nothing due.
func (q *WorkQueue[T]) arm() error {
	if q.timer != nil && q.delayed.len() > 0 && q.delayed.least().value.at.Equal(q.armed) {
		return nil
	}
	failed := q.disarm()
	if q.delayed.len() == 0 {
		return failed
	}
	q.armed = q.delayed.least().value.at
	q.timerNo++
	no, wait := q.timerNo, max(q.armed.Sub(q.now()), 1)
	panicked := usercode.Call("Clock.AfterFunc", "", func() {
		q.timer = q.cfg.Clock.AfterFunc(wait, func() { q.fire(no) })
	})
	return cmp.Or(panicked, failed)
}

// disarm stops the timer, if there is one. A panic of the clock is the error.
func (q *WorkQueue[T]) disarm() error {
	if q.timer == nil {
		return nil
	}
	return usercode.Call("Timer.Stop", "", func() { clock.Stop(&q.timer) })
}

// armAgain sets the timer if the clock has refused it.
func (q *WorkQueue[T]) armAgain() {
	if q.timer == nil && q.delayed.len() > 0 {
		_ = q.arm()
	}
}

// fire adds the items that are due. The clock calls it for the timer of that number,
// possibly after the timer was stopped and another was set: then nothing is due, and
// the other timer stays.
func (q *WorkQueue[T]) fire(no uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if no == q.timerNo {
		q.timer = nil
	}
	defer func() { _ = q.arm() }() // even if a function of the user ends the goroutine
	q.addDue(q.now())
}

// addDue adds the items whose time has come.
func (q *WorkQueue[T]) addDue(now time.Time) {
	for q.delayed.len() > 0 && !q.delayed.least().value.at.After(now) {
		q.add(q.popDelayed())
	}
}

// popDelayed removes the item with the earliest time.
func (q *WorkQueue[T]) popDelayed() T {
	earliest := q.delayed.least()
	q.delays.remove(earliest.value.item)
	q.delayed.remove(earliest)
	return earliest.value.item
}
