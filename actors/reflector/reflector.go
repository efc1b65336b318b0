package reflector

import (
	"context"
	"fmt"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// reflector is the actor: it feeds messages to its machine and carries out the
// machine's effects.
type reflector struct {
	machine machine
	config  *Config
	traits  backend.Traits
	handle  *Ref
	system  *actors.System

	caller   *actors.Ref[request]    // nil unless the source blocks
	watcher  backend.Watcher         // nil unless one is open
	notifier *notifier               // that of watcher, or of the one being opened
	delay    clock.Timer             // nil unless one is armed
	timeout  clock.Timer             // likewise
	cancel   context.CancelCauseFunc // ends the call in progress; nil if there is none
	progress progress
}

// Started keeps the system, for its executors and clock.
func (r *reflector) Started(ctx *actors.Context) { r.system = ctx.System() }

// Receive handles one message.
func (r *reflector) Receive(ctx *actors.Context, msg message) {
	switch m := msg.(type) {
	case begin:
		r.machine.begin(m.why)
	case answer:
		r.answered(ctx, m)
	case pull:
		r.pull(ctx, m.notifier)
	case wake:
		r.woken(m)
	case overdue:
		r.overdue(m)
	case room:
		r.machine.room()
	case relist:
		r.machine.relist(m.why, ctx.Clock().Now())
	case wantProgress:
		r.wantProgress(ctx)
	case repeatProgress:
		r.requestProgress(ctx)
	}
	r.act(ctx)
}

// Flush publishes the turn's Stats.
func (r *reflector) Flush(*actors.Context) { r.handle.publish(r.machine.stats) }

// Stopping cancels the call in progress, so that the caller can end.
func (r *reflector) Stopping(*actors.Context) {
	r.machine.stats.Phase = Ended
	defer clock.Stop(&r.handle.repeat)
	r.leave()
}

// Restarting does the same, and has the Reflector list once it is restarted, whatever fails here.
func (r *reflector) Restarting(*actors.Context) {
	r.machine.stats.Restarts++
	r.handle.storeID = r.machine.storeID
	r.handle.actor.Tell(begin{Restarted})
	r.leave()
}

// leave releases what the behavior has, and publishes its last Stats.
func (r *reflector) leave() {
	defer func() { r.handle.publish(r.machine.stats) }()
	r.release()
}

// Dropped frees a watch that was opened for a Reflector that has stopped.
func (r *reflector) Dropped(msg message) {
	if a, ok := msg.(answer); ok {
		r.discard(a)
	}
}

func (r *reflector) discard(a answer) {
	if err := a.discard(); err != nil {
		r.countAndReport(err)
	}
}

// ChildFailed handles a source that ended its goroutine (runtime.Goexit), which
// its children cannot contain. If it did so in the call that is in progress, that has
// failed; a request for progress has no answer.
func (r *reflector) ChildFailed(_ *actors.Context, child actors.ID, reason any) actors.Directive {
	if r.caller != nil && child == r.caller.ID() {
		r.handle.actor.Tell(answer{request: r.handle.requests, err: fmt.Errorf("%w: %v", ErrContract, reason)})
	}
	return actors.Restart
}

// act carries out the machine's effects until there are none left.
func (r *reflector) act(ctx *actors.Context) {
	for i := 0; i < len(r.machine.out); i++ {
		r.perform(ctx, r.machine.out[i])
	}
	clear(r.machine.out)
	r.machine.out = r.machine.out[:0]
}

func (r *reflector) perform(ctx *actors.Context, e effect) {
	switch e.do {
	case doList:
		r.request(ctx, request{do: doList, list: e.list})
	case doOpen:
		r.notifier = &notifier{reflector: r.handle.actor}
		r.request(ctx, request{do: doOpen, from: backend.WatchOptions{
			Prefix: r.config.Prefix, From: e.from, Notify: r.notifier.notify, NoPrev: r.config.NoPrev && !r.machine.shared,
			State: r.machine.state, StateEvery: r.config.StateEvery, Name: r.config.Name,
		}})
	case doPull:
		r.notifier.notify()
	case doProgress:
		r.requestProgress(ctx)
	case doClose:
		r.closeWatch()
	case doWait:
		r.wait(ctx, e)
	case doOffer:
		r.offer()
	case doReport:
		r.report(e.err)
	case doStop:
		ctx.Stop()
	}
}

// offer offers the first update that is held. The Stats have it by then, so that they are not behind
// what readers of the sink see.
func (r *reflector) offer() {
	r.handle.publish(r.machine.stats)
	switch r.config.Sink.Offer(r.machine.held[0]) {
	case actors.Accepted:
		r.machine.accepted()
	case actors.Full:
		r.machine.full()
	default:
		r.machine.gone()
	}
}

// pull takes a batch, if the machine can take one. The notifier is cleared
// first, so that a later event notifies again.
func (r *reflector) pull(ctx *actors.Context, n *notifier) {
	if n != r.notifier {
		return // of an earlier watch
	}
	n.pending.Store(false)
	if r.watcher == nil || !r.machine.pulling() {
		return
	}
	var batch backend.Batch
	var err error
	if panicked := usercode.Call("Watcher.Next", r.config.Prefix, func() {
		batch, err = r.watcher.Next(r.config.MaxBatch)
	}); panicked != nil {
		err = panicked
	}
	r.machine.batch(batch, err, ctx.Clock().Now())
}

// wait arms the delay's timer.
func (r *reflector) wait(ctx *actors.Context, e effect) {
	clock.Stop(&r.delay)
	r.handle.delays++
	over := wake{r.handle.delays}
	r.delay = ctx.Clock().AfterFunc(e.delay, func() { r.handle.actor.Tell(over) })
}

func (r *reflector) woken(m wake) {
	if m.delay == r.handle.delays {
		r.delay = nil
		r.machine.wake()
	}
}

// report calls OnError and contains a panic in it.
func (r *reflector) report(err error) {
	if r.config.OnError == nil {
		return
	}
	if panicked := usercode.Call("Config.OnError", r.config.Prefix, func() { r.config.OnError(err) }); panicked != nil {
		r.system.Logger().Error("OnError failed", "reason", panicked, "error", err)
	}
}

// countAndReport counts and reports an error that changes nothing else for the machine.
func (r *reflector) countAndReport(err error) {
	r.machine.count(err)
	r.report(err)
}

func (r *reflector) closeWatch() {
	w := r.watcher
	r.watcher, r.notifier = nil, nil
	r.progress.stop()
	if w == nil {
		return
	}
	if err := closeWatch(w); err != nil {
		r.countAndReport(err)
	}
}

// release cancels the call, closes the watch and stops the timers, each even if another part fails: the
// clock and the source may be the user's.
func (r *reflector) release() {
	defer clock.Stop(&r.delay)
	defer r.closeWatch()
	r.endRequest()
}
