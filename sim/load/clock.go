package load

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/sim/pace"
)

// jumpClock is the real clock plus the jumps of faults. The engine uses it.
type jumpClock struct{ ahead atomic.Int64 }

func (c *jumpClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// AfterFunc counts real time: timers do not depend on the wall clock.
func (c *jumpClock) AfterFunc(d time.Duration, f func()) clock.Timer { return time.AfterFunc(d, f) }

func (c *jumpClock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

// stopwatch measures nanoseconds since an epoch. begun is when the load began, zero
// before that. It does not jump.
type stopwatch struct {
	epoch time.Time
	begun atomic.Int64
}

// newStopwatch sets the epoch in the past, so that no time is zero.
func newStopwatch() *stopwatch { return &stopwatch{epoch: time.Now().Add(-1)} }

func (s *stopwatch) now() int64 { return int64(time.Since(s.epoch)) }

// begin sets the start of the load to now.
func (s *stopwatch) begin() { s.begun.Store(s.now()) }

// at returns the time d after the start.
func (s *stopwatch) at(d time.Duration) int64 { return s.begun.Load() + int64(d) }

// elapsed returns how long the load has lasted.
func (s *stopwatch) elapsed() time.Duration { return time.Duration(s.now() - s.begun.Load()) }

// until waits until a time, or ctx is done.
func (s *stopwatch) until(ctx context.Context, moment int64) error {
	return pace.Sleep(ctx, time.Duration(moment-s.now()))
}
