package informer

import (
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
)

// mailboxSize is how many updates wait for the informer before the Reflector is
// held back. Each may be a thousand events; the rest stays with the source.
const mailboxSize = 8

// mirror is the informer's actor: the only one that takes in changes and tells
// handlers. The Reflector and the handlers are its children. What it shows to
// others is in shared.
type mirror[T any] struct {
	shared *SharedInformer[T]
	// listeners are in the order in which they were added.
	listeners []*listener[T]
	// gathered are updates that were received and not yet committed.
	gathered []reflector.Update[T]
	// filled: the first list has been committed.
	filled bool
	// started: it has been an actor. If it was stopped before, it was only made
	// to drop its messages, of which the first is New's.
	started bool
}

// inlet is the informer as the Reflector sees it: full while a handler holds the
// source back, and until New has told it of the actor.
type inlet[T any] struct {
	actor *actors.Ref[message[T]]
	held  atomic.Bool
}

// Offer passes an update on.
func (in *inlet[T]) Offer(u reflector.Update[T]) actors.Verdict {
	if in.held.Load() {
		return actors.Full
	}
	return in.actor.Offer(upstream[T]{u})
}

// Started begins to follow the source.
func (m *mirror[T]) Started(ctx *actors.Context) {
	m.started = true
	s := m.shared
	cfg := s.cfg.reflector(&s.inlet, s.host.NewRand())
	cfg.OnError = s.sourceFailed
	ref, err := reflector.Spawn(ctx, cfg)
	if err != nil {
		s.end(&SourceError{Informer: s.cfg.Name, Final: true, Err: err})
		ctx.Stop()
		return
	}
	s.source.Store(ref)
}

// Receive takes one message. What it brings is committed in Flush.
func (m *mirror[T]) Receive(ctx *actors.Context, msg message[T]) {
	switch msg := msg.(type) {
	case upstream[T]:
		m.gathered = append(m.gathered, msg.Update)
	case join[T]:
		m.join(ctx, msg.listener)
	case leave[T]:
		m.remove(msg.listener)
		msg.listener.leave()
	case look[T]:
	}
}

// Flush commits what was gathered, unless a handler holds the source back.
func (m *mirror[T]) Flush(ctx *actors.Context) {
	if !m.hold() && len(m.gathered) > 0 {
		m.commit()
		m.hold()
	}
	if err := m.shared.ingress.failure(); err != nil {
		m.shared.end(err)
		ctx.Stop()
	}
}

// hold sees whether the source must be held back, and reports it.
func (m *mirror[T]) hold() bool {
	holds := false
	for _, l := range m.listeners {
		holds = holds || l.backlog.holds()
	}
	if was := m.shared.inlet.held.Swap(holds); was && !holds {
		m.shared.room()
	}
	return holds
}

func (m *mirror[T]) join(ctx *actors.Context, l *listener[T]) {
	if m.filled {
		l.backlog.begin(m.shared.Snapshot(), Replay)
	}
	if err := actors.SpawnWake(ctx, l, &l.box, ctx.System().Blocking()); err != nil {
		l.finish(ErrClosed)
		return
	}
	m.listeners = append(m.listeners, l)
	m.shared.handlers.Store(int64(len(m.listeners)))
	l.box.Wake()
}

// remove takes a listener out, if it is there.
func (m *mirror[T]) remove(l *listener[T]) {
	for i, other := range m.listeners {
		if other == l {
			m.listeners = append(m.listeners[:i:i], m.listeners[i+1:]...)
			m.shared.handlers.Store(int64(len(m.listeners)))
			return
		}
	}
}

// find returns the listener with the ID, or nil.
func (m *mirror[T]) find(id actors.ID) *listener[T] {
	for _, l := range m.listeners {
		if l.box.ID() == id {
			return l
		}
	}
	return nil
}

// ChildFailed restarts the Reflector, which then lists. A handler only fails as
// an actor if it ends its goroutine: that is its end.
func (m *mirror[T]) ChildFailed(_ *actors.Context, child actors.ID, reason any) actors.Directive {
	if l := m.find(child); l != nil {
		l.died(reason)
		return actors.Stop
	}
	return actors.Restart
}

// ChildStopped forgets a handler that is gone.
func (m *mirror[T]) ChildStopped(ctx *actors.Context, child actors.ID) {
	if l := m.find(child); l != nil {
		m.remove(l)
		m.Flush(ctx) // it may be what held the source back
	}
}

// Dropped answers who came too late, and New if the actor was.
func (m *mirror[T]) Dropped(msg message[T]) {
	if msg, ok := msg.(join[T]); ok {
		msg.listener.finish(ErrClosed)
	}
	if !m.started {
		m.shared.end(ErrClosed)
		m.shared.gone()
	}
}

// Stopping lets nobody wait any more.
func (m *mirror[T]) Stopping(*actors.Context) {
	m.shared.end(ErrClosed)
	for _, l := range m.listeners {
		l.dropped.Store(true) // a handler in the middle of much is told no more of it
	}
}

// Stopped tells Close that all are gone.
func (m *mirror[T]) Stopped(*actors.Context) { m.shared.gone() }
