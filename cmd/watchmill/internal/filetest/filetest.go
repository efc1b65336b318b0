// Package filetest has what tests of files have in common.
package filetest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names returns the sorted names of the files in a directory. It fails the test if the
// directory cannot be read.
func Names(t testing.TB, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
