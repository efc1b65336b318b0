package queue

import (
	"context"
	"sync"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/usercode"
)

// DrainPolicy says what [WorkQueue.ShutDownWithDrain] does with items that are
// waiting for their time.
type DrainPolicy uint8

// The policies. The zero value loses nothing and does not wait.
const (
	// DrainNow queues them at once.
	DrainNow DrainPolicy = iota
	// DrainInTime lets them wait, and waits for them.
	DrainInTime
	// DrainWithout drops them.
	DrainWithout
)

// WorkQueueConfig says how a [WorkQueue] works. The zero value works: it cannot
// delay, though.
type WorkQueueConfig[T comparable] struct {
	// Clock is where the time comes from: an engine's Host.Clock(), or clock.Real().
	// It is needed for Limiter, Metrics and AddAfter.
	Clock clock.Clock
	// Limiter says how long AddRateLimited waits; see [NewDefaultRateLimiter].
	Limiter RateLimiter[T]
	// Metrics, if any, is called for what happens.
	Metrics WorkQueueMetrics
	// Drain says what draining does with delayed items.
	Drain DrainPolicy
}

func (c *WorkQueueConfig[T]) validate() error {
	switch {
	case c.Clock == nil && c.Limiter != nil:
		return &ConfigError{Field: "WorkQueueConfig.Clock", Problem: "is nil but there is a Limiter; set both or none"}
	case c.Clock == nil && c.Metrics != nil:
		return &ConfigError{Field: "WorkQueueConfig.Clock", Problem: "is nil but there are Metrics; set both or none"}
	case c.Drain > DrainWithout:
		return &ConfigError{Field: "WorkQueueConfig.Drain", Problem: "is none of the policies; use DrainNow, DrainInTime or DrainWithout"}
	}
	return nil
}

// WorkQueue is a queue of work to be done by any number of workers. An item that
// is added several times before a worker gets it is done once; one that is added
// while a worker has it is done again afterwards, so no two workers ever have
// the same item. Make one with [NewWorkQueue].
//
// It is safe for concurrent use. Only Get and ShutDownWithDrain block. It starts
// no goroutine: delays are calls that its clock makes. Items must be equal to
// themselves, which not-a-number is not.
type WorkQueue[T comparable] struct {
	cfg     WorkQueueConfig[T]
	mu      sync.Mutex
	some    sync.Cond // there is something to get, or nothing any more
	drained sync.Cond // the state of the shutdown changed
	meter   meter

	// An item that is to be done is in dirty, and besides either in queue or in
	// running; never in both.
	queue   ring[queuedWork[T]]
	dirty   map[T]struct{}
	running map[T]time.Time // since when

	delayed indexedHeap[delayedWork[T]]
	delays  map[T]*slot[delayedWork[T]]
	delayNo uint64      // numbers the delays, to keep the order of like times
	timer   clock.Timer // nil if none is set
	timerNo uint64      // distinguishes it from those before
	armed   time.Time   // what it is set for

	shutDown bool // nothing is added any more
	aborted  bool // ShutDown was called: draining does not wait for what is left
}

type queuedWork[T comparable] struct {
	item  T
	since time.Time
}

// NewWorkQueue returns an empty queue. The error is a [*ConfigError].
func NewWorkQueue[T comparable](cfg WorkQueueConfig[T]) (*WorkQueue[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	q := &WorkQueue[T]{
		cfg:     cfg,
		meter:   meter{metrics: cfg.Metrics},
		dirty:   make(map[T]struct{}),
		running: make(map[T]time.Time),
		delayed: indexedHeap[delayedWork[T]]{less: delayedWork[T].before},
		delays:  make(map[T]*slot[delayedWork[T]]),
	}
	q.some.L, q.drained.L = &q.mu, &q.mu
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
	return comparing(func() { q.add(item) })
}

// comparing calls f, which compares items, and returns the panic of an interface
// value that cannot be compared.
func comparing(f func()) error { return usercode.Call("comparing work items", "", f) }

// add marks item to be done, and queues it unless a worker has it.
func (q *WorkQueue[T]) add(item T) {
	if _, already := q.dirty[item]; already {
		return
	}
	q.dirty[item] = struct{}{}
	if _, busy := q.running[item]; !busy {
		q.push(item)
	}
	q.meter.call(func(m WorkQueueMetrics) { m.Added(q.queue.len()) })
}

func (q *WorkQueue[T]) push(item T) {
	q.queue.push(queuedWork[T]{item, q.now()})
	q.some.Signal()
}

// Get waits for an item and takes it out. The caller has to call Done with it
// when it is done. The errors are ctx's if ctx ends first, and [ErrShutDown]
// once the queue is shut down and no item will come any more.
func (q *WorkQueue[T]) Get(ctx context.Context) (item T, err error) {
	if err := ctx.Err(); err != nil {
		return item, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := await(ctx, &q.some, func() bool { return q.queue.len() > 0 || q.exhausted() }); err != nil {
		return item, err
	}
	if q.queue.len() == 0 {
		return item, ErrShutDown
	}
	next, now := q.queue.pop(), q.now()
	delete(q.dirty, next.item)
	q.running[next.item] = now
	q.meter.call(func(m WorkQueueMetrics) { m.Started(q.queue.len(), now.Sub(next.since)) })
	if q.exhausted() {
		q.some.Broadcast() // it was the last: no worker needs to wait any more
	}
	return next.item, nil
}

// Done says that the worker which got item is done with it. If it was added
// meanwhile it is queued again. An item that no worker has is ignored.
func (q *WorkQueue[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var began time.Time
	var busy bool
	_ = comparing(func() { began, busy = q.running[item] }) // no worker has an incomparable item
	if !busy {
		return
	}
	delete(q.running, item)
	took := q.now().Sub(began)
	q.meter.call(func(m WorkQueueMetrics) { m.Finished(took) })
	if _, again := q.dirty[item]; again {
		q.push(item)
	}
	q.drained.Broadcast()
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
	return q.cfg.Clock.Now()
}

// ShutDown refuses what comes from now on. What is queued can still be got; what
// is delayed is dropped and returned, in the order of its times. It does not
// wait, and ends the waiting of ShutDownWithDrain.
func (q *WorkQueue[T]) ShutDown() (dropped []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutDown, q.aborted = true, true
	dropped = q.dropDelayed()
	q.wakeIfShutDown()
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
	q.wakeIfShutDown()
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
		dropped = append(dropped, q.popDelayed())
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

// wakeIfShutDown wakes the workers and drains that wait for the end, if it may have
// come.
func (q *WorkQueue[T]) wakeIfShutDown() {
	if q.shutDown {
		q.some.Broadcast()
		q.drained.Broadcast()
	}
}

// WorkQueueMetrics counts what happens in a [WorkQueue]. The methods are called
// with the queue locked: they must be quick and must not use it. After one has
// panicked none is called any more; see WorkQueueStats. None is called after the
// queue was shut down and has nothing left to do.
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

// WorkQueueStats are the figures of a [WorkQueue].
type WorkQueueStats struct {
	// Queued, Running and Delayed are numbers of items: waiting for a worker,
	// with a worker, and waiting for their time.
	Queued, Running, Delayed int
	// Unfinished is how long the running items have been running, added up, and
	// Longest how long the oldest has. Zero without a clock.
	Unfinished, Longest time.Duration
	// MetricsErr is the panic that ended the calls of the metrics, as a
	// [*usercode.PanicError], or nil.
	MetricsErr error
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

// Stats returns the figures of now.
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
