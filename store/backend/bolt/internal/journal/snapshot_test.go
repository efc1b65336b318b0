package journal_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

func TestSnapshot_IsRestoredOnATimelineOfItsOwn(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 30, 20, 200)
	f.raise(f.last / 2)
	f.trim(journal.Budget{Records: 20})
	snapshot, m := f.snapshot()
	sum := sha256.Sum256(snapshot[:m.Bytes])
	require.Equal(t, hex.EncodeToString(sum[:]), m.SHA256)
	require.Equal(t, map[string]uint64{logName: f.last}, m.Revisions)
	taken := f.last
	f.put("later", "x")

	path := filepath.Join(t.TempDir(), "restored.db")
	restored, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{})
	require.NoError(t, err)
	require.Equal(t, m.ID, restored.ID)
	require.Equal(t, taken+1<<32, restored.Revisions[logName])

	report, err := journal.Check(path, 0)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	r, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, f.Identity().ID, r.Identity().ID)
	require.Equal(t, f.Identity().Timeline+1, r.Identity().Timeline)
	require.Equal(t, f.states[taken], stateAt(t, r, math.MaxUint64))
	b, err := r.Bounds(logName)
	require.NoError(t, err)
	last := taken + 1<<32
	require.Equal(t, journal.Bounds{First: last, Floor: last, Trimmed: last, Last: last}, b, "no history")
	data := journal.Record{Kind: journal.Put, Key: []byte("next"), Created: last + 1}.AppendTo(nil, last+1)
	require.NoError(t, r.Append(journal.Batch{Entries: []journal.Entry{{Log: logName, Revision: last + 1, Data: data}}}))
}

// snapshotted returns a file, and a snapshot of it.
func snapshotted(t *testing.T) (f *fixture, snapshot []byte) {
	t.Helper()
	f = newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 20, 100)
	snapshot, _ = f.snapshot()
	return f, snapshot
}

// snapshot returns a snapshot of the file, and its manifest.
func (f *fixture) snapshot() ([]byte, journal.Manifest) {
	f.Helper()
	var out bytes.Buffer
	m, err := f.Snapshot(f.ctx, &out, time.Minute)
	require.NoError(f, err)
	return out.Bytes(), m
}

// A snapshot that is written to is none any more, and a second file on the first one's timeline.
func TestOpen_LeavesASnapshotAsItIs(t *testing.T) {
	_, snapshot := snapshotted(t)
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, os.WriteFile(path, snapshot, 0o600))
	for _, opts := range []journal.Options{{}, {ShrinkAt: 0.1}, {Salvage: true}} {
		_, err := journal.Open(path, opts)
		var format *journal.FormatError
		require.ErrorAs(t, err, &format)
		require.Equal(t, journal.FormatError{Path: path, Format: journal.Format, Snapshot: true}, *format)
		require.EqualError(t, err, path+" is a snapshot, which cannot be written to: restore it, and open the restored file")
		require.Equal(t, snapshot, read(t, path))
	}
	f, err := journal.Open(path, journal.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A reader that hangs does not keep the file from being closed.
func TestSnapshot_EndsWhenTheFileIsClosed(t *testing.T) {
	for _, broken := range []bool{false, true} {
		f := newFixture(t, journal.Options{})
		f.random(newRandom(1), 20, 50, 3000)
		entered, wait, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		first := sync.OnceFunc(func() { close(entered); <-wait })
		hanging := writerFunc(func(p []byte) (int, error) { first(); return len(p), nil })
		go func() {
			_, err := f.Snapshot(f.ctx, hanging, time.Hour)
			done <- err
		}()
		<-entered
		if broken { // as by a damaged page
			require.ErrorIs(t, f.Read(f.ctx, logName, func(journal.View) error { panic("damage") }), journal.ErrCorrupt)
		}
		require.NoError(t, f.Close())
		close(wait)
		require.ErrorIs(t, <-done, journal.ErrClosed)
	}
}

// Writers go on while a snapshot is written, and it is that of one moment.
func TestSnapshot_LetsWritersGoOn(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 60, 50, 3000) // more than is read at once
	taken := f.last
	var snapshot bytes.Buffer
	slow := writerFunc(func(p []byte) (int, error) {
		f.random(newRandom(f.last), 3, 20, 500)
		f.raise(f.last)
		f.trim(journal.Budget{})
		return snapshot.Write(p)
	})
	m, err := f.Snapshot(f.ctx, slow, time.Minute)
	require.NoError(t, err)
	require.Equal(t, taken, m.Revisions[logName])
	path := filepath.Join(t.TempDir(), "restored.db")
	_, err = journal.Restore(t.Context(), &snapshot, path, journal.RestoreOptions{})
	require.NoError(t, err)
	r, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, f.states[taken], stateAt(t, r, math.MaxUint64))
	f.requireChecked()
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// A reader that hangs keeps nothing beyond the timeout, whether it comes back or
// not.
func TestSnapshot_LetsGoOfAReaderThatHangs(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 20, 100)
	hanging, comeBack := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		first := true
		_, err := f.Snapshot(f.ctx, writerFunc(func(p []byte) (int, error) {
			if first {
				first = false
				close(hanging)
				<-comeBack
			}
			return len(p), nil
		}), time.Millisecond)
		done <- err
	}()
	<-hanging
	require.NoError(t, f.Close(), "which waits for readers")
	close(comeBack)
	require.Error(t, <-done)
}

