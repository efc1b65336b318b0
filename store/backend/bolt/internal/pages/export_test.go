package pages

import (
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// IsFree reports whether a page is on the freelist.
func IsFree(t testing.TB, f io.ReaderAt, m Meta, page uint64) bool {
	t.Helper()
	_, free, err := reader{file: f, meta: m}.readFreelist(m.Freelist)
	require.NoError(t, err)
	return slices.Contains(free, page)
}
