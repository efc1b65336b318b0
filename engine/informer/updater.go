package informer

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
)

// message is what the informer's actor receives.
//
//	message        sent by
//	update         the Reflector, by Offer: a full mailbox holds it back
//	addListener    AddEventHandler and Subscribe
//	removeListener Registration.Remove and Stop
//	recheck        a handler that has caught up; AddIndexers when it is over;
//	               New, to open the sink
type message interface{ message() }

// update is a change of the source, in order.
type update struct{ reflector.Update }

// addListener adds a handler.
type addListener struct{ listener *listener }

// removeListener removes a handler, which gets no later commits.
type removeListener struct{ listener *listener }

// recheck makes the actor check whether it still has to hold the source back, or
// must end.
type recheck struct{}

func (update) message()         {}
func (addListener) message()    {}
func (removeListener) message() {}
func (recheck) message()        {}

// mailboxSize is how many updates, of up to a thousand events each, wait for the
// informer before the Reflector stops reading from the source.
const mailboxSize = 8

// updater is the informer's actor: it alone changes the copy and notifies handlers.
// The Reflector and the listeners are its children. State shared with other
// goroutines is in informer.
type updater struct {
	informer *sharedInformer
	// listeners are in the order in which they were added.
	listeners []*listener
	// gathered are the updates received but not yet committed.
	gathered []reflector.Update
	// filled: the first list has been committed.
	filled bool
}

// reflectorSink is the Reflector's sink: full while a handler holds the source back,
// and until New has set the actor.
type reflectorSink struct {
	actor *actors.Ref[message]
	held  atomic.Bool
}

// Offer passes an update on.
func (s *reflectorSink) Offer(u reflector.Update) actors.Verdict {
	if s.held.Load() {
		return actors.Full
	}
	return s.actor.Offer(update{u})
}

// Started begins to follow the source.
func (p *updater) Started(ctx *actors.Context) {
	s := p.informer
	cfg := s.cfg.reflector(&s.sink, s.host.NewRand())
	cfg.OnError, cfg.Waiting = s.sourceFailed, s.waiters.waiting
	ref, err := reflector.Spawn(ctx, cfg)
	if err != nil { // the source has panicked, or the host is being closed
		if !errors.Is(err, actors.ErrStopping) {
			s.sourceEnded(&SourceError{Informer: s.cfg.name, Final: true, Err: err})
		}
		ctx.Stop()
		return
	}
	s.source.Store(ref)
	ref.RequestProgress() // for calls that wait since before
}

// Receive handles one message. Flush commits the gathered updates.
func (p *updater) Receive(ctx *actors.Context, msg message) {
	switch msg := msg.(type) {
	case update:
		p.gathered = append(p.gathered, msg.Update)
	case addListener:
		p.add(ctx, msg.listener)
	case removeListener:
		p.remove(msg.listener)
		msg.listener.drain()
	case recheck:
	}
}

// Flush commits what was gathered, unless the source is held back.
func (p *updater) Flush(ctx *actors.Context) {
	if !p.hold() && len(p.gathered) > 0 {
		p.commit()
		p.hold()
	}
	if err := p.informer.transform.failure(); err != nil {
		p.informer.end(err)
		ctx.Stop()
	} else if p.informer.err() != nil {
		p.drainAll()
	}
}

// drainAll lets all handlers end when they have handled what is pending: nothing follows,
// since the source cannot be followed any more, or the informer is being closed.
func (p *updater) drainAll() {
	for _, l := range p.listeners {
		l.drain()
	}
	p.listeners = nil
	p.informer.handlers.Store(0)
}

// hold holds the source back while a handler or addIndexers requires it, and reports
// whether one does.
func (p *updater) hold() bool {
	holds := p.informer.indexing.Load() > 0
	for _, l := range p.listeners {
		holds = holds || l.pending.holds()
	}
	if was := p.informer.sink.held.Swap(holds); was && !holds {
		p.informer.room()
	}
	return holds
}

func (p *updater) add(ctx *actors.Context, l *listener) {
	if p.filled {
		l.pending.begin(p.informer.published.Load(), Replay)
	}
	if err := actors.SpawnWake(ctx, l, &l.box, ctx.System().Blocking()); err != nil {
		l.finish()
		return
	}
	p.listeners = append(p.listeners, l)
	p.informer.handlers.Store(int64(len(p.listeners)))
	l.box.Wake()
}

// remove removes a listener, if present.
func (p *updater) remove(l *listener) {
	if i := slices.Index(p.listeners, l); i >= 0 {
		p.listeners = slices.Delete(p.listeners, i, i+1)
		p.informer.handlers.Store(int64(len(p.listeners)))
	}
}

// find returns the listener with the ID that gets commits, or nil.
func (p *updater) find(id actors.ID) *listener {
	for _, l := range p.listeners {
		if l.box.ID() == id {
			return l
		}
	}
	return nil
}

// ChildFailed restarts the Reflector, which then lists. A handler fails as an actor
// only if it ends its goroutine (runtime.Goexit), which removes it.
func (p *updater) ChildFailed(_ *actors.Context, child actors.ID, reason any) actors.Directive {
	if l := p.informer.listenerOf(child); l != nil {
		l.died(reason)
		return actors.Stop
	}
	return actors.Restart
}

// ChildStopped removes a handler that has ended.
func (p *updater) ChildStopped(ctx *actors.Context, child actors.ID) {
	if l := p.find(child); l != nil {
		p.remove(l)
		if p.informer.err() == nil {
			p.Flush(ctx) // it may have held the source back
		}
	}
}

// Dropped ends handlers whose addListener came too late.
func (p *updater) Dropped(msg message) {
	p.informer.end(ErrClosed) // unless Stopping has, which is not called before Started
	if msg, ok := msg.(addListener); ok {
		msg.listener.finish()
	}
}

// Stopping ends the waiting calls and the deliveries.
func (p *updater) Stopping(ctx *actors.Context) {
	p.informer.end(endOf(ctx))
	p.informer.dropAll()
}

// endOf returns why the actor stops.
func endOf(ctx *actors.Context) error {
	if failure := ctx.Failure(); failure != nil {
		return fmt.Errorf("%w: %w", ErrClosed, failure)
	}
	return ErrClosed
}

// Stopped lets close return: all actors have ended.
func (p *updater) Stopped(*actors.Context) { p.informer.actorsGone() }
