package actors

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/usercode"
)

const (
	// turnLimit is how long a turn may hold a worker of a pool without a report.
	// Turns take microseconds: one that takes so long blocks.
	turnLimit = time.Second
	// checksPerLimit is the number of checks in that time. A turn is reported at
	// most one check late.
	checksPerLimit = 4
)

// watchdog reports turns that hold a worker of a pool, or a sender in [Ref.Ask], for longer
// than turnLimit.
//
// While workers are busy, a timer has them checked. A check marks each worker
// that has a batch, and the worker removes the mark when a turn ends: if the
// mark is still there at a later check, the same turn is still running. A check
// that finds no busy worker, and no sender in a turn, does not arm the timer again; the next that
// gets one does. So an idle pool has no timer, and a turn costs one look at
// Pool.attention, which says whether any worker is marked.
//
// The pool's lock guards the fields.
type watchdog struct {
	clock  clock.Clock
	held   func(turn *mailbox)            // called for a turn that holds its worker
	failed func(reason any, stack []byte) // called if the clock fails
	timer  clock.Timer                    // nil if no check is due
	// overdue is closed while a turn is beyond turnLimit, as far as checks have found; also
	// read without the lock.
	overdue atomic.Pointer[chan struct{}]
	late    bool // overdue is closed
	// pending counts the timer and checks in progress.
	pending sync.WaitGroup
}

// watch has the turns of actors on the pool watched. It must be called before
// the first Submit.
func (p *Pool) watch(clock clock.Clock, held func(*mailbox), failed func(reason any, stack []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchdog.clock, p.watchdog.held, p.watchdog.failed = clock, held, failed
	p.unwatched = true
}

// Held returns a channel that is closed when a turn has held a worker, or a sender, for more than a second:
// a message to an actor of the pool may then wait for long. It returns an open channel again
// once no turn does, so call it for each wait. The channel of a pool that is not a System's
// is never closed.
func (p *Pool) Held() <-chan struct{} { return *p.watchdog.overdue.Load() }

// setLateLocked closes overdue, or replaces it by one that is open.
func (d *watchdog) setLateLocked(late bool) {
	switch {
	case late && !d.late:
		close(*d.overdue.Load())
	case !late && d.late:
		open := make(chan struct{})
		d.overdue.Store(&open)
	}
	d.late = late
}

// watchAndUnlock has the turns that have begun watched, and unlocks.
func (p *Pool) watchAndUnlock() {
	if p.unwatched {
		p.unwatched = false
		p.armAndUnlock()
		return
	}
	p.mu.Unlock()
}

// armAndUnlock arms the timer for one check, and unlocks. If the clock, which may be the user's,
// panics or ends the goroutine, that is reported, turns are not watched any more, and any of them
// may be overdue.
func (p *Pool) armAndUnlock() {
	d, report := &p.watchdog, func() {}
	defer func() {
		p.mu.Unlock()
		report()
	}()
	var done bool
	defer contain(&done, func(reason any, stack []byte) {
		d.pending.Done()
		d.setLateLocked(true)
		report = func() { d.failed(reason, stack) }
	})
	d.pending.Add(1)
	d.timer = d.clock.AfterFunc(turnLimit/checksPerLimit, p.check)
	done = true
}

// stopWatchdog stops the timer and waits for a check in progress. No worker may
// be left, since it might arm the timer. If the clock fails to stop it, that is reported, and a
// check may still come.
func (p *Pool) stopWatchdog() {
	d := &p.watchdog
	var done bool
	defer contain(&done, d.failed)
	p.stopTimer()
	done = true
	d.pending.Wait()
}

func (p *Pool) stopTimer() {
	d := &p.watchdog
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.timer != nil && d.timer.Stop() {
		d.pending.Done()
	}
	d.timer = nil
}

// check is called by the timer.
func (p *Pool) check() {
	d := &p.watchdog
	defer d.pending.Done()
	p.mu.Lock()
	d.timer = nil
	busy, late, held := p.checkLocked()
	d.setLateLocked(late)
	defer usercode.Each(held, d.held)
	if busy {
		p.armAndUnlock()
		return
	}
	p.unwatched = true
	p.mu.Unlock()
}

// checkLocked marks the busy workers, and returns whether there are any, or senders in a turn,
// whether one is beyond the limit, and the turns that have just reached it.
func (p *Pool) checkLocked() (busy, late bool, held []*mailbox) {
	busy, late, held = p.checkAskedLocked()
	for _, w := range p.workers {
		if w.n == 0 {
			continue
		}
		busy = true
		if !w.marked.Load() {
			w.checks = 0
			p.attention.Add(markUnit)
			w.marked.Store(true)
			continue
		}
		w.checks++
		late = late || w.checks >= checksPerLimit
		if w.checks != checksPerLimit {
			continue
		}
		if m := p.turnLocked(w); m != nil {
			held = append(held, m)
		}
	}
	return busy, late, held
}

// turnLocked returns the turn of an actor that a worker is running, if any: of
// the actors in its batch the one that is in a turn. Other actors of the batch
// may be in a turn again, but then a worker has taken them since.
func (p *Pool) turnLocked(w *worker) *mailbox {
	for _, t := range w.batch[:w.n] {
		m, ok := t.(*mailbox)
		if !ok || !(*cell)(m).is(running) {
			continue
		}
		again := slices.ContainsFunc(p.workers, func(other *worker) bool {
			return other.serial > w.serial && slices.Contains(other.batch[:other.n], t)
		})
		if !again {
			return m
		}
	}
	return nil
}
