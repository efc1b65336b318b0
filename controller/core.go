package controller

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/internal/ownhost"
	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/usercode"
)

// core is the untyped [Controller].
type core struct {
	cfg     settings
	host    *engine.Host
	ownHost *ownhost.Host
	queue   *queue.WorkQueue[string]
	handler *informer.Registration // nil if the controller failed to start
	// ownInformer is closed with the controller; nil if it was given.
	ownInformer ownInformer

	life    context.Context
	cancel  context.CancelCauseFunc
	root    *actors.Ref[none]
	stopped chan struct{} // closed when all workers have stopped
	workers []atomic.Pointer[worker]

	reconciled, failed, givenUp atomic.Uint64
	closing                     sync.Once
	stoppedOnce                 sync.Once
	// begun wakes the workers when the informer has synced.
	begun sync.Once

	mu sync.Mutex
	// running are the keys that are being reconciled.
	running map[string]struct{}
	// attempts counts the calls in a row that have failed, by key; nil if none has, so that
	// the memory of an outage, in which each fails, is released.
	attempts map[string]int
	// rested is closed when a worker finds nothing to do; nil until it is asked for.
	rested chan struct{}
}

func newCore(cfg settings, host *engine.Host) (controllerCore, error) {
	c := &core{
		cfg: cfg, stopped: make(chan struct{}),
		workers: make([]atomic.Pointer[worker], cfg.workers), running: make(map[string]struct{}),
	}
	c.life, c.cancel = context.WithCancelCause(context.Background())
	var err error
	if c.host, c.ownHost, err = ownhost.Of(host); err != nil {
		return nil, err
	}
	queueConfig := queue.WorkQueueConfig[string]{Clock: c.host.Clock(), Limiter: cfg.limiter, OnReady: c.wakeIdle}
	if cfg.metrics != nil {
		queueConfig.Metrics = queueMetrics{of: cfg.metrics, controller: cfg.name}
	}
	if c.queue, err = queue.NewWorkQueue(queueConfig); err != nil {
		_ = c.ownHost.Close() // nothing runs on it
	}
	return c, err
}

// start starts the workers. The informer is nil if it is not the controller's own.
func (c *core) start(of ownInformer) {
	c.ownInformer = of
	c.root = actors.Spawn(engine.SystemOf(c.host), "controller "+c.cfg.name, func() actors.Behavior[none] {
		return &root{c}
	}, actors.Options{})
	if !c.root.Tell(none{}) {
		c.actorsGone()
	}
}

func (c *core) hostOf() *engine.Host { return c.host }

func (c *core) name() string { return c.cfg.name }

// setHandler is given the handler that adds keys, nil if the informer has refused it.
func (c *core) setHandler(handler *informer.Registration) { c.handler = handler }

// handlerDone returns a channel that is closed when the handler gets no more changes.
func (c *core) handlerDone() <-chan struct{} { return c.handler.Done() }

// handlerErr returns the handler's last panic, or why it has ended.
func (c *core) handlerErr() error { return c.handler.Err() }

// closeReason returns why the controller has been closed, nil if it has not been.
func (c *core) closeReason() error { return context.Cause(c.life) }

// beginAt has the workers begin at the signal. On a deterministic host a goroutine would be out
// of order: there the first change and settle begin.
func (c *core) beginAt(synced <-chan struct{}) {
	if c.host.Deterministic() {
		return
	}
	go func() {
		select {
		case <-synced:
			c.begin()
		case <-c.stopped:
		}
	}()
}

// begin has the workers reconcile what was queued before the informer has synced.
func (c *core) begin() { c.begun.Do(c.wakeIdle) }

// enqueue adds keys; a handler of the informer calls it.
func (c *core) enqueue(keys []string) {
	for _, key := range keys {
		_ = c.queue.Add(key) // fails only after Close
	}
	c.begin()
}

func (c *core) add(key string, delay time.Duration) error {
	var err error
	if delay > 0 {
		err = c.queue.AddAfter(key, delay)
	} else {
		err = c.queue.Add(key) // which the metrics do not count as a delay
	}
	if errors.Is(err, queue.ErrShutDown) {
		return ErrClosed
	}
	return err
}

// wakeIdle wakes one idle worker, if there is one. Busy workers check the queue after
// their call, and a worker that takes a key wakes another while there are more.
func (c *core) wakeIdle() {
	for i := range c.workers {
		if w := c.workers[i].Load(); w != nil && !w.busy.Load() {
			w.box.Wake()
			return
		}
	}
}

// reconcile reconciles a key that was taken from the queue.
func (c *core) reconcile(key string) {
	c.began(key)
	var began time.Time
	var result Result
	err := usercode.ErrGoexit // unless the call returns
	defer c.queue.Done(key)   // even if OnError or the limiter ends the goroutine
	defer func() {
		c.returned(key)
		err := c.finish(key, result, err)
		c.measure(began, Call{Key: key, RequeueAfter: result.RequeueAfter, Err: err})
	}()
	began = c.now()
	failed := usercode.Call("Reconcile", key, func() { result, err = c.cfg.reconcile(c.life, key) })
	if failed != nil {
		err = failed
	}
}

