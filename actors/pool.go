package actors

import (
	"runtime"
	"sync"
)

// maxGrab bounds how many tasks a worker takes per lock. Beyond a few, the lock
// no longer shows; and a task that is slow delays the ones grabbed with it.
const maxGrab = 16

// Pool is an [Executor] with a fixed number of workers and one first-in,
// first-out queue. It is where almost all actors run: an idle actor then costs
// no goroutine, and a busy one finds a goroutine whose stack has already grown.
//
// A turn on a Pool must not block: as many blocked turns as there are workers
// stop everything. What may block belongs on a [Blocking] executor.
type Pool struct {
	workers int

	mu     sync.Mutex
	queue  taskQueue
	parked int       // workers waiting for work and not yet told of any
	work   sync.Cond // signalled once per parked worker to wake
	closed bool      // workers leave when the queue is empty
	left   int       // workers that have not left

	running sync.WaitGroup
}

// NewPool starts a Pool of the given number of workers; zero or less means
// GOMAXPROCS. Close it to end them.
func NewPool(workers int) *Pool {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p := &Pool{workers: workers, left: workers}
	p.work.L = &p.mu
	p.running.Add(workers)
	for range workers {
		go p.runWorker()
	}
	return p
}

// Workers returns the number of workers.
func (p *Pool) Workers() int { return p.workers }

// Throughput returns [DefaultThroughput].
func (p *Pool) Throughput() int { return DefaultThroughput }

// Submit queues t behind all others. Once Close has returned it does nothing.
func (p *Pool) Submit(t Task) {
	p.mu.Lock()
	if p.left > 0 {
		p.queue.push(t)
		p.wakeLocked(1)
	}
	p.mu.Unlock()
}

// SubmitAll queues the tasks behind all others under one lock, and wakes no
// more workers than the tasks will occupy. Once Close has returned it does
// nothing.
func (p *Pool) SubmitAll(tasks []Task) {
	if len(tasks) == 0 {
		return
	}
	p.mu.Lock()
	if p.left > 0 {
		p.queue.pushAll(tasks)
		p.wakeLocked((len(tasks) + maxGrab - 1) / maxGrab)
	}
	p.mu.Unlock()
}

// Close lets the workers finish what is queued, including turns that those
// turns submit, and waits until the last has ended. Calling it again waits
// too. It must not be called from a turn on this pool, which it would wait for.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.work.Broadcast()
	p.parked = 0
	p.mu.Unlock()
	p.running.Wait()
}

// wakeLocked wakes at most n parked workers. The waker, not the woken, takes
// them off the count, so that a burst of submissions wakes each worker once.
func (p *Pool) wakeLocked(n int) {
	for ; n > 0 && p.parked > 0; n-- {
		p.parked--
		p.work.Signal()
	}
}

// runWorker is the life of one worker.
func (p *Pool) runWorker() {
	w := worker{pool: p}
	defer w.leave()
	for w.grab() {
		w.run()
	}
}

// worker is what one goroutine of the pool has in hand.
type worker struct {
	pool    *Pool
	grabbed [maxGrab]Task
	next, n int // grabbed[next:n] are still to run
	retired bool
}

// grab takes the next tasks, waiting for some; false means that the pool is
// closed and empty. It leaves the other workers their share.
func (w *worker) grab() bool {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.queue.len() == 0 {
		if p.closed {
			p.left--
			w.retired = true
			return false
		}
		p.parked++
		p.work.Wait()
	}
	w.next, w.n = 0, min(maxGrab, (p.queue.len()+p.workers-1)/p.workers)
	for i := range w.n {
		w.grabbed[i] = p.queue.pop()
	}
	if p.queue.len() > 0 {
		p.wakeLocked(1)
	}
	return true
}

func (w *worker) run() {
	for w.next < w.n {
		t := w.grabbed[w.next]
		w.grabbed[w.next] = nil
		w.next++
		t.RunTurn()
	}
}

// leave ends the worker. If a turn ended its goroutine (runtime.Goexit, as from
// t.FailNow in user code), another takes its place and what it had in hand
// goes back to the queue.
func (w *worker) leave() {
	if !w.retired {
		w.pool.SubmitAll(w.grabbed[w.next:w.n])
		go w.pool.runWorker()
		return
	}
	w.pool.running.Done()
}
