package actors

import (
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	// maxBatch bounds how many tasks a worker takes per lock. With more the cost
	// of the lock no longer shows, and a slow task delays those of its batch.
	maxBatch = 16
	// maxShare bounds how many tasks of a group a worker runs in a row while
	// other groups have some: as many as an event takes hops through an engine.
	maxShare = 4
)

// The parts of [Pool].attention.
const (
	// yieldBit asks a worker to end its batch early, because a group waits that
	// has been idle.
	yieldBit = 1
	// markUnit counts one worker that is marked.
	markUnit = 2
)

// Pool is an [Executor] with a fixed number of workers. Almost all actors run
// on it: an idle actor then uses no goroutine, and a busy one runs on a
// goroutine whose stack has already grown.
//
// The actors below one child of a [System] are a group: those of one engine,
// for example. Each group has a first-in, first-out queue, and the workers serve
// the groups in turn, a few tasks at a time. A group that has been idle is
// served next: if all workers are busy, the first to end a turn leaves the rest
// of its batch for later. Tasks that are not the turn of an actor of the pool's
// system are one more group.
//
// A turn on a Pool must not block: as many blocked turns as there are workers
// stop everything, and each holds up to 15 others, of the same group, that its worker has taken
// with it. An actor that may block belongs on a [Blocking] executor. On
// the pool of a System, a turn that holds a worker for more than a second is
// reported: see [ErrWorkerHeld].
type Pool struct {
	workers []*worker
	// attention is 0 unless workers have something to do between turns: yieldBit,
	// and markUnit for each worker that is marked. They read it after every turn,
	// so it has a cache line apart from what every submission writes.
	attention atomic.Int32
	_         [64]byte

	mu        sync.Mutex
	groups    groupRing
	queued    int       // tasks of all groups
	parked    int       // workers waiting for work and not yet signalled
	work      sync.Cond // signalled once per parked worker to wake
	batches   uint64    // taken so far
	closed    bool      // workers leave when no task is left, nor a sender that may submit one
	left      int       // workers that have not left
	unwatched bool      // the next worker that gets tasks must arm the watchdog
	watchdog  watchdog
	ungrouped taskGroup
	asked     []askedTurn // those without a turn are free
	asking    int         // those with one

	running sync.WaitGroup
}

// NewPool starts a Pool of the given number of workers; zero or less means
// GOMAXPROCS. Close it to end them.
func NewPool(workers int) *Pool {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p := &Pool{workers: make([]*worker, workers), left: workers}
	p.work.L = &p.mu
	open := make(chan struct{})
	p.watchdog.overdue.Store(&open)
	p.running.Add(workers)
	for i := range p.workers {
		p.workers[i] = &worker{pool: p}
	}
	for _, w := range p.workers {
		go w.run()
	}
	return p
}

// Workers returns the number of workers.
func (p *Pool) Workers() int { return len(p.workers) }

// Throughput returns [DefaultThroughput].
func (p *Pool) Throughput() int { return DefaultThroughput }

// Submit queues t behind the other tasks of its group. Once Close has returned
// it does nothing.
func (p *Pool) Submit(t Task) {
	g := p.groupOf(t)
	p.mu.Lock()
	if p.left > 0 {
		g.tasks.push(t)
		p.queuedLocked(g, 1, 1)
	}
	p.mu.Unlock()
}

// SubmitAll queues the tasks, each behind the others of its group. It locks
// once for each run of tasks of one group, and wakes no more workers than they
// will occupy. Once Close has returned it does nothing.
func (p *Pool) SubmitAll(tasks []Task) {
	for len(tasks) > 0 {
		g, n := p.groupOf(tasks[0]), 1
		for n < len(tasks) && p.groupOf(tasks[n]) == g {
			n++
		}
		p.submitGroup(g, tasks[:n])
		tasks = tasks[n:]
	}
}

// submitGroup queues tasks of one group.
func (p *Pool) submitGroup(g *taskGroup, tasks []Task) {
	p.mu.Lock()
	if p.left > 0 {
		g.tasks.pushAll(tasks)
		p.queuedLocked(g, len(tasks), (len(tasks)+maxBatch-1)/maxBatch)
	}
	p.mu.Unlock()
}

// Close lets the workers finish what is queued, including turns that those
// turns submit, or that senders run in [Ref.Ask], and waits until the last has ended. Calling it again
// waits too. It must not be called from a turn on this pool, since it would
// wait for that turn.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.work.Broadcast()
	p.parked = 0
	p.mu.Unlock()
	p.running.Wait()
	p.stopWatchdog()
}

// groupOf returns the group that t belongs to in this pool.
func (p *Pool) groupOf(t Task) *taskGroup {
	if m, ok := t.(*mailbox); ok {
		return p.own(m.spec.group)
	}
	return &p.ungrouped
}

