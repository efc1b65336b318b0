package watcher

import (
	"context"
	"sync"

	"github.com/watchmill/watchmill/usercode"
)

// contextGroup is the watches that end when one context is done. They share one
// context.AfterFunc, which takes some 250 bytes, since there may be 100,000 watches
// under one context; a member takes 8 bytes.
type contextGroup struct {
	ctx    context.Context
	unhook func() (stopped bool)
	// members are in no order; each knows its index.
	members []*Watch
}

// contextGroups are those of one registry, by the contexts' Done. Their lock is
// taken under the locks of watches, never the other way round.
type contextGroups struct {
	mu     sync.Mutex
	byDone map[<-chan struct{}]*contextGroup
	// idle is the group that lost its last member last, or nil. It is kept, since a
	// caller that starts and stops watches one by one under one context would make a
	// group for each. So one context that is never done may stay alive.
	idle *contextGroup
	// forgotten: contexts end no watch any more.
	forgotten bool
	// ending counts the calls that end the watches of a group.
	ending sync.WaitGroup
}

// add makes w end with ctx, which can be done. The caller holds w's lock.
func (s *contextGroups) add(ctx context.Context, w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten {
		return
	}
	done := ctx.Done()
	g := s.byDone[done]
	if g == nil {
		g = &contextGroup{ctx: ctx}
		if s.byDone == nil {
			s.byDone = make(map[<-chan struct{}]*contextGroup)
		}
		s.byDone[done] = g
		g.unhook = afterEnd(ctx, func() { s.end(g) })
	}
	if s.idle == g {
		s.idle = nil
	}
	w.group, w.groupIndex = g, uint32(len(g.members))
	g.members = append(g.members, w)
}

// afterEnd is [context.AfterFunc], except that a context with a method AfterFunc
// decides where f runs: in a deterministic run that must not be a goroutine of its
// own. Such a method must not call f itself, but have it called.
func afterEnd(ctx context.Context, f func()) (stop func() bool) {
	if own, ok := ctx.(interface{ AfterFunc(f func()) func() bool }); ok {
		return own.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// remove removes w from its group, if it is in one. The caller holds w's lock.
func (s *contextGroups) remove(w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := w.group
	if g == nil {
		return
	}
	last := len(g.members) - 1
	g.members[w.groupIndex] = g.members[last]
	g.members[w.groupIndex].groupIndex = w.groupIndex
	g.members[last] = nil
	g.members = g.members[:last]
	w.group = nil
	if last == 0 {
		s.retire(g)
	}
}

// retire keeps a group without members as the idle one, and drops the one that was, so
// that its context can be freed. The caller holds the lock.
func (s *contextGroups) retire(g *contextGroup) {
	if before := s.idle; before != nil {
		before.unhook()
		s.drop(before)
	}
	s.idle = g
}

// drop removes a group. The caller holds the lock.
func (s *contextGroups) drop(g *contextGroup) {
	if s.idle == g {
		s.idle = nil
	}
	if done := g.ctx.Done(); s.byDone[done] == g {
		delete(s.byDone, done)
	}
}

// end ends the watches of g, whose context is done.
func (s *contextGroups) end(g *contextGroup) {
	members := s.take(g)
	if len(members) == 0 {
		return
	}
	defer s.ending.Done()
	reason := stoppedBy(context.Cause(g.ctx))
	usercode.Each(members, func(w *Watch) { w.end(reason) }) // a Notify function may end the goroutine
}

// take removes a group and returns its members, which the caller ends: then it calls
// ending.Done, unless there are none.
func (s *contextGroups) take(g *contextGroup) []*Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	members := s.clear(g)
	if len(members) > 0 {
		s.ending.Add(1)
	}
	return members
}

// clear removes a group and returns what its members were. The caller holds the lock.
func (s *contextGroups) clear(g *contextGroup) []*Watch {
	members := g.members
	g.members = nil
	for _, w := range members {
		w.group = nil
	}
	s.drop(g)
	return members
}

// forget has contexts end no watch any more.
func (s *contextGroups) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten = true
	for _, g := range s.byDone {
		g.unhook()
		s.clear(g)
	}
}

// LeaveContexts has contexts end none of the registry's watches any more, and returns when
// none is being ended by one. Contexts end watches on goroutines of their own. A
// deterministic run, which is about to end all watches, would not wait for these.
func (r *Registry) LeaveContexts() {
	r.groups.forget()
	r.groups.ending.Wait()
}

// ForgetContexts is LeaveContexts that does not wait, for a registry whose watches have all
// ended: a context that goes on would keep it alive, and the engine that it is a part of.
func (r *Registry) ForgetContexts() { r.groups.forget() }
