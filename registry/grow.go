package registry

import (
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// checkGrowth refuses text, which is to replace old, with a [*backend.TooLargeError] if it is larger than
// opts.MaxBytes and than old. Each patch may add as much as a body has, and what it costs to read and
// write an object grows with all of it.
func (c *core) checkGrowth(text []byte, old *store.Object, opts *WriteOptions) error {
	if opts.MaxBytes == 0 || int64(len(text)) <= opts.MaxBytes {
		return nil
	}
	if old != nil {
		before, err := c.layout.Encode(old, old.Revision.String(), false)
		if err != nil || len(text) <= len(before) {
			return err
		}
	}
	return &backend.TooLargeError{Size: len(text), Limit: int(opts.MaxBytes)}
}
