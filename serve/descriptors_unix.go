//go:build unix

package serve

import "syscall"

// descriptors returns how many files and connections the process may have open, zero if that is
// not known.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur)
}