// own returns g, or the ungrouped tasks if g is not a group of this pool.
func (p *Pool) own(g *taskGroup) *taskGroup {
	if g != nil && g.pool == p {
		return g
	}
	return &p.ungrouped
}

// queuedLocked counts n tasks that were queued for g, and wakes that many of the parked
// workers for them. If g has been idle and none is parked, a busy one is to yield.
func (p *Pool) queuedLocked(g *taskGroup, n, workers int) {
	if p.queued == 0 {
		p.groups.restart(g)
	}
	p.queued += n
	if p.groups.add(g) && p.parked == 0 {
		p.attention.Or(yieldBit)
	}
	p.wakeLocked(workers)
}

// wakeLocked wakes at most n parked workers. The caller, not the woken worker,
// takes them off the count, so that a burst of submissions wakes each worker
// once.
func (p *Pool) wakeLocked(n int) {
	for ; n > 0 && p.parked > 0; n-- {
		p.parked--
		p.work.Signal()
	}
}

// worker is one goroutine of the pool. The pool's lock guards what a check reads:
// batch, n, serial and checks.
type worker struct {
	pool    *Pool
	group   *taskGroup // of the last batch
	share   int        // tasks of the group that may still run before another group's
	batch   [maxBatch]Task
	next, n int    // batch[next:n] are still to run; n is 0 while it has no batch
	used    int    // batch[:used] may hold tasks
	serial  uint64 // of the batch
	checks  int    // how many have found the mark
	retired bool
	// marked is set by a check and cleared at the end of a turn.
	marked atomic.Bool
}

// run is the body of the worker's goroutine.
func (w *worker) run() {
	defer w.leave()
	for w.take() {
		w.runBatch()
	}
}

// take takes the next batch, waiting for one; false means that the pool is
// closed and empty.
func (w *worker) take() bool {
	p := w.pool
	p.mu.Lock()
	w.endBatchLocked()
	for p.queued == 0 {
		if p.closed && p.asking == 0 {
			p.left--
			w.retired = true
			p.mu.Unlock()
			return false
		}
		clear(w.batch[:w.used])
		w.used = 0
		p.parked++
		p.work.Wait()
	}
	w.chooseLocked()
	w.fillLocked()
	if p.queued > 0 {
		p.wakeLocked(1)
	}
	p.watchAndUnlock()
	return true
}

// endBatchLocked gives what is left of the batch back to its group.
func (w *worker) endBatchLocked() {
	if rest := w.batch[w.next:w.n]; len(rest) > 0 {
		w.group.tasks.pushFront(rest)
		w.pool.queued += len(rest)
		w.pool.groups.addLast(w.group)
	}
	w.next, w.n = 0, 0
	w.unmark()
}

// chooseLocked chooses the group to serve: that of the last batch until its
// share is used up, if it has more to do and no group waits that has been idle.
func (w *worker) chooseLocked() {
	p := w.pool
	idled := p.attention.Load()&yieldBit != 0
	if w.share > 0 && !idled && w.group.tasks.n > 0 {
		return
	}
	if idled {
		p.attention.And(^yieldBit)
	}
	w.group, w.share = p.groups.take(), maxShare
}

// fillLocked takes tasks of the chosen group, and leaves the other workers
// theirs.
func (w *worker) fillLocked() {
	p, tasks := w.pool, &w.group.tasks
	w.n = 1
	if tasks.n > 1 {
		w.n = min(maxBatch, (tasks.n+len(p.workers)-1)/len(p.workers))
	}
	if p.groups.shared() {
		w.n = min(w.n, w.share)
		w.share -= w.n
	}
	for i := range w.n {
		w.batch[i] = tasks.pop()
	}
	w.used = max(w.used, w.n)
	p.queued -= w.n
	p.batches++
	w.serial = p.batches
}

// runBatch runs the batch, or as much of it as there is until a group waits that
// has been idle.
func (w *worker) runBatch() {
	attention := &w.pool.attention
	for w.next < w.n {
		t := w.batch[w.next]
		w.next++
		t.RunTurn()
		if a := attention.Load(); a != 0 {
			w.unmark()
			if a&yieldBit != 0 {
				return
			}
		}
	}
}

// unmark removes the mark of the watchdog, if there is one.
func (w *worker) unmark() {
	if w.marked.Load() {
		w.marked.Store(false)
		w.pool.attention.Add(-markUnit)
	}
}

// leave ends the goroutine. If a turn ended it (runtime.Goexit, as from t.FailNow
// in user code), another takes over.
func (w *worker) leave() {
	if w.retired {
		w.pool.running.Done()
		return
	}
	go w.run()
}
