//go:build unix

package bench

import (
	"syscall"
	"time"
)

// processorTime is what the process has used of the processors, in the kernel and out
// of it.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0 // cannot happen: there is always a process
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
