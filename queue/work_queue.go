package queue

import (
	"context"
	"sync"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/usercode"
)

// DrainPolicy is what [WorkQueue.ShutDownWithDrain] does with delayed items.
type DrainPolicy uint8

// The policies. The zero value drops nothing and does not wait.
const (
	// DrainNow queues them at once.
	DrainNow DrainPolicy = iota
	// DrainInTime waits for their delays.
	DrainInTime
	// DrainWithout drops them.
	DrainWithout
)

// WorkQueueConfig says how a [WorkQueue] works. The zero value is valid, without
// delays.
type WorkQueueConfig[T comparable] struct {
	// Clock is the source of time: an engine's Host.Clock(), or clock.Real(). Limiter,
	// Metrics and AddAfter need it.
	Clock clock.Clock
	// Limiter determines the delays of AddRateLimited; see [NewDefaultRateLimiter].
	Limiter RateLimiter[T]
	// Metrics, if any, counts what happens.
	Metrics WorkQueueMetrics
	// Drain is what draining does with delayed items.
	Drain DrainPolicy
	// OnReady, if any, is called for each item that TryGet can get from now on. It is
	// called with the queue locked: it must be quick and must not use it. After a panic it
	// is called for later items nevertheless; see WorkQueueStats.
	OnReady func()
}

func (c *WorkQueueConfig[T]) validate() error {
	switch {
	case c.Clock == nil && c.Limiter != nil:
		return &ConfigError{Field: "WorkQueueConfig.Clock", Problem: "is nil but there is a Limiter; set both or none"}
	case c.Clock == nil && c.Metrics != nil:
		return &ConfigError{Field: "WorkQueueConfig.Clock", Problem: "is nil but there are Metrics; set both or none"}
	case c.Drain > DrainWithout:
		return &ConfigError{Field: "WorkQueueConfig.Drain", Problem: "is not one of the policies; use DrainNow, DrainInTime or DrainWithout"}
	}
	return nil
}

// WorkQueue is a queue of items for any number of workers. An item that is added
// several times before a worker gets it is processed once; one that is added while a
// worker has it is processed again afterwards, so that two workers never have the same
// item. Make one with [NewWorkQueue].
//
// It is safe for concurrent use. Only Get and ShutDownWithDrain block. It starts no
// goroutine: delays are timers of its clock. Items must be equal to themselves, unlike
// NaN.
type WorkQueue[T comparable] struct {
	cfg     WorkQueueConfig[T]
	mu      sync.Mutex
	ready   sync.Cond // there is an item to get, or there will be none any more
	drained sync.Cond // the state of the shutdown changed
	meter   meter
	// readyErr is the last panic of OnReady.
	readyErr error

	// An item that must be processed is in dirty, and either in queue or in running,
	// never in both.
	queue   ring[T]
	dirty   burstMap[T, time.Time] // since when
	running burstMap[T, time.Time] // since when

	delayed indexedHeap[delayedWork[T]]
	delays  burstMap[T, *slot[delayedWork[T]]]
	delayNo uint64      // numbers the delays, to keep the order of equal times
	timer   clock.Timer // nil if none is set
	timerNo uint64      // distinguishes it from earlier ones
	armed   time.Time   // the time it is set for
	latest  time.Time   // when the clock was last read

	shutDown bool // nothing can be added
	aborted  bool // ShutDown was called: draining does not wait
}

// NewWorkQueue returns an empty queue. The error is a [*ConfigError].
func NewWorkQueue[T comparable](cfg WorkQueueConfig[T]) (*WorkQueue[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	q := &WorkQueue[T]{
		cfg:     cfg,
		meter:   meter{metrics: cfg.Metrics},
		delayed: indexedHeap[delayedWork[T]]{less: delayedWork[T].before},
	}
	q.ready.L, q.drained.L = &q.mu, &q.mu
	return q, nil
}

// Add queues item, unless it is queued already. The error is [ErrShutDown], or a
// [*usercode.PanicError] if T is an interface and item cannot be compared.
func (q *WorkQueue[T]) Add(item T) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutDown {
		return ErrShutDown
	}
	q.armAgain()
	return comparing(func() { q.add(item) })
}

// comparing calls f, which compares items, and returns the panic for an interface value
// that cannot be compared.
func comparing(f func()) error { return usercode.Call("comparing work items", "", f) }

