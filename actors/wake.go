package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// WakeBox is the mailbox of a wake actor. It is meant to be embedded by value
// in the Waker, so that the two are one allocation. The zero value is ready for
// [SpawnWake]; it must not be copied. Its methods are safe for concurrent use,
// never block, and do nothing before the spawn and after the stop.
type WakeBox struct {
	cell
	waker Waker
	// previous and next are siblings. They belong to the parent's turns.
	previous, next *WakeBox
}

// SpawnWake starts a wake actor with the given mailbox under parent; it must be
// called in a turn of parent. Nil exec means the system's [System.Pool].
//
// An idle wake actor uses no goroutine, and no memory but its WakeBox
// (BenchmarkIdleWakeActor).
//
// Errors: [ErrSpawned] if the box was used before, [ErrStopping] if the parent
// takes no children any more, [ErrNoChildren] if it is a wake actor itself.
func SpawnWake(parent *Context, w Waker, box *WakeBox, exec Executor) error {
	c := parent.cell()
	if c.is(noNewChildren) {
		return ErrStopping
	}
	q, ok := c.body.(*queueBody)
	if !ok {
		return ErrNoChildren
	}
	if !box.state.CompareAndSwap(0, scheduled) {
		return ErrSpawned
	}
	if exec == nil {
		exec = c.spec.system.Pool()
	}
	if q.wakers == nil {
		q.wakers = newWakeChildren(q)
	}
	box.waker = w
	box.id, box.spec, box.body = c.spec.system.nextID(), q.wakers.specFor(exec), (*wakeBody)(box)
	q.wakers.add(box)
	box.state.Or(spawned) // last, since the box may be in use in other goroutines
	if _, ok := w.(Starter); ok {
		box.post(startMessage)
	}
	box.endTurn() // submits it if there is something to do already
	return nil
}

// ID returns the actor's ID; zero before the spawn.
func (b *WakeBox) ID() ID {
	if !b.is(spawned) {
		return 0
	}
	return b.id
}

// Wake causes a call of Woken. Any number of wakes before that call are one; a
// wake during the call causes another one.
func (b *WakeBox) Wake() { b.wake() }

// Stop tells the actor to stop, when Woken has returned if it is running.
// Calling it again does nothing.
func (b *WakeBox) Stop() {
	if b.is(spawned) && !b.is(stopping) {
		b.post(stopMessage)
	}
}

// Alive reports whether the actor was spawned and has neither stopped nor begun
// to.
func (b *WakeBox) Alive() bool {
	return b.is(spawned) && !b.is(stopping|dead)
}

// Running reports whether the actor is in a turn, as when its Woken has not returned.
func (b *WakeBox) Running() bool { return b.is(running) }

// WakeAll wakes all the boxes, which must have been spawned on exec, in order.
// For many boxes it costs a fraction of waking each: it submits them in
// batches. It does not allocate in steady state.
func WakeAll(exec Executor, boxes []*WakeBox) {
	batch := wakeBatches.Get().(*wakeBatch)
	for _, b := range boxes {
		if !b.markWork() {
			continue
		}
		if g := b.spec.group; g != batch.group || batch.n == len(batch.tasks) {
			batch.submit(exec)
			batch.group = g
		}
		batch.tasks[batch.n] = (*mailbox)(&b.cell)
		batch.n++
	}
	batch.submit(exec)
	clear(batch.tasks[:batch.used])
	batch.used = 0
	wakeBatches.Put(batch)
}

// wakeBatch is tasks of one group that are submitted at once. There are enough
// to make the cost of the executor's lock negligible, and few enough to let
// workers start early.
type wakeBatch struct {
	group *taskGroup
	n     int
	used  int // tasks[:used] may hold tasks
	tasks [256]Task
}

// wakeBatches are reused by calls of WakeAll.
var wakeBatches = sync.Pool{New: func() any { return new(wakeBatch) }}

// submit submits the tasks in the batch, if any.
func (b *wakeBatch) submit(exec Executor) {
	if b.n == 0 {
		return
	}
	tasks := b.tasks[:b.n]
	b.used, b.n = max(b.used, b.n), 0
	if pool, ok := exec.(*Pool); ok {
		pool.submitGroup(pool.own(b.group), tasks)
	} else {
		exec.SubmitAll(tasks)
	}
}

// wakeBody is a WakeBox as its cell sees it.
type wakeBody WakeBox

func (b *wakeBody) work(int) (more bool) {
	var done bool
	defer contain(&done, b.fail)
	more = b.waker.Woken(b.context())
	done = true
	return more
}

// control does for a wake actor what protoactor does for one with a queue.
func (b *wakeBody) control(message any) {
	switch m := message.(type) {
	case *actor.Started:
		b.guard(b.start)
	case *actor.Stop:
		defer b.spec.siblings.parent.post((*wakerStopped)(b))
		defer b.stopped()
		b.stopping()
	case *actor.ResumeMailbox:
		b.state.And(^suspended)
	case *ownFailure:
		b.state.Or(suspended)
		b.spec.siblings.parent.post(&wakerFailed{(*WakeBox)(b), m.failure})
	}
}

func (b *wakeBody) start() { b.waker.(Starter).Started(b.context()) }

func (b *wakeBody) behavior() any { return b.waker }

func (b *wakeBody) restartable() bool { return false }

func (b *wakeBody) close() {}

// release keeps the waker, whose name may be asked for while the actor ends: the
// box is part of it.
func (b *wakeBody) release() {}
