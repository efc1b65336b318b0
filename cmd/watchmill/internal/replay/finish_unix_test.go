//go:build unix

package replay_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/trace"
)

// A state that is to be written to a pipe that no program reads keeps a replay no longer than an
// interrupt.
func TestFinish_EndsAtAnInterruptThoughItsPipeHasNoReader(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	flags := replay.Flags{State: pipe}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	err := flags.Finish(ctx, io.Discard, &replay.Report{Replayed: load.Replayed{State: trace.State{}}})
	require.ErrorIs(t, err, context.Canceled)
	reader, err := os.Open(pipe) // which lets the goroutine that opens the pipe end
	require.NoError(t, err)
	require.NoError(t, reader.Close())
}
