//go:build unix

package bench

import (
	"syscall"
	"time"
)

// processorTime returns the processors' time that the process has used, in user mode and
// in the kernel.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0 // cannot happen: there is always a process
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
