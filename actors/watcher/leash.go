package watcher

import (
	"context"
	"sync"
)

// leash ends the watches of one context when that is done. They share it
// because a hook on a context takes some 250 bytes, and there may be 100,000
// watches under one context; a place on a leash takes 8.
type leash struct {
	ctx    context.Context
	unhook func() (stopped bool)
	// members are in no order; each knows its place.
	members []*Watch
}

// leashes are those of one feed, by the contexts' Done. Their lock is taken
// under the locks of watches, never the other way round.
type leashes struct {
	mu     sync.Mutex
	byDone map[<-chan struct{}]*leash
}

// tie makes w end with ctx, which can be done. The caller holds w's lock.
func (s *leashes) tie(ctx context.Context, w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := ctx.Done()
	l := s.byDone[done]
	if l == nil {
		l = &leash{ctx: ctx}
		if s.byDone == nil {
			s.byDone = make(map[<-chan struct{}]*leash)
		}
		s.byDone[done] = l
		l.unhook = context.AfterFunc(ctx, func() { s.pull(l) })
	}
	w.leash, w.place = l, uint32(len(l.members))
	l.members = append(l.members, w)
}

// untie lets w go, if it is tied. Nobody holds on to a context without watches.
// The caller holds w's lock.
func (s *leashes) untie(w *Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := w.leash
	if l == nil {
		return
	}
	last := len(l.members) - 1
	l.members[w.place] = l.members[last]
	l.members[w.place].place = w.place
	l.members[last] = nil
	l.members = l.members[:last]
	w.leash = nil
	if last == 0 {
		l.unhook()
		s.drop(l)
	}
}

// drop forgets a leash that has served. The caller holds the lock.
func (s *leashes) drop(l *leash) {
	if done := l.ctx.Done(); s.byDone[done] == l {
		delete(s.byDone, done)
	}
}

// pull ends the watches on l, whose context is done.
func (s *leashes) pull(l *leash) {
	s.mu.Lock()
	members := l.members
	l.members = nil
	for _, w := range members {
		w.leash = nil
	}
	s.drop(l)
	s.mu.Unlock()
	reason := StoppedBy(context.Cause(l.ctx))
	for _, w := range members {
		w.Finish(reason)
	}
}
