package timing

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/sim/pace"
)

// Stopwatch measures nanoseconds since an epoch, in real time without jumps.
type Stopwatch struct {
	epoch time.Time
	// begun is when the load began, zero before that, and started is closed then.
	begun   atomic.Int64
	started chan struct{}
}

// NewStopwatch sets the epoch in the past, so that no time is zero.
func NewStopwatch() *Stopwatch {
	return &Stopwatch{epoch: time.Now().Add(-1), started: make(chan struct{})}
}

// Now returns the time since the epoch.
func (s *Stopwatch) Now() int64 { return int64(time.Since(s.epoch)) }

// Begin sets the start of the load to now. It is called once.
func (s *Stopwatch) Begin() {
	s.begun.Store(s.Now())
	close(s.started)
}

// Start returns when the load began, zero before that.
func (s *Stopwatch) Start() int64 { return s.begun.Load() }

// Started returns a channel that is closed when the load begins.
func (s *Stopwatch) Started() <-chan struct{} { return s.started }

// At returns the time d after the start.
func (s *Stopwatch) At(d time.Duration) int64 { return s.begun.Load() + int64(d) }

// Elapsed returns how long the load has lasted.
func (s *Stopwatch) Elapsed() time.Duration { return time.Duration(s.Now() - s.begun.Load()) }

// Until waits until the moment, in nanoseconds since the epoch, and returns nil. It returns
// the cause of ctx if that is done first.
func (s *Stopwatch) Until(ctx context.Context, moment int64) error {
	return pace.Sleep(ctx, time.Duration(moment-s.Now()))
}
