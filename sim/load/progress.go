package load

import (
	"cmp"
	"context"
	"time"
)

// Progress is how far a run has come.
type Progress struct {
	// Elapsed is since the load began, Duration how long it lasts; beyond that,
	// watchers read what is left.
	Elapsed, Duration time.Duration
	// Writes and Deliveries are in all, the rates per second since the time
	// before.
	Writes, Deliveries      uint64
	WriteRate, DeliveryRate float64
	// Lag is the most events that a watcher is behind, Stalled how many of the
	// Watches are stalled.
	Lag              uint64
	Stalled, Watches int
}

// showProgress tells how far the run has come, until ctx is done.
func (r *run) showProgress(ctx context.Context) {
	if r.opts.OnProgress == nil {
		return
	}
	ticker := time.NewTicker(cmp.Or(max(0, r.opts.ProgressEvery), time.Second))
	defer ticker.Stop()
	var before Progress
	for {
		select {
		case <-ticker.C:
			before = r.progress(before)
			r.opts.OnProgress(before)
		case <-ctx.Done():
			return
		}
	}
}

func (r *run) progress(before Progress) Progress {
	p := Progress{
		Elapsed: r.watch.elapsed(), Duration: r.plan.Duration,
		Writes: r.total("writers", (*callers).successes), Deliveries: r.delivered(),
	}
	span := max(p.Elapsed-before.Elapsed, time.Microsecond).Seconds()
	p.WriteRate = float64(p.Writes-before.Writes) / span
	p.DeliveryRate = float64(p.Deliveries-before.Deliveries) / span
	p.Lag, p.Stalled, p.Watches = r.standing()
	return p
}
