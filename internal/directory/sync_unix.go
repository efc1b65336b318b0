//go:build unix

package directory

import (
	"errors"
	"os"
	"syscall"
)

// Sync makes the names in a directory durable, if its file system can. It blocks until they
// are. Errors: those of opening the directory, and of the disk.
func Sync(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if isRefusal(err) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// isRefusal reports whether err means that the file system cannot sync a directory at all:
// EINVAL by POSIX, and ENOTSUP and ENOSYS, which some give.
func isRefusal(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}
