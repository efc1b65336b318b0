package reflector

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// caller makes blocking calls to the source, one at a time. It is a child of the
// Reflector on the executor for blocking actors, so that the Reflector itself
// stays responsive and can cancel the call when it is stopped.
type caller struct {
	source backend.ListerWatcher
	reply  func(message) bool
}

// Receive makes the call and sends the answer.
func (c *caller) Receive(_ *actors.Context, r request) {
	a := c.call(r)
	if !c.reply(a) {
		_ = a.discard() // the Reflector has stopped: a panic here cannot be reported
	}
}

// call makes one call to the source and returns a panic in it as an error.
func (c *caller) call(r request) answer {
	a := answer{request: r.id}
	var what string
	var run func()
	if r.do == doList {
		what, run = "ListerWatcher.List", func() { a.page, a.err = c.source.List(r.ctx, r.list) }
	} else {
		what, run = "ListerWatcher.Watch", func() { a.watcher, a.err = c.source.Watch(r.ctx, r.from) }
	}
	if err := usercode.Call(what, r.list.Prefix, run); err != nil {
		a.err = err
	}
	switch {
	case a.err != nil:
		_ = a.discard() // a watcher returned together with an error is not used
		a.watcher, a.err = nil, explain(r.ctx, a.err)
	case r.do == doOpen && a.watcher == nil:
		a.err = ErrContract
	}
	return a
}

// explain adds the cause of the cancellation to the error of a cancelled call.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrTimeout) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// discard closes a watcher that will not be used.
func (a answer) discard() error {
	if a.watcher == nil {
		return nil
	}
	return hangUp(a.watcher)
}

// hangUp closes a watch and contains a panic in that.
func hangUp(w backend.Watcher) error {
	return usercode.Call("Watcher.Close", "", w.Close)
}
