package load

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/sim/pace"
)

// jumpClock is the real clock plus the jumps of faults. It is the engine's clock.
type jumpClock struct{ ahead atomic.Int64 }

func (c *jumpClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// AfterFunc calls f after the real time d, since a jump of the wall clock moves no timer.
func (c *jumpClock) AfterFunc(d time.Duration, f func()) clock.Timer { return time.AfterFunc(d, f) }

func (c *jumpClock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

// stopwatch measures nanoseconds since an epoch, in real time without jumps. begun is when
// the load began, zero before that, and started is closed then.
type stopwatch struct {
	epoch   time.Time
	begun   atomic.Int64
	started chan struct{}
}

// newStopwatch sets the epoch in the past, so that no time is zero.
func newStopwatch() *stopwatch {
	return &stopwatch{epoch: time.Now().Add(-1), started: make(chan struct{})}
}

func (s *stopwatch) now() int64 { return int64(time.Since(s.epoch)) }

// begin sets the start of the load to now. It is called once.
func (s *stopwatch) begin() {
	s.begun.Store(s.now())
	close(s.started)
}

// at returns the time d after the start.
func (s *stopwatch) at(d time.Duration) int64 { return s.begun.Load() + int64(d) }

// elapsed returns how long the load has lasted.
func (s *stopwatch) elapsed() time.Duration { return time.Duration(s.now() - s.begun.Load()) }

// until waits until the moment, in nanoseconds since the epoch, and returns nil. It returns
// the cause of ctx if that is done first.
func (s *stopwatch) until(ctx context.Context, moment int64) error {
	return pace.Sleep(ctx, time.Duration(moment-s.now()))
}
