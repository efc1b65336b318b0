package trace

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// State is the version of each key that there is.
type State map[string]string

// Apply makes the change and reports whether it made a difference: deleting
// what is not there, and putting the version that is there, do not.
func (s State) Apply(c Change) (changed bool) {
	before, there := s[c.Key]
	if c.Op == Delete {
		delete(s, c.Key)
		return there
	}
	s[c.Key] = c.Version
	return !there || before != c.Version
}

// WriteTSV writes a line per key, "key\tversion\n", sorted by the bytes of the
// key. Equal states make equal bytes.
//
// Errors: [ErrNotTabular], before anything is written; what w returns.
func (s State) WriteTSV(w io.Writer) error {
	keys := slices.Sorted(maps.Keys(s))
	for _, key := range keys {
		if strings.ContainsAny(key+s[key], "\t\n") {
			return fmt.Errorf("key %q with version %q %w: it has a tab or a newline", key, s[key], ErrNotTabular)
		}
	}
	out := bufio.NewWriter(w)
	for _, key := range keys {
		// The first error sticks, and Flush returns it.
		fmt.Fprintf(out, "%s\t%s\n", key, s[key])
	}
	return out.Flush()
}
