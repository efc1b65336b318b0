package load

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Phase is a part of a run.
type Phase string

// The phases, in order.
const (
	// Preparing: objects are created, and watches are opened.
	Preparing Phase = "preparing"
	// Loading: writers and readers make calls.
	Loading Phase = "loading"
	// Settling: watchers and other clients read what is left.
	Settling Phase = "settling"
)

// Progress is how far a run has come.
type Progress struct {
	Phase Phase
	// Created is how many of the initial objects exist.
	Created int
	// Elapsed is the time since the load began, and Duration how long the load lasts.
	Elapsed, Duration time.Duration
	// Writes and Deliveries are totals; the rates are per second since the previous
	// call.
	Writes, Deliveries      uint64
	WriteRate, DeliveryRate float64
	// Lag is how many events the watcher farthest behind has yet to receive, and
	// Stalled how many of the Watches are stalled.
	Lag              uint64
	Stalled, Watches int
	// Unsettled is, in the phase Settling, how many watchers, handlers of informers and
	// object caches have not read everything yet.
	Unsettled int
}

// show calls OnProgress periodically until ctx is done or stop is called. After stop has
// returned, it is not called again.
func (r *run) show(ctx context.Context) (stop func()) {
	if r.opts.OnProgress == nil {
		return func() {}
	}
	var before Progress
	return repeat(ctx, r.opts.ProgressEvery, func() {
		before = r.progress(before)
		r.opts.OnProgress(before)
	})
}

// repeat calls f periodically on another goroutine, each second if every is zero, until ctx
// is done or stop is called. It has ended when stop returns.
func repeat(ctx context.Context, every time.Duration, f func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var repeating sync.WaitGroup
	repeating.Go(func() {
		ticker := time.NewTicker(cmp.Or(max(0, every), time.Second))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		repeating.Wait()
	}
}

func (r *run) progress(before Progress) Progress {
	p := Progress{
		Phase: Preparing, Created: int(r.created.Load()), Duration: r.plan.Duration,
		Writes: r.total("writers", (*callers).successes), Deliveries: r.delivered(),
	}
	if r.stopwatch.Start() > 0 {
		p.Phase, p.Elapsed = Loading, r.stopwatch.Elapsed()
	}
	span := max(p.Elapsed-before.Elapsed, time.Microsecond).Seconds()
	p.WriteRate = float64(p.Writes-before.Writes) / span
	p.Lag, p.Stalled, p.Watches = r.standing()
	if p.Phase != Preparing {
		p.DeliveryRate = float64(p.Deliveries-before.Deliveries) / span
	}
	if p.Elapsed > p.Duration {
		p.Phase, p.Unsettled = Settling, p.Watches+int(r.settling.Load())
	}
	return p
}
