package pace

import (
	"context"
	"time"
)

// Sleep waits until d has passed, and returns nil, or until ctx is done, and
// returns its cause. It does not wait for zero or less: then it returns the cause
// if ctx is done, and nil if it is not.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
