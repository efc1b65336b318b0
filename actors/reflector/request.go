package reflector

import (
	"context"
	"fmt"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
)

// A request to the source is in progress from request to answered, or until the
// Reflector stops or restarts. There is at most one; its number distinguishes
// its answer from that of an earlier request.

// request makes a call to the source: in this turn if it does not block,
// otherwise in the caller. Either way the answer is a message.
func (r *reflector) request(ctx *actors.Context, q request) {
	r.handle.requests++
	q.id = r.handle.requests
	q.ctx, r.cancel = context.WithCancelCause(context.Background())
	if r.traits.Blocks {
		if !r.traits.Bounded {
			r.armTimeout(ctx, q.id)
		}
		r.callerOf(ctx).Tell(q)
		return
	}
	r.newCaller().Receive(ctx, q)
}

// armTimeout arranges for the request to be cancelled after Config.CallTimeout.
func (r *reflector) armTimeout(ctx *actors.Context, id uint64) {
	r.timeout = ctx.Clock().AfterFunc(r.config.CallTimeout, func() { r.handle.actor.Tell(overdue{id}) })
}

func (r *reflector) overdue(m overdue) {
	if m.request == r.handle.requests && r.cancel != nil {
		r.cancel(fmt.Errorf("%w after %v", ErrTimeout, r.config.CallTimeout))
	}
}

// callerOf returns the child that makes calls, spawning it on first use.
func (r *reflector) callerOf(ctx *actors.Context) *actors.Ref[request] {
	if r.caller == nil {
		r.caller = actors.Spawn(ctx, "calls", func() actors.Behavior[request] { return r.newCaller() }, actors.Options{Executor: ctx.System().Blocking()})
	}
	return r.caller
}

func (r *reflector) newCaller() *caller {
	return &caller{source: r.config.Source, identifies: r.traits.Identifies, reply: r.tell}
}

func (r *reflector) tell(m message) bool { return r.handle.actor.Tell(m) }

// answered handles the result of the request.
func (r *reflector) answered(ctx *actors.Context, a answer) {
	if a.request != r.handle.requests || r.cancel == nil {
		r.discard(a)
		return
	}
	if a.watcher != nil {
		r.watcher = a.watcher // first, so that it is closed if the clock fails
	}
	r.endRequest()
	r.machine.answeredBy = a.storeID
	if r.machine.listing() {
		r.machine.page(a.page, a.err, ctx.Clock().Now())
		return
	}
	r.machine.watch(a.err, ctx.Clock().Now())
}

// endRequest ends the request, if there is one. The timer comes last, since the clock may be the user's and
// panic.
func (r *reflector) endRequest() {
	defer clock.Stop(&r.timeout)
	if r.cancel != nil {
		r.cancel(nil)
		r.cancel = nil
	}
}
