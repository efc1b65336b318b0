package reflector

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// progress requests progress of the open watch: in the Reflector's turn, or in a
// child if the source may block.
type progress struct {
	caller *actors.Ref[progressRequest] // nil unless the source blocks
	// asking: the caller has a request that it has not finished. again: another was to
	// be made meanwhile, which may need a later answer.
	asking, again atomic.Bool
	cancel        context.CancelFunc // ends the request; nil if there was none on this watch
}

// ProgressPeriod is how often progress is requested while [Config].Waiting.
const ProgressPeriod = 100 * time.Millisecond

// stop ends the request that is being made, if any.
func (p *progress) stop() {
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
	}
}

// wantProgress requests progress, and repeats that while calls wait. If the clock panics, the next
// call repeats it.
func (r *reflector) wantProgress(ctx *actors.Context) {
	h := r.handle
	h.wanted.Store(false)
	r.requestProgress(ctx)
	if h.waiting == nil {
		return
	}
	clock.Stop(&h.repeat)
	if panicked := usercode.Call("Clock.AfterFunc", "", func() {
		h.repeat = ctx.Clock().AfterFunc(ProgressPeriod, h.RequestProgress)
	}); panicked != nil {
		r.countAndReport(panicked)
	}
}

// requestProgress requests progress of the open watch: once more later if a request is being made.
func (r *reflector) requestProgress(ctx *actors.Context) {
	p := &r.progress
	if r.watcher == nil || r.machine.stats.Phase != Watching {
		return
	}
	if !r.traits.Blocks {
		if err := progressOf(context.Background(), r.watcher); err != nil && !errors.Is(err, store.ErrUnsupported) {
			r.countAndReport(err)
		}
		return
	}
	p.again.Store(true) // before the caller can finish: it then sees it
	if !p.asking.CompareAndSwap(false, true) {
		return
	}
	p.again.Store(false)
	if p.caller == nil {
		p.caller = actors.Spawn(ctx, "progress", func() actors.Behavior[progressRequest] { return progressCaller{} },
			actors.Options{Executor: ctx.System().Blocking()})
	}
	p.stop()
	var life context.Context
	life, p.cancel = context.WithCancel(context.Background())
	p.caller.Tell(progressRequest{life, r.watcher, p, func() { r.handle.actor.Tell(repeatProgress{}) }})
}

// progressOf requests progress of a watch and returns a panic in it as an error.
func progressOf(ctx context.Context, w backend.Watcher) (err error) {
	if panicked := usercode.Call("Watcher.RequestProgress", "", func() { err = backend.RequestProgress(ctx, w) }); panicked != nil {
		return panicked
	}
	return err
}

// progressRequest has the caller request progress of a watch, until ctx ends.
type progressRequest struct {
	ctx     context.Context
	watcher backend.Watcher
	state   *progress
	repeat  func() // makes the request that was to be made meanwhile
}

// finish is called at the end.
func (q progressRequest) finish() {
	q.state.asking.Store(false)
	if q.state.again.Swap(false) {
		q.repeat()
	}
}

// progressCaller makes requests that may block.
type progressCaller struct{}

// Receive makes one. Its error is dropped: a broken watch ends with an error of its
// own, and a waiting call requests progress again.
func (progressCaller) Receive(_ *actors.Context, q progressRequest) {
	defer q.finish() // even if the source ends the goroutine
	_ = progressOf(q.ctx, q.watcher)
}