// add marks item dirty, and queues it unless a worker has it.
func (q *WorkQueue[T]) add(item T) {
	if _, already := q.dirty.entries[item]; already {
		return
	}
	q.dirty.put(item, q.now())
	if _, busy := q.running.entries[item]; !busy {
		q.push(item)
	}
	q.meter.call(func(m WorkQueueMetrics) { m.Added(len(q.dirty.entries)) })
}

func (q *WorkQueue[T]) push(item T) {
	q.queue.push(item)
	q.ready.Signal()
	if q.cfg.OnReady == nil {
		return
	}
	if err := usercode.Call("WorkQueueConfig.OnReady", "", q.cfg.OnReady); err != nil {
		q.readyErr = err
	}
}

// Get waits for an item and removes it. The caller must call Done with the item when it
// has processed it. The errors are ctx's cause if ctx ends first, and [ErrShutDown] once the
// queue is shut down and no item will come any more.
func (q *WorkQueue[T]) Get(ctx context.Context) (item T, err error) {
	if err := context.Cause(ctx); err != nil {
		return item, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := await(ctx, &q.ready, func() bool { return q.queue.len() > 0 || q.exhausted() }); err != nil {
		return item, err
	}
	if q.queue.len() == 0 {
		return item, ErrShutDown
	}
	return q.take(), nil
}

// TryGet is Get that does not wait: ok is false if there is no item now.
func (q *WorkQueue[T]) TryGet() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue.len() == 0 {
		return item, false
	}
	return q.take(), true
}

// take gives the first item to a worker. It calls the user's functions before it changes
// anything, since they may end the goroutine: then another worker gets the item.
func (q *WorkQueue[T]) take() T {
	taken := false
	defer func() {
		if !taken {
			q.ready.Signal()
		}
	}()
	next, now := q.queue.first(), q.now()
	waited := elapsed(q.dirty.entries[next], now)
	q.meter.call(func(m WorkQueueMetrics) { m.Started(len(q.dirty.entries)-1, waited) })
	taken = true
	q.queue.drop(1)
	q.dirty.remove(next)
	q.running.put(next, now)
	if q.exhausted() {
		q.ready.Broadcast() // no worker needs to wait any more
	}
	return next
}

