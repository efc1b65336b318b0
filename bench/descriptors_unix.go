//go:build unix

package bench

import (
	"math"
	"syscall"
)

// maxDescriptors returns how many files the process may have open.
func maxDescriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64 // cannot happen: there is always a limit
	}
	return uint64(limit.Cur)
}
