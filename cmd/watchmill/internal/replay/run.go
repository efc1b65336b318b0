package replay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// run is one replay.
type run struct {
	opts      *Options
	input     *input
	engine    *engine.Engine[File]
	consumers []watcher
	latencies *latencies
	// caches are those of the holders, and truth is what they must come to have,
	// once everything is written.
	caches []*objectcache.Cache[File]
	truth  objects
	// informers are those of the listeners.
	informers []*informer.SharedInformer[File]

	// base is the revision before the first write, last that of the last one.
	// The consumers may look at last once they have been told that everything is
	// written.
	base, last engine.Revision
	noOps      int
	written    atomic.Int64
	finished   atomic.Int64
	took       time.Duration
}

// Run replays the trace and returns when every watcher has read all of it or is
// lost, and nothing of the run is left. If ctx is done it stops where it is and
// reports what ran so far, as interrupted, without an error.
//
// Errors: [*OptionError] (matched by [ErrOptions]); a [*trace.Error], before
// anything has been written; what the engine met, which then ended the run.
func Run(ctx context.Context, opts Options) (report *Report, err error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	in, err := load(opts.File, opts.KeepGoing)
	if err != nil {
		return nil, err
	}
	e, err := newEngine(&opts)
	if err != nil {
		return nil, err
	}
	r := &run{opts: &opts, input: in, engine: e, latencies: newLatencies()}
	defer func() { err = errors.Join(err, r.closeCaches(), r.closeInformers(), e.Close()) }()
	if err := r.play(ctx); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return r.report(ctx)
}

// play opens the watches, writes, and waits until the consumers have read.
func (r *run) play(ctx context.Context) error {
	if err := r.openAll(ctx); err != nil {
		return err
	}
	// An error of the writer's ends the consumers too.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	written, wake := context.WithCancelCause(ctx)
	defer wake(nil)

	start := time.Now()
	stopProgress := r.progressEvery()
	defer stopProgress()
	var consumers sync.WaitGroup
	for _, c := range r.consumers {
		consumers.Go(func() {
			c.consume(ctx, written)
			r.finished.Add(1)
		})
	}
	err := r.write(ctx)
	if err == nil {
		err = r.passedOn(ctx)
	}
	if err == nil {
		r.truth, err = r.backendState(ctx)
	}
	if err == nil {
		wake(errWritten)
	} else {
		stop()
	}
	consumers.Wait()
	r.took = time.Since(start)
	return err
}

// openAll makes the consumers before the first write.
func (r *run) openAll(ctx context.Context) (err error) {
	if r.base, err = r.engine.Backend().Revision(ctx); err != nil {
		return err
	}
	r.last = r.base
	switch r.opts.Via {
	case ViaObjectCache:
		return r.openHolders()
	case ViaInformer:
		return r.openListeners()
	}
	for number := range r.opts.Watchers {
		c := newConsumer(r, number)
		if err := c.open(ctx, r.base); err != nil {
			return err
		}
		c.seen = r.base
		r.consumers = append(r.consumers, c)
	}
	return nil
}

// progress returns how much of the history has happened at rev, from 0 to 1.
func (r *run) progress(rev engine.Revision) float64 {
	return float64(rev-r.base) / float64(len(r.input.changes))
}

// progressEvery reports progress until the function that it returns is called,
// and then once more.
func (r *run) progressEvery() (stop func()) {
	if r.opts.OnProgress == nil {
		return func() {}
	}
	every := r.opts.ProgressEvery
	if every == 0 {
		every = time.Second
	}
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.opts.OnProgress(r.progressNow())
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		reporting.Wait()
		r.opts.OnProgress(r.progressNow())
	}
}

func (r *run) progressNow() Progress {
	return Progress{
		Written: int(r.written.Load()), Changes: len(r.input.changes),
		Finished: int(r.finished.Load()), Watchers: len(r.consumers),
		Delivered: r.delivered(),
	}
}

func (r *run) delivered() (total uint64) {
	for _, c := range r.consumers {
		total += c.result().delivered.Load()
	}
	return total
}
