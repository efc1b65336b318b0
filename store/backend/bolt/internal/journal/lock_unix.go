//go:build unix && !solaris && !aix && !android

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// hasFlock: this package and bbolt lock files by flock.
const hasFlock = true

// tryLock locks a file against other processes, until unlock or the end of the process.
// It returns false if another process has the lock.
func tryLock(f *os.File, shared bool) (ok bool, err error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return false, nil
	}
	return false, fmt.Errorf("cannot lock %s: does its file system support locks? %w", f.Name(), err)
}

// unlock releases the lock. Closing the file would not while it is mapped.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// mappable returns size if that many bytes of a file can be mapped into memory, else zero: the
// address space of a process may be limited, as by ulimit -v.
func mappable(f *os.File, size int) int {
	mapped, err := syscall.Mmap(int(f.Fd()), 0, max(size, 1), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return 0
	}
	_ = syscall.Munmap(mapped)
	return size
}

// keepOwner gives a file the owner and the group of another, if this process may.
func keepOwner(f *os.File, of fs.FileInfo) {
	if there, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(-1, int(there.Gid)) // a member of the group may do this, and only root the other
		_ = f.Chown(int(there.Uid), -1)
	}
}
