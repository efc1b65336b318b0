package load

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/sim/pace"
)

// jumpClock is the real clock, but for jumps: the engine's idea of time.
type jumpClock struct{ ahead atomic.Int64 }

func (c *jumpClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// AfterFunc counts real time: a machine's timers do not heed its clock's jumps.
func (c *jumpClock) AfterFunc(d time.Duration, f func()) actors.Timer { return time.AfterFunc(d, f) }

func (c *jumpClock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

// stopwatch measures in nanoseconds since an epoch; the load's begin is a moment
// on it, zero until it has come. It does not jump.
type stopwatch struct {
	epoch time.Time
	begun atomic.Int64
}

// newStopwatch sets the epoch a moment ago, so that no moment is zero.
func newStopwatch() *stopwatch { return &stopwatch{epoch: time.Now().Add(-1)} }

func (s *stopwatch) now() int64 { return int64(time.Since(s.epoch)) }

// begin makes now the moment at which the load begins.
func (s *stopwatch) begin() { s.begun.Store(s.now()) }

// at returns the moment that is d after the begin.
func (s *stopwatch) at(d time.Duration) int64 { return s.begun.Load() + int64(d) }

// elapsed returns how long the load has lasted.
func (s *stopwatch) elapsed() time.Duration { return time.Duration(s.now() - s.begun.Load()) }

// until waits for a moment, or ctx.
func (s *stopwatch) until(ctx context.Context, moment int64) error {
	return pace.Sleep(ctx, time.Duration(moment-s.now()))
}
