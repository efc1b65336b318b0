//go:build unix

package draft_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
)

// newPipe makes a pipe with a name.
func newPipe(t *testing.T) string {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	return pipe
}

// requirePipe requires that the pipe is still there.
func requirePipe(t *testing.T, pipe string) {
	t.Helper()
	info, err := os.Lstat(pipe)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeNamedPipe)
}

// The reader of a pipe may come only when there is something to read.
func TestCheck_DoesNotWaitForTheReaderOfAPipe(t *testing.T) {
	pipe := newPipe(t)
	require.NoError(t, draft.Check(pipe))
	requirePipe(t, pipe)
}

// The pipe is the user's, whatever becomes of the draft.
func TestDraft_LeavesThePipeThatItWritesInto(t *testing.T) {
	for _, published := range []bool{true, false} {
		pipe := newPipe(t)
		reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		require.NoError(t, err)
		d, err := draft.New(pipe)
		require.NoError(t, err)
		require.True(t, d.Direct())
		_, err = io.WriteString(d, "report")
		require.NoError(t, err)
		if published {
			require.NoError(t, d.Publish())
		}
		d.Discard()
		requirePipe(t, pipe)
		read, err := io.ReadAll(reader) // which ends, since the draft has closed the pipe
		require.NoError(t, err)
		require.Equal(t, "report", string(read))
		require.NoError(t, reader.Close())
	}
}

// The name of a pipe is its own, not that of a file which it would replace.
func TestDraft_NamesThePipeInErrors(t *testing.T) {
	pipe := newPipe(t)
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	d, err := draft.New(pipe)
	require.NoError(t, err)
	defer d.Discard()
	require.NoError(t, reader.Close())
	_, err = io.WriteString(d, "report")
	require.ErrorIs(t, err, syscall.EPIPE)
	require.ErrorContains(t, err, "write "+pipe+":")
}
