//go:build unix && !solaris && !aix && !android

package journal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// tryLock locks a file against other processes, for as long as it is open. Ok is
// false if another one has it.
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

// unlock gives the lock back. Closing the file would not, as long as it is mapped.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// syncDir makes the names in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
