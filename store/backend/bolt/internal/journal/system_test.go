package journal_test

import (
	"bytes"
	"errors"
	"go/build"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// Where files cannot be locked, none is opened or made, and the error says what to use.
func TestSystem_WithoutLocksIsRefused(t *testing.T) {
	f, snapshot := snapshotted(t)
	require.NoError(t, f.Close())
	before := read(t, f.path)
	missing := filepath.Join(t.TempDir(), "state.db")
	defer journal.SetSupported(false)()
	for name, use := range map[string]func() error{
		"Open":           func() error { _, err := journal.Open(f.path, journal.Options{}); return err },
		"Open, to read":  func() error { _, err := journal.Open(f.path, journal.Options{ReadOnly: true}); return err },
		"Open, to make":  func() error { _, err := journal.Open(missing, journal.Options{}); return err },
		"Check":          func() error { _, err := journal.Check(f.path, 0); return err },
		"DumpTo":         func() error { _, err := journal.DumpTo(f.path, 0, nil); return err },
		"Shrink":         func() error { _, _, err := journal.Shrink(t.Context(), f.path, 0); return err },
		"Shrink of none": func() error { _, _, err := journal.Shrink(t.Context(), missing, 0); return err },
		"Restore": func() error {
			_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), missing, journal.RestoreOptions{})
			return err
		},
	} {
		err := use()
		require.ErrorIs(t, err, errors.ErrUnsupported, name)
		var unsupported *journal.UnsupportedError
		require.ErrorAs(t, err, &unsupported, name)
		require.Equal(t, runtime.GOOS, unsupported.System, name)
		require.ErrorContains(t, err, "not supported on "+runtime.GOOS+": use Linux, macOS or a BSD", name)
	}
	require.NoFileExists(t, missing)
	require.Equal(t, before, read(t, f.path))
}

// The systems that have the locks are those that the documentation names.
func TestSystem_IsSupportedWhereFilesAreLockedByFlock(t *testing.T) {
	for system, supported := range map[string]bool{
		"linux": true, "darwin": true, "ios": true, "freebsd": true, "netbsd": true, "openbsd": true, "dragonfly": true,
		"windows": false, "solaris": false, "illumos": false, "aix": false, "android": false, "plan9": false, "js": false, "wasip1": false,
	} {
		on := build.Default
		on.GOOS = system
		for file, has := range map[string]bool{"lock_unix.go": supported, "lock_other.go": !supported} {
			taken, err := on.MatchFile(".", file)
			require.NoError(t, err)
			require.Equal(t, has, taken, "%s on %s", file, system)
		}
	}
}