// The space of what is trimmed after a snapshot is used again, however long the snapshot might
// have taken.
func TestSnapshot_LetsGoOfItsPages(t *testing.T) {
	f, random := newFixture(t, journal.Options{}), newRandom(1)
	churn := func(rounds int) {
		for range rounds {
			f.random(random, 2, 100, 2000)
			f.raise(f.last)
			f.trim(journal.Budget{})
		}
	}
	churn(5)
	before := f.size()
	_, err := f.Snapshot(f.ctx, writerFunc(func(p []byte) (int, error) {
		require.Equal(t, 1, f.SnapshotsInProgress())
		return len(p), nil
	}), time.Hour)
	require.NoError(t, err)
	require.Zero(t, f.SnapshotsInProgress())
	churn(20)
	require.LessOrEqual(t, f.size(), 2*before)
}

// What the file is a snapshot of is read from its beginning, which may be gone.
func TestSnapshot_SaysThatTheFileIsDamaged(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	require.NoError(t, os.Truncate(f.path, 0))
	var out bytes.Buffer
	_, err := f.Snapshot(f.ctx, &out, time.Minute)
	require.ErrorIs(t, err, journal.ErrCorrupt)
	require.ErrorContains(t, err, f.path)
	require.Zero(t, out.Len())
}

// A snapshot of a file that is cut off while it is read fails.
func TestSnapshot_FailsIfTheFileIsCutOff(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("large", string(make([]byte, 3<<20)))
	writes := 0
	_, err := f.Snapshot(f.ctx, writerFunc(func(p []byte) (int, error) {
		if writes++; writes == 3 {
			require.NoError(t, os.Truncate(f.path, int64(2*pageSize)))
		}
		return len(p), nil
	}), time.Minute)
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, err, "cannot write a snapshot of "+f.path)
	require.Equal(t, 3, writes)
}

// Each meta page says which one it is, for other programs that read the file.
func TestSnapshot_HasTheNumbersOfItsMetaPages(t *testing.T) {
	_, snapshot := snapshotted(t)
	for number := range uint64(2) {
		require.Equal(t, number, binary.NativeEndian.Uint64(snapshot[int(number)*pageSize:]))
	}
}

// Whichever part cannot be written, the snapshot fails and says of which file it is.
func TestSnapshot_IsWrittenToTheEnd(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 20, 100)
	broken := errors.New("broken pipe")
	fails := 0
	for ; ; fails++ {
		writes := 0
		_, err := f.Snapshot(f.ctx, writerFunc(func(p []byte) (int, error) {
			if writes++; writes == fails+1 {
				return 0, broken
			}
			return len(p), nil
		}), time.Minute)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, "cannot write a snapshot of "+f.path)
	}
	require.Equal(t, 4, fails, "two meta pages, the others, and the manifest")
}

func TestSnapshot_SaysWhyItFailed(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 20, 100)
	broken := errors.New("broken pipe")
	_, err := f.Snapshot(f.ctx, writerFunc(func([]byte) (int, error) { return 0, broken }), time.Minute)
	require.ErrorIs(t, err, broken)
	ctx, cancel := context.WithCancelCause(f.ctx)
	cancel(broken)
	_, err = f.Snapshot(ctx, io.Discard, time.Minute)
	require.ErrorIs(t, err, broken)
	synctest.Test(t, func(t *testing.T) { // so that the timeout comes before the slow reader
		slow := func(p []byte) (int, error) { time.Sleep(time.Second); return len(p), nil }
		_, err := f.Snapshot(f.ctx, writerFunc(slow), time.Millisecond)
		require.ErrorIs(t, err, journal.ErrTimeout)
	})
	f.put("a", "1")
	f.requireChecked()
}
