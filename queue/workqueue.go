package queue

import (
	"context"
	"sync"
	"time"
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
	// Clock is where the time comes from. It is needed for Limiter, Metrics and
	// AddAfter.
	Clock Clock
	// Limiter says how long AddRateLimited waits; see [NewDefaultRateLimiter].
	Limiter RateLimiter[T]
	// Metrics, if any, is told what happens.
	Metrics WorkQueueMetrics
	// Drain says what draining does with delayed items.
	Drain DrainPolicy
}

func (c *WorkQueueConfig[T]) validate() error {
	switch {
	case c.Clock == nil && c.Limiter != nil:
		return &ConfigError{"WorkQueueConfig.Clock", "it is nil but there is a Limiter: set both or none"}
	case c.Clock == nil && c.Metrics != nil:
		return &ConfigError{"WorkQueueConfig.Clock", "it is nil but there are Metrics: set both or none"}
	case c.Drain > DrainWithout:
		return &ConfigError{"WorkQueueConfig.Drain", "it is none of the policies: use DrainNow, DrainInTime or DrainWithout"}
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
	queue   line[queuedWork[T]]
	dirty   map[T]struct{}
	running map[T]time.Time // since when

	delayed sifted[delayedWork[T]]
	delays  map[T]*slot[delayedWork[T]]
	delayNo uint64    // numbers the delays, to keep the order of like times
	timer   Timer     // nil if none is set
	timerNo uint64    // tells it from those before
	armed   time.Time // what it is set for

	shutDown bool // nothing is added any more
	aborted  bool // and nobody waits for what is left
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
		delayed: sifted[delayedWork[T]]{less: delayedWork[T].before},
		delays:  make(map[T]*slot[delayedWork[T]]),
	}
	q.some.L, q.drained.L = &q.mu, &q.mu
	return q, nil
}

// Add queues item, unless it is queued already. The error is [ErrShutDown], or a
// [*store.PanicError] if T is an interface and item cannot be compared.
func (q *WorkQueue[T]) Add(item T) (err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutDown {
		return ErrShutDown
	}
	defer recovered(&err)
	q.add(item)
	return nil
}

// add marks item to be done, and queues it unless a worker has it.
func (q *WorkQueue[T]) add(item T) {
	if _, already := q.dirty[item]; already {
		return
	}
	q.dirty[item] = struct{}{}
	if _, busy := q.running[item]; !busy {
		q.push(item)
	}
	q.meter.tell(func(m WorkQueueMetrics) { m.Added(q.queue.len()) })
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
	q.meter.tell(func(m WorkQueueMetrics) { m.Started(q.queue.len(), now.Sub(next.since)) })
	if q.exhausted() {
		q.some.Broadcast() // it was the last: the other workers may go
	}
	return next.item, nil
}

// Done says that the worker which got item is done with it. If it was added
// meanwhile it is queued again. An item that no worker has is ignored.
func (q *WorkQueue[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var incomparable error // no worker has such an item
	defer recovered(&incomparable)
	began, busy := q.running[item]
	if !busy {
		return
	}
	delete(q.running, item)
	took := q.now().Sub(began)
	q.meter.tell(func(m WorkQueueMetrics) { m.Finished(took) })
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
