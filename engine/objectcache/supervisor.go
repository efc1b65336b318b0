package objectcache

import (
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/usercode"
)

// message is what the supervisor receives.
//
//	message    sent by
//	recheck    Acquire, Release, Get and the sink, through cache.recheck
//	idleDue    the clock
//	begin      New, as the first message
type message interface{ message() }

// recheck makes the supervisor check whether the entry has the Reflector that it needs.
// At most one per entry is queued.
type recheck struct{ entry *entry }

// idleDue says that the entry may have been idle for MaxIdle. The number distinguishes
// its timer from an earlier one that was stopped too late.
type idleDue struct {
	entry *entry
	timer uint64
}

// begin shows [New] whether the supervisor takes messages.
type begin struct{}

func (recheck) message() {}
func (begin) message()   {}
func (idleDue) message() {}

// supervisor is the actor that starts and stops Reflectors, its children. A message
// names an entry, not an action, so the supervisor always reconciles with the current
// state.
type supervisor struct {
	cache *cache
	// children are the entries whose Reflector has not ended.
	children map[actors.ID]*entry
	// latest is the time at which the clock was last read.
	latest time.Duration
}

// Receive rechecks an entry.
func (s *supervisor) Receive(ctx *actors.Context, msg message) {
	switch m := msg.(type) {
	case recheck:
		m.entry.rechecking.Store(false)
		s.recheck(ctx, m.entry)
	case idleDue:
		if m.timer == m.entry.idleTimers {
			m.entry.idleTimer = nil
			s.recheck(ctx, m.entry)
		}
	}
}

// recheck gives the entry the Reflector that it needs, or stops the one that it
// does not need.
func (s *supervisor) recheck(ctx *actors.Context, e *entry) {
	needed, idleIn := e.review(s.now(), s.cache.cfg.maxIdle)
	child := e.child.Load()
	switch {
	case needed && child == nil:
		s.start(ctx, e)
		child = e.child.Load()
	case !needed && child != nil && !e.stopping:
		e.stopping = true
		child.Stop()
	}
	switch {
	case idleIn == 0, child == nil:
		s.disarmIdle(e)
	case e.idleTimer == nil:
		s.armIdle(ctx, e, idleIn)
	}
	if child == nil {
		s.cache.forget(e)
	}
}

// now returns the time since the cache was made. The clock may be the user's: if it
// panics, the time is what it was, since the supervisor must not fail.
func (s *supervisor) now() time.Duration {
	s.contain("Clock.Now", func() { s.latest = s.cache.now() })
	return s.latest
}

// armIdle arms the timer for the time at which the entry may be idle. If the clock panics,
// the entry is followed until it is rechecked for another reason.
func (s *supervisor) armIdle(ctx *actors.Context, e *entry, idleIn time.Duration) {
	e.idleTimers++
	due := idleDue{e, e.idleTimers}
	s.contain("Clock.AfterFunc", func() {
		e.idleTimer = ctx.Clock().AfterFunc(idleIn, func() { s.cache.supervisor.Tell(due) })
	})
}

// disarmIdle stops the timer, if there is one. If the clock panics, the timer rechecks the entry once more.
func (s *supervisor) disarmIdle(e *entry) {
	if e.idleTimer != nil {
		s.contain("Timer.Stop", func() { clock.Stop(&e.idleTimer) })
	}
}

// contain calls f, and reports a panic of the clock's method.
func (s *supervisor) contain(method string, f func()) {
	if err := usercode.Call(method, "", f); err != nil {
		s.cache.report(err)
	}
}

// start starts the entry's Reflector.
func (s *supervisor) start(ctx *actors.Context, e *entry) {
	to := &sink{cache: s.cache, entry: e}
	e.follow(to)
	cfg := s.cache.cfg.reflector(e.key, to, s.cache.host.NewRand())
	cfg.OnError, cfg.Waiting = to.failed, e.awaited
	child, err := reflector.Spawn(ctx, cfg)
	if err != nil { // the source has panicked, or the cache is closing
		e.unreachable(to, err)
		s.cache.report(&SourceError{Key: e.key, Err: err})
		return
	}
	e.child.Store(child)
	e.stopping = false
	child.RequestProgress() // for calls that wait since before
	s.children[child.ID()] = e
	s.cache.reflectors.Add(1)
	s.cache.starts.Add(1)
}

// ChildFailed restarts a Reflector that has failed: it lists again, at the pace of
// its Backoff.
func (s *supervisor) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Restart
}

// ChildStopped is called for each Reflector that ends, whatever the reason. If the
// entry needs one again, it can start only now.
func (s *supervisor) ChildStopped(ctx *actors.Context, id actors.ID) {
	e := s.children[id]
	delete(s.children, id)
	e.child.Store(nil)
	s.cache.reflectors.Add(-1)
	s.recheck(ctx, e)
}

// Stopping ends the calls that wait. The end of each Reflector rechecks its entry
// for the last time.
func (s *supervisor) Stopping(*actors.Context) { s.cache.shut() }

// Stopped lets Close return: all actors are gone.
func (s *supervisor) Stopped(*actors.Context) {
	s.cache.shut() // unless Stopping has, which is not called if the supervisor never began
	s.cache.actorsGone()
}
