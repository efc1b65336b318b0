package trace

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// State has the version of each key that exists.
type State map[string]string

// Apply makes the change and reports whether the state differs: it does not if a key
// is deleted that does not exist, or put with the version that it has.
func (s State) Apply(c Change) (changed bool) {
	before, there := s[c.Key]
	if c.Op == Delete {
		delete(s, c.Key)
		return there
	}
	s[c.Key] = c.Version
	return !there || before != c.Version
}

// WriteTSV writes a line per key, "key\tversion\n", sorted by the bytes of the key.
// Equal states give equal bytes.
//
// Errors: [ErrNotTabular], before anything is written; the error of w.
func (s State) WriteTSV(w io.Writer) error {
	keys := slices.Sorted(maps.Keys(s))
	for _, key := range keys {
		if strings.ContainsAny(key+s[key], "\t\n") {
			return fmt.Errorf("key %q with version %q %w: it has a tab or a newline", key, s[key], ErrNotTabular)
		}
	}
	out := bufio.NewWriter(w)
	for _, key := range keys {
		// The writer keeps its first error, and Flush returns it.
		fmt.Fprintf(out, "%s\t%s\n", key, s[key])
	}
	return out.Flush()
}
