package actors

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is a source of time. All methods are safe for concurrent use.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f once, when d has passed, on a goroutine of the clock's
	// choosing. f must not block; typically it Tells or Wakes an actor. A d of
	// zero or less means as soon as possible, but never before AfterFunc has
	// returned on a [VirtualClock].
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that a [Clock] has been asked to make. It is an alias, so that
// a Clock satisfies interfaces of the same shape in packages that do not import
// this one, such as storage backends.
type Timer = interface {
	// Stop prevents the call and reports whether it did: false if the call has
	// begun or the timer was stopped before.
	Stop() bool
}

// RealClock returns the clock of package time.
func RealClock() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// countedClock counts the timers of a clock that are armed: neither fired nor
// stopped. It also contains panics in their functions, which would otherwise
// end the process.
type countedClock struct {
	Clock
	armed  atomic.Int64
	failed func(reason any, stack []byte)
}

func newCountedClock(c Clock, failed func(reason any, stack []byte)) *countedClock {
	if c == nil {
		c = RealClock()
	}
	return &countedClock{Clock: c, failed: failed}
}

type countedTimer struct {
	clock *countedClock
	timer Timer
}

func (c *countedClock) AfterFunc(d time.Duration, f func()) Timer {
	c.armed.Add(1)
	armed := false
	defer func() {
		if !armed { // the clock may be the user's; it panicked
			c.armed.Add(-1)
		}
	}()
	t := countedTimer{c, c.Clock.AfterFunc(d, func() {
		c.armed.Add(-1)
		var done bool
		defer contain(&done, c.failed)
		f()
		done = true
	})}
	armed = true
	return t
}

func (t countedTimer) Stop() bool {
	stopped := t.timer.Stop()
	if stopped {
		t.clock.armed.Add(-1)
	}
	return stopped
}

// VirtualClock is a [Clock] that stands still until it is told to move. It is
// safe for concurrent use, and calls no function while it holds its lock.
//
// Like a real clock it has monotonic and wall time: timers go by the time that
// has passed ([VirtualClock.Advance]), while [VirtualClock.Now] also follows
// corrections of the wall clock ([VirtualClock.Jump]).
type VirtualClock struct {
	mu      sync.Mutex
	epoch   time.Time     // what Now was when elapsed was 0, with all jumps since
	elapsed time.Duration // time passed; never decreases
	armed   int64         // number of timers ever armed: their creation order
	timers  timerHeap
}

// NewVirtualClock returns a clock that shows start.
func NewVirtualClock(start time.Time) *VirtualClock { return &VirtualClock{epoch: start} }

// Now returns the time that the clock shows. In a timer's function during
// Advance that is the timer's due time.
func (c *VirtualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch.Add(c.elapsed)
}

// AfterFunc arms a timer. It does not call f, even if d is not positive: only
// Advance does.
func (c *VirtualClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed++
	t := &virtualTimer{clock: c, due: c.elapsed + max(d, 0), order: c.armed, call: f}
	heap.Push(&c.timers, t)
	return t
}

// Advance lets d pass. It calls the functions of the timers that fall due, on
// the caller's goroutine, in the order of their due times and among equals in
// the order of their creation, including timers that those functions arm. A
// negative d is a [VirtualClock.Jump].
func (c *VirtualClock) Advance(d time.Duration) {
	if d < 0 {
		c.Jump(d)
		return
	}
	c.mu.Lock()
	until := c.elapsed + d
	c.mu.Unlock()
	for {
		call := c.popDue(until)
		if call == nil {
			return
		}
		call()
	}
}

// Jump corrects what the clock shows by d, forwards or backwards, without
// letting time pass: timers keep the time that they have left.
func (c *VirtualClock) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch = c.epoch.Add(d)
}

// Next returns when the earliest timer is due, as the clock shows time now;
// false if no timer is armed.
func (c *VirtualClock) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.epoch.Add(c.timers[0].due), true
}

// Pending returns the number of timers armed and neither fired nor stopped.
func (c *VirtualClock) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// popDue moves the clock to the next timer due by until and returns its
// function, or moves it to until and returns nil.
func (c *VirtualClock) popDue(until time.Duration) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 || c.timers[0].due > until {
		c.elapsed = max(c.elapsed, until)
		return nil
	}
	t := heap.Pop(&c.timers).(*virtualTimer)
	c.elapsed = max(c.elapsed, t.due)
	return t.call
}

// virtualTimer is one armed call. The clock's lock guards it.
type virtualTimer struct {
	clock *VirtualClock
	due   time.Duration // in the clock's elapsed time
	order int64
	index int // in the heap; -1 once fired or stopped
	call  func()
}

func (t *virtualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.index)
	return true
}

// timerHeap orders timers by due time, then creation.
type timerHeap []*virtualTimer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].order < h[j].order
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*virtualTimer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
