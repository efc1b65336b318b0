package draft

import (
	"os"
	"path/filepath"

	"github.com/watchmill/watchmill/internal/directory"
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

// whole returns the name that a name leads to, from the root on.
func whole(name string) (string, error) {
	name, err := filepath.Abs(directory.Followed(name))
	if err != nil {
		return "", err
	}
	if beside, err := filepath.EvalSymlinks(filepath.Dir(name)); err == nil {
		name = filepath.Join(beside, filepath.Base(name))
	}
	return name, nil
}
