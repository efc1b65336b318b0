package serve

import (
	"log/slog"
	"sync"
	"time"
)

// failurePause is the shortest time between two lines about failures: storage that fails, fails
// for each request.
const failurePause = 10 * time.Second

// failures logs failures that come in large numbers: one now and then, with how many others
// there were.
type failures struct {
	mu      sync.Mutex
	next    time.Time // when there is a line again
	skipped int
}

// log logs a failure, or counts it if there was another one a moment ago.
func (f *failures) log(to *slog.Logger, what string, args ...any) {
	skipped, now := f.take()
	if !now {
		return
	}
	if skipped > 0 {
		args = append(args, "others", skipped)
	}
	to.Error(what, args...)
}

// take reports whether a failure is to be logged now, and how many were not since the last one.
func (f *failures) take() (skipped int, now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.Now()
	if at.Before(f.next) {
		f.skipped++
		return 0, false
	}
	f.next = at.Add(failurePause)
	skipped, f.skipped = f.skipped, 0
	return skipped, true
}
