package reflector

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// progress requests progress of the open watch: in the Reflector's turn, or in a
// child if the source may block.
type progress struct {
	asker *actors.Ref[question] // nil unless the source blocks
	// asking: the asker has a question that it has not finished.
	asking atomic.Bool
	cancel context.CancelFunc // ends it; nil if there was none on this watch
}

// giveUp ends the question that is being asked.
func (p *progress) giveUp() {
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
	}
}

// ask asks the open watch for progress, unless it is being asked.
func (r *reflector) ask(ctx *actors.Context) {
	p := &r.progress
	if r.watcher == nil || r.machine.stats.Phase != Watching {
		return
	}
	if !r.traits.Blocks {
		if err := (question{context.Background(), r.watcher, nil}).ask(); err != nil && !errors.Is(err, store.ErrUnsupported) {
			r.complain(err)
		}
		return
	}
	if !p.asking.CompareAndSwap(false, true) {
		return
	}
	if p.asker == nil {
		p.asker = actors.Spawn(ctx, "progress", func() actors.Behavior[question] { return asker{} },
			actors.Options{Executor: ctx.System().Blocking()})
	}
	p.giveUp()
	var life context.Context
	life, p.cancel = context.WithCancel(context.Background())
	p.asker.Tell(question{life, r.watcher, &p.asking})
}

// question asks a watch for progress. It ends with ctx.
type question struct {
	ctx     context.Context
	watcher backend.Watcher
	asking  *atomic.Bool // the asker clears it at the end
}

func (q question) ask() (err error) {
	if panicked := usercode.Call("Watcher.RequestProgress", "", func() { err = backend.RequestProgress(q.ctx, q.watcher) }); panicked != nil {
		return panicked
	}
	return err
}

// asker asks questions that may block.
type asker struct{}

// Receive asks one. Its error is dropped: a broken watch ends with an error of its
// own, and a waiting call requests progress again.
func (asker) Receive(_ *actors.Context, q question) {
	defer q.asking.Store(false) // also if the source ends the goroutine
	_ = q.ask()
}