func (c *core) began(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[key] = struct{}{}
}

func (c *core) returned(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, key)
}

// finish counts a call that has returned, and decides when the key is reconciled again. It returns
// the error that the call is reported with.
func (c *core) finish(key string, result Result, err error) error {
	switch {
	case err == nil:
		c.reconciled.Add(1)
		if result.RequeueAfter > 0 {
			_ = c.queue.AddAfter(key, result.RequeueAfter)
		}
		c.forget(key)
		return nil
	case c.life.Err() != nil && !errors.Is(err, usercode.ErrPanic) && !errors.Is(err, usercode.ErrGoexit):
		// The controller is being closed, which is why the call failed. It is not the reason for a panic.
		return ErrClosed
	default:
		return c.fail(key, err)
	}
}

// fail reports an error, and schedules another try of the key unless it is given up.
func (c *core) fail(key string, err error) *ReconcileError {
	c.failed.Add(1)
	failure := &ReconcileError{Controller: c.cfg.name, Key: key, Attempts: c.count(key), Err: err}
	tooOften := c.cfg.maxAttempts > 0 && failure.Attempts >= c.cfg.maxAttempts
	if failure.GivenUp = tooOften || c.life.Err() != nil; failure.GivenUp {
		c.givenUp.Add(1)
		c.forget(key)
	} else {
		failure.RetryAfter = c.retry(key)
	}
	logger := engine.SystemOf(c.host).Logger()
	message, about := failure.logged()
	logger.Warn(message, about...)
	if panicked := usercode.Call("Config.OnError", key, func() { c.cfg.onError(failure) }); panicked != nil {
		logger.Error("OnError failed", "reason", panicked, "error", failure)
	}
	return failure
}

// count counts a failed call for key and returns how many have failed in a row.
func (c *core) count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attempts == nil {
		c.attempts = make(map[string]int)
	}
	c.attempts[key]++
	return c.attempts[key]
}

// forget resets the counts of the limiter and of failed calls for key.
func (c *core) forget(key string) {
	c.forgetAttempts(key)
	if panicked := usercode.Call("RateLimiter.Forget", key, func() { c.queue.Forget(key) }); panicked != nil {
		engine.SystemOf(c.host).Logger().Error("limiter failed", "controller", c.cfg.name, "reason", panicked)
	}
}

func (c *core) forgetAttempts(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.attempts, key)
	if len(c.attempts) == 0 {
		c.attempts = nil
	}
}

// retry schedules another try of the key after the limiter's delay, which it returns: a second
// if the limiter panics or ends the goroutine.
func (c *core) retry(key string) (wait time.Duration) {
	wait = time.Second
	defer func() { _ = c.queue.AddAfter(key, wait) }()
	if panicked := usercode.Call("RateLimiter.When", key, func() { wait = c.cfg.limiter.When(key, c.host.Clock().Now()) }); panicked != nil {
		engine.SystemOf(c.host).Logger().Error("limiter failed", "controller", c.cfg.name, "reason", panicked)
	}
	return wait
}

// settle waits until no key is queued or being reconciled, or the controller is closed. The
// informer has synced.
func (c *core) settle(ctx context.Context) error {
	c.begin()
	if c.host.Deterministic() {
		err := c.host.Await(ctx, nil)
		if errors.Is(err, engine.ErrIdle) {
			return context.Cause(c.life)
		}
		return err
	}
	for {
		if c.life.Err() != nil {
			return context.Cause(c.life)
		}
		rested := c.nextRest()
		if c.caughtUp() && c.resting() {
			return nil
		}
		// Nothing signals that the handler has caught up, so that is polled, by the real time:
		// the host's may stand still.
		timer := clock.Real().AfterFunc(time.Millisecond, c.rest)
		err := c.host.Await(ctx, rested)
		timer.Stop()
		if err != nil {
			return err
		}
	}
}

// caughtUp reports whether the handler has handled everything that has arrived, or has ended.
func (c *core) caughtUp() bool {
	select {
	case <-c.handler.Done():
		return true
	default:
		return c.handler.HasSynced() && c.handler.Lag() == 0
	}
}

// resting reports whether no key is queued or being reconciled. Only after caughtUp does that
// include all that has arrived.
func (c *core) resting() bool {
	s := c.queue.Stats()
	return s.Queued == 0 && s.Running == 0
}

// nextRest returns a channel that is closed at the next rest.
func (c *core) nextRest() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rested == nil {
		c.rested = make(chan struct{})
	}
	return c.rested
}

// rest makes settle check again.
func (c *core) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rested != nil {
		close(c.rested)
		c.rested = nil
	}
}

func (c *core) stats() Stats {
	return Stats{
		Queue: c.queue.Stats(), Workers: c.cfg.workers, Lag: c.handler.Lag(), Reconciled: c.reconciled.Load(), Failed: c.failed.Load(), GivenUp: c.givenUp.Load(),
	}
}
