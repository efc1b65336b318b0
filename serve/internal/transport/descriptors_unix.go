//go:build unix

package transport

import "syscall"

// Descriptors returns how many files and connections the process may have open, zero if that is
// not known.
func Descriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur)
}
