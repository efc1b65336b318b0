package draft_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
)

// The errors of a disk have other numbers on Windows than those of package syscall.
func TestOfDisk_KnowsTheErrorsOfWindows(t *testing.T) {
	for err, want := range map[error]bool{
		windows.ERROR_DISK_FULL: true, windows.ERROR_HANDLE_DISK_FULL: true, windows.ERROR_IO_DEVICE: true,
		windows.ERROR_FILE_NOT_FOUND: false, windows.ERROR_ACCESS_DENIED: false, windows.ERROR_SHARING_VIOLATION: false,
	} {
		require.Equal(t, want, draft.OfDisk(&fs.PathError{Op: "write", Path: "x", Err: err}), err)
	}
}
