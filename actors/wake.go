package actors

import "sync"

// Waker is what a wake actor does: an actor without messages, which knows by
// itself where to look for work. It may have the optional methods that
// [Behavior] names, but is never restarted: it is what it was spawned with.
type Waker interface {
	// Woken is called in a turn of its own some time after a Wake. If again is
	// true it is called once more, after the other actors have had their turns.
	Woken(ctx *Context) (again bool)
}

// WakeBox is the mailbox of a wake actor. It is meant to be embedded by value
// in the Waker, so that the two are one allocation. The zero value is ready for
// [SpawnWake]; it must not be copied. Its methods are safe for concurrent use,
// never block, and do nothing before the spawn and after the stop.
type WakeBox struct {
	cell
	waker Waker
}

// SpawnWake starts a wake actor with the given mailbox under parent, whose turn
// it must be. Nil exec means the system's [System.Pool].
//
// An idle wake actor costs no goroutine. With its WakeBox it costs about 490
// bytes, most of them protoactor's (BenchmarkIdleWakeActor).
//
// Errors: [ErrSpawned] if the box was used before, [ErrStopping] if the parent
// takes no children any more.
func SpawnWake(parent *Context, w Waker, box *WakeBox, exec Executor) error {
	c := parent.cell()
	if c.is(leaving) {
		return ErrStopping
	}
	if !box.state.CompareAndSwap(0, spawned|scheduled) {
		return ErrSpawned
	}
	if exec == nil {
		exec = c.origin.system.Pool()
	}
	b := c.broodOf()
	box.waker = w
	box.id, box.origin, box.body = c.origin.system.nextID(), b.originFor(c, exec), (*wakeBody)(box)
	c.origin.system.live.Add(1)
	c.origin.wakers.Add(1)
	return b.spawn(c, &box.cell)
}

// ID returns the actor's ID; zero before the spawn.
func (b *WakeBox) ID() ID { return b.id }

// Wake makes Woken be called. Any number of wakes before that are one; a wake
// while it runs makes it be called once more.
func (b *WakeBox) Wake() { b.rouse() }

// Stop tells the actor to stop, when Woken has returned if it is running.
// Calling it again does nothing.
func (b *WakeBox) Stop() {
	if !b.is(stopping) {
		b.post(stopMessage)
	}
}

// Alive reports whether the actor was spawned and has neither stopped nor begun
// to.
func (b *WakeBox) Alive() bool {
	return b.is(spawned) && !b.is(stopping|dead)
}

// waveSize is the number of boxes that WakeAll submits at once: enough that the
// executor's lock does not show, few enough that workers start early.
const waveSize = 256

// wave is scratch for WakeAll.
type wave [waveSize]Task

var waves = sync.Pool{New: func() any { return new(wave) }}

// WakeAll wakes all the boxes, which must have been spawned on exec, in order.
// For many boxes it costs a fraction of waking each: it submits them in
// batches. It does not allocate in steady state.
func WakeAll(exec Executor, boxes []*WakeBox) {
	w := waves.Get().(*wave)
	n := 0
	for _, b := range boxes {
		if !b.wake() {
			continue
		}
		w[n] = (*mailbox)(&b.cell)
		if n++; n == waveSize {
			exec.SubmitAll(w[:n])
			n = 0
		}
	}
	if n > 0 {
		exec.SubmitAll(w[:n])
	}
	clear(w[:])
	waves.Put(w)
}

// wakeBody is the face of a WakeBox that its cell sees.
type wakeBody WakeBox

func (b *wakeBody) work(int) (more bool) {
	var done bool
	defer contain(&done, b.fail)
	more = b.waker.Woken(b.context())
	done = true
	return more
}

func (b *wakeBody) start() {
	if s, ok := b.waker.(Starter); ok {
		s.Started(b.context())
	}
}

func (b *wakeBody) behavior() any { return b.waker }

func (b *wakeBody) restartable() bool { return false }

func (b *wakeBody) close() {}

func (b *wakeBody) release() { b.waker = nil }
