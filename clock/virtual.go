package clock

import (
	"container/heap"
	"math"
	"sync"
	"time"
)

// Virtual is a [Clock] that moves only by calls. It is safe for concurrent use,
// and calls no function while it holds its lock.
//
// Like the real clock it has monotonic and wall time: timers follow the elapsed
// time ([Virtual.Advance]), while [Virtual.Now] also follows corrections of the
// wall clock ([Virtual.Jump]). As its times have no monotonic reading, what is reckoned
// from them follows these corrections.
type Virtual struct {
	mu      sync.Mutex
	epoch   time.Time     // what Now was when elapsed was 0, with all jumps since
	elapsed time.Duration // time passed; never decreases
	armed   int64         // number of timers ever armed: their creation order
	timers  timerHeap
}

// NewVirtual returns a clock that shows start. Its times have no monotonic reading, which
// would follow jumps, too.
func NewVirtual(start time.Time) *Virtual { return &Virtual{epoch: start.Round(0)} }

// Now returns the time that the clock shows. In a timer's function during
// Advance that is the timer's due time.
func (c *Virtual) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch.Add(c.elapsed)
}

// AfterFunc arms a timer. It does not call f, even if d is not positive: only
// Advance does.
func (c *Virtual) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed++
	t := &timer{clock: c, due: later(c.elapsed, max(d, 0)), order: c.armed, call: f}
	heap.Push(&c.timers, t)
	return t
}

// Advance lets d pass. It calls the functions of the timers that fall due, on
// the caller's goroutine, in the order of their due times and among equals in
// the order of their creation, including timers that those functions arm. A
// negative d is a [Virtual.Jump].
//
// Calls that overlap, in several goroutines or in a timer's function, do not add up: each
// goes to the time at which it began plus its d. The functions of timers that two such
// calls run may overlap, too.
func (c *Virtual) Advance(d time.Duration) {
	if d < 0 {
		c.Jump(d)
		return
	}
	c.mu.Lock()
	until := later(c.elapsed, d)
	c.mu.Unlock()
	for {
		call := c.popDue(until)
		if call == nil {
			return
		}
		call()
	}
}

// later returns t plus d, which must not be negative, or the last time that can be
// reckoned with, 292 years from the clock's start.
func later(t, d time.Duration) time.Duration { return t + min(d, math.MaxInt64-t) }

// Jump corrects what the clock shows by d, forwards or backwards, without
// letting time pass: timers keep the time that they have left.
func (c *Virtual) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch = c.epoch.Add(d)
}

// Next returns when the earliest timer is due, as the clock shows time now;
// false if no timer is armed.
func (c *Virtual) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.epoch.Add(c.timers[0].due), true
}

// Pending returns the number of timers armed and neither fired nor stopped.
func (c *Virtual) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// popDue moves the clock to the next timer due by until and returns its
// function, or moves it to until and returns nil.
func (c *Virtual) popDue(until time.Duration) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 || c.timers[0].due > until {
		c.elapsed = max(c.elapsed, until)
		return nil
	}
	t := heap.Pop(&c.timers).(*timer)
	c.elapsed = max(c.elapsed, t.due)
	return t.call
}

// timer is one armed call. The clock's lock guards it.
type timer struct {
	clock *Virtual
	due   time.Duration // on the clock's elapsed hand
	order int64
	index int // in the heap; -1 once fired or stopped
	call  func()
}

func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.index)
	return true
}

// timerHeap orders timers by due time, then creation.
type timerHeap []*timer

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
	t := x.(*timer)
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
