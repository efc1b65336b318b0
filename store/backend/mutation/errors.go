package mutation

import (
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/store"
)

// ErrMutated: a shared object was changed. The error is a
// [*Error].
var ErrMutated = errors.New("shared object was changed")

// Error says which shared object was changed, and how. It is detected after
// the fact: the code that changed the object has it from a write, a read or an event.
type Error struct {
	Key string
	// Revision is that of the object that was changed.
	Revision store.Revision
	// Before and After are deep prints of its value, labels and fields, when it
	// was first seen and when the change was found.
	Before, After string
}

func (e *Error) Error() string {
	before, after := difference(e.Before, e.After)
	return fmt.Sprintf("shared object %q at revision %d was changed in place, from %s to %s: objects are immutable once written; change a copy and write that",
		e.Key, e.Revision, before, after)
}

// Is makes errors.Is(err, ErrMutated) true.
func (e *Error) Is(target error) bool { return target == ErrMutated }

// difference cuts two texts down to their difference, with some context.
func difference(a, b string) (string, string) {
	const around = 32
	shortest := min(len(a), len(b))
	head := 0
	for head < shortest && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < shortest-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	cut := func(s string) string {
		from, to := max(0, head-around), min(len(s), len(s)-tail+around)
		text := s[from:to]
		if from > 0 {
			text = "…" + text
		}
		if to < len(s) {
			text += "…"
		}
		return text
	}
	return cut(a), cut(b)
}
