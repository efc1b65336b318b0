package draft

import (
	"os"
	"path/filepath"
)

// SameFile reports whether two names are those of one file, which need not exist.
func SameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	a, errA = whole(a)
	b, errB = whole(b)
	return errA == nil && errB == nil && a == b
}

// whole returns a name from the root on, with the directory that it leads to.
func whole(name string) (string, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if directory, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
		name = filepath.Join(directory, filepath.Base(name))
	}
	return name, nil
}