// Done says that a worker has processed item. If it was added meanwhile it is queued
// again. An item that no worker has is ignored.
func (q *WorkQueue[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var began time.Time
	var busy bool
	_ = comparing(func() { began, busy = q.running.entries[item] }) // no worker has an incomparable item
	if !busy {
		return
	}
	q.running.remove(item)
	q.armAgain()
	q.drained.Broadcast()
	// The user's functions come last, since they may end the goroutine.
	took := elapsed(began, q.now())
	defer q.meter.call(func(m WorkQueueMetrics) { m.Finished(took) })
	if _, again := q.dirty.entries[item]; again {
		q.push(item)
	}
}

// Len returns the number of items that wait for a worker.
func (q *WorkQueue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue.len()
}

// now returns the time, or zero without a clock.
func (q *WorkQueue[T]) now() time.Time {
	if q.cfg.Clock == nil {
		return time.Time{}
	}
	return q.readClock()
}

// elapsed returns how long after began now is, zero if the clock was set back meanwhile.
func elapsed(began, now time.Time) time.Duration { return max(now.Sub(began), 0) }

// readClock reads the clock, which may be the user's: if it panics, the time is what it
// was, so that no item is lost halfway from one state to the next.
func (q *WorkQueue[T]) readClock() time.Time {
	_ = usercode.Call("Clock.Now", "", func() { q.latest = q.cfg.Clock.Now() })
	return q.latest
}

// ShutDown makes all later additions fail. Workers can still get the queued items; the
// delayed ones are dropped and returned, in the order of their times. It does not wait,
// and makes ShutDownWithDrain return.
func (q *WorkQueue[T]) ShutDown() (dropped []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutDown, q.aborted = true, true
	q.wakeAll() // first, since the clock may end the goroutine; they wait for the lock
	return q.dropDelayed()
}

// ShutDownWithDrain makes all later additions fail and waits until all earlier items
// are processed: queued items, items that workers have, items added again meanwhile and,
// if the queue's [DrainPolicy] says so, delayed items. Workers must go on until Get
// returns [ErrShutDown].
//
// The errors are ctx's cause if ctx ends first, and [ErrShutDown] if ShutDown was called;
// there may be items left then. The queue stays shut down, and another call waits
// again.
func (q *WorkQueue[T]) ShutDownWithDrain(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutDown = true
	q.wakeAll() // first, as in ShutDown
	switch q.cfg.Drain {
	case DrainNow:
		for q.delayed.len() > 0 {
			q.add(q.popDelayed())
		}
		_ = q.arm()
	case DrainWithout:
		q.dropDelayed()
	case DrainInTime:
		q.armAgain() // nothing else may come that would
	}
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

// dropDelayed removes all delayed items.
func (q *WorkQueue[T]) dropDelayed() (dropped []T) {
	for q.delayed.len() > 0 {
		dropped = append(dropped, q.popDelayed())
	}
	_ = q.arm()
	return dropped
}

// exhausted reports whether no item will be queued any more.
func (q *WorkQueue[T]) exhausted() bool {
	return q.shutDown && len(q.dirty.entries) == 0 && q.delayed.len() == 0
}

// idle reports whether there is nothing left to do.
func (q *WorkQueue[T]) idle() bool { return q.exhausted() && len(q.running.entries) == 0 }

// wakeAll lets the calls that wait see that the queue was shut down.
func (q *WorkQueue[T]) wakeAll() {
	q.ready.Broadcast()
	q.drained.Broadcast()
}

// WorkQueueMetrics counts what happens in a [WorkQueue]. The methods are called
// with the queue locked: they must be quick and must not use it. After a panic none is
// called any more; see WorkQueueStats. None is called after the queue was shut down and
// has nothing left to do.
//
// A depth is the number of items that are to be processed. As in client-go, and unlike in
// Len, those are among them that were added again while a worker has them.
//
// It may gain methods. An implementation embeds [NoWorkQueueMetrics], which will have them, too.
type WorkQueueMetrics interface {
	// Added: an item was added, and is one of depth now.
	Added(depth int)
	// Started: an item went to a worker after it had waited since it was added; depth
	// items are left.
	Started(depth int, waited time.Duration)
	// Finished: a worker has processed an item, which took so long.
	Finished(took time.Duration)
	// Retried: an item was added with a delay.
	Retried()

	embedsNoWorkQueueMetrics()
}

// NoWorkQueueMetrics is the [WorkQueueMetrics] that counts nothing. An implementation embeds it,
// and has methods for what it counts.
type NoWorkQueueMetrics struct{}

// Added does nothing.
func (NoWorkQueueMetrics) Added(int) {}

// Started does nothing.
func (NoWorkQueueMetrics) Started(int, time.Duration) {}

// Finished does nothing.
func (NoWorkQueueMetrics) Finished(time.Duration) {}

// Retried does nothing.
func (NoWorkQueueMetrics) Retried() {}

func (NoWorkQueueMetrics) embedsNoWorkQueueMetrics() {}

// WorkQueueStats are the statistics of a [WorkQueue].
type WorkQueueStats struct {
	// Queued, Running and Delayed are numbers of items: that wait for a worker, that
	// workers have, and that wait for their delay.
	Queued, Running, Delayed int
	// Unfinished is the sum of the times that the running items have been running, and
	// Longest the longest of them. Both are zero without a clock.
	Unfinished, Longest time.Duration
	// MetricsErr is the panic that ended the calls of the metrics, as a
	// [*usercode.PanicError], or nil.
	MetricsErr error
	// ReadyErr is the last panic of OnReady, as a [*usercode.PanicError], or nil.
	ReadyErr error
}

// meter calls the metrics, if there are any, and contains their panics.
type meter struct {
	metrics WorkQueueMetrics
	err     error
}

func (m *meter) call(method func(WorkQueueMetrics)) {
	if m.metrics == nil || m.err != nil {
		return
	}
	m.err = usercode.Call("WorkQueueMetrics", "", func() { method(m.metrics) })
}

// Stats returns the current statistics.
func (q *WorkQueue[T]) Stats() WorkQueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := WorkQueueStats{
		Queued: q.queue.len(), Running: len(q.running.entries), Delayed: q.delayed.len(),
		MetricsErr: q.meter.err, ReadyErr: q.readyErr,
	}
	now := q.now()
	for _, began := range q.running.entries {
		s.Unfinished += elapsed(began, now)
		s.Longest = max(s.Longest, elapsed(began, now))
	}
	return s
}
