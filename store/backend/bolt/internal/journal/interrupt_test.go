package journal_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// fewLooks is a context whose Err returns nil so often, and then what end does.
type fewLooks struct {
	context.Context
	left int
	end  func() error
}

func (c *fewLooks) Err() error {
	if c.left--; c.left < 0 {
		return c.end()
	}
	return nil
}

// eachLook calls fn with a context that is done from the first look on, from the second on,
// and so forth, and after each interruption calls check, until fn succeeds. It returns how
// often fn was interrupted.
func eachLook(t *testing.T, fn func(context.Context) error, check func()) (interrupted int) {
	t.Helper()
	for ; ; interrupted++ {
		ctx := &fewLooks{t.Context(), interrupted, func() error { return context.Canceled }}
		err := fn(ctx)
		if err == nil {
			return interrupted
		}
		require.Equal(t, -1, ctx.left, "it ends at once")
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, journal.ErrCorrupt)
		check()
	}
}

// A restore ends at any time, also after it has read the snapshot, and leaves no file.
func TestRestore_EndsWhenItsContextIsDone(t *testing.T) {
	f, snapshot := snapshotted(t)
	path := filepath.Join(t.TempDir(), "restored.db")
	var rest int // what was not read when the restore was interrupted last
	var m journal.Manifest
	interrupted := eachLook(t, func(ctx context.Context) (err error) {
		r := bytes.NewReader(snapshot)
		m, err = journal.Restore(ctx, r, path, journal.RestoreOptions{})
		rest = r.Len()
		return err
	}, func() {
		require.NoFileExists(t, path)
		require.NoFileExists(t, journal.Unfinished(path))
	})
	require.Zero(t, rest)
	require.Equal(t, uint64(1), m.Timeline)
	require.Equal(t, map[string]uint64{logName: f.last + 1<<32}, m.Revisions)
	require.Greater(t, interrupted, len(snapshot)/pageSize, "each page is read at least once")
	report, err := journal.Check(path, 0)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
}

// A file that is being shrunk is as it was until the copy is complete, and nothing is left
// of a copy that is not.
func TestShrink_EndsWhenItsContextIsDone(t *testing.T) {
	f, size := newMostlyFree(t)
	require.NoError(t, f.Close())
	image := read(t, f.path)
	var before, after int64
	interrupted := eachLook(t, func(ctx context.Context) (err error) {
		before, after, err = journal.Shrink(ctx, f.path, 0)
		return err
	}, func() {
		require.True(t, bytes.Equal(image, read(t, f.path)))
		require.NoFileExists(t, journal.Unfinished(f.path))
	})
	require.Positive(t, interrupted)
	require.Equal(t, size, before)
	require.Less(t, after, before/2)
	require.Equal(t, after, int64(len(read(t, f.path))))
	f.open()
	f.requireWhole()
	f.requireChecked()
}

// onceThere is a context whose Err returns nil until there is a file at path, and then what
// end does.
type onceThere struct {
	context.Context
	path string
	end  func() error
}

func (c onceThere) Err() error {
	if _, err := os.Stat(c.path); err != nil {
		return nil
	}
	return c.end()
}

// The copy of a large file takes long, and ends, too.
func TestShrink_EndsWhileItCopies(t *testing.T) {
	f, _ := newMostlyFree(t)
	require.NoError(t, f.Close())
	image := read(t, f.path)
	ctx := onceThere{t.Context(), journal.Unfinished(f.path), func() error { return context.Canceled }}
	_, _, err := journal.Shrink(ctx, f.path, 0)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, bytes.Equal(image, read(t, f.path)))
	require.NoFileExists(t, journal.Unfinished(f.path))
}
