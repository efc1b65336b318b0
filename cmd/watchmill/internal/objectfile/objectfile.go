// Package objectfile distinguishes a file of objects that a command must not be called with
// from one with which the same command may succeed later, so that all commands exit with the
// same status.
package objectfile

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// ErrUnusable marks errors of the file itself, such as that it is not there or of another format.
// A command that fails with it was called wrongly.
var ErrUnusable = errors.New("cannot use the file")

// Usable returns err as an [ErrUnusable], unless it says that the file is damaged, open elsewhere,
// or took too long to use, or that the disk is full or fails.
func Usable(err error) error {
	if err == nil || draft.OfDisk(err) {
		return err
	}
	for _, other := range []error{backend.ErrCorrupt, backend.ErrLocked, backend.ErrFull, backend.ErrFailed, bolt.ErrTimeout} {
		if errors.Is(err, other) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrUnusable, err)
}
