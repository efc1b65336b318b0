//go:build !unix || solaris || aix || android

package journal

import (
	"errors"
	"io/fs"
	"os"
)

// hasFlock is false where bbolt locks files by other means. No file is opened there, so that nothing
// below is called.
const hasFlock = false

func tryLock(*os.File, bool) (ok bool, err error) { return false, errors.ErrUnsupported }

func unlock(*os.File) error { return errors.ErrUnsupported }

func mappable(*os.File, int) int { return 0 }

func keepOwner(*os.File, fs.FileInfo) {}
