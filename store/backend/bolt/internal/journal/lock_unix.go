//go:build unix && !solaris && !aix && !android

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

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

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// keepOwner gives a file the owner and the group of another, if this process may.
func keepOwner(f *os.File, of fs.FileInfo) {
	if there, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(-1, int(there.Gid)) // a member of the group may do this, and only root the other
		_ = f.Chown(int(there.Uid), -1)
	}
}
