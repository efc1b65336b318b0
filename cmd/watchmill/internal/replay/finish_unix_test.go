//go:build unix

package replay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/replay"
	"github.com/watchmill/watchmill/sim/load"
	"github.com/watchmill/watchmill/sim/trace"
)

// A state that is to be written to a pipe that no program reads keeps a replay no longer than an
// interrupt.
func TestFinish_EndsAtAnInterruptThoughItsPipeHasNoReader(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	flags := replay.Flags{State: help.Given(pipe)}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	err := flags.Finish(ctx, io.Discard, &replay.Report{Replayed: load.Replayed{State: trace.State{}}})
	require.ErrorIs(t, err, context.Canceled)
	reader, err := os.Open(pipe) // which lets the goroutine that opens the pipe end
	require.NoError(t, err)
	require.NoError(t, reader.Close())
}

// A pipe has nothing to continue from, and would keep the replay waiting for that, whatever interrupts it.
func TestRun_RefusesAPipeInPlaceOfCheckpoints(t *testing.T) {
	for _, name := range []string{"checkpoints", "checkpoints.new"} {
		dir := t.TempDir()
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
		_, err := replay.Run(bg, durable(dir, replay.Options{File: writeTrace(t, dir, put("a", "1")), Watchers: 1, Continue: true}))
		require.ErrorIs(t, err, replay.ErrOptions)
		require.ErrorContains(t, err, filepath.Join(dir, name)+" is not a regular file")
	}
}

// The goroutine that reads a long trace ends with the replay, and not with the trace.
func TestRun_ReadsNoMoreOfItsTraceOnceItIsInterrupted(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		report, err := replay.Run(ctx, replay.Options{File: pipe, Watchers: 1})
		if err == nil && !report.Interrupted {
			err = errors.New("it was not interrupted")
		}
		ended <- err
	}()
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer writer.Close()
	interrupt()
	require.NoError(t, <-ended)
	const more = 1_000_000 // than fit in the pipe and the reader's buffer
	for i := 0; i < more && err == nil; i++ {
		_, err = fmt.Fprintln(writer, `{"t":1,"op":"put","key":"a","version":"1"}`)
	}
	require.ErrorIs(t, err, syscall.EPIPE)
}

func TestRun_SaysWhyCheckpointsCannotBeSought(t *testing.T) {
	dir := t.TempDir()
	opts := durable(dir, replay.Options{File: writeTrace(t, dir, put("a", "1")), Watchers: 1})
	opts.Checkpoints, opts.Open = filepath.Join(opts.File, "saved"), noStorage(t)
	_, err := replay.Run(t.Context(), opts)
	require.ErrorIs(t, err, syscall.ENOTDIR)
}
