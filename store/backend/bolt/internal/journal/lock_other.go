//go:build !unix || solaris || aix || android

package journal

import (
	"io/fs"
	"os"
)

// tryLock leaves the lock to bbolt, which takes it when it opens the file.
func tryLock(*os.File, bool) (ok bool, err error) { return true, nil }

// unlock does nothing: closing the file is enough.
func unlock(*os.File) error { return nil }

// mappable returns size, since what can be mapped is not known here.
func mappable(_ *os.File, size int) int { return size }

// keepOwner does nothing: files have no owner here that could change.
func keepOwner(*os.File, fs.FileInfo) {}
