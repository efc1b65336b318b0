package journal_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
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
	var snapshot bytes.Buffer
	m, err := f.Snapshot(f.ctx, &snapshot, time.Minute)
	require.NoError(t, err)
	sum := sha256.Sum256(snapshot.Bytes()[:m.Bytes])
	require.Equal(t, hex.EncodeToString(sum[:]), m.SHA256)
	require.Equal(t, map[string]uint64{logName: f.last}, m.Revisions)
	taken := f.last
	f.put("later", "x")

	path := filepath.Join(t.TempDir(), "restored.db")
	restored, err := journal.Restore(t.Context(), bytes.NewReader(snapshot.Bytes()), path, journal.RestoreOptions{})
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

func TestRestore_GoesOnAboveTheFloorThatIsAskedFor(t *testing.T) {
	f := newFixture(t, journal.Options{})
	var snapshot bytes.Buffer
	_, err := f.Snapshot(f.ctx, &snapshot, time.Minute)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "restored.db")
	m, err := journal.Restore(t.Context(), bytes.NewReader(snapshot.Bytes()), path, journal.RestoreOptions{Floor: 1 << 40})
	require.NoError(t, err)
	require.Equal(t, uint64(1<<40+1<<32), m.Revisions[logName])

	_, err = journal.Restore(t.Context(), bytes.NewReader(snapshot.Bytes()), path, journal.RestoreOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = journal.Restore(t.Context(), bytes.NewReader(snapshot.Bytes()), path+"2", journal.RestoreOptions{Floor: math.MaxUint64})
	require.ErrorContains(t, err, "used up")
	_, err = os.Stat(path + "2")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// snapshotted returns a file, and a snapshot of it.
func snapshotted(t *testing.T) (f *fixture, snapshot []byte) {
	t.Helper()
	f = newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 20, 100)
	var out bytes.Buffer
	_, err := f.Snapshot(f.ctx, &out, time.Minute)
	require.NoError(t, err)
	return f, out.Bytes()
}

func TestRestore_RefusesWhatIsNotWhole(t *testing.T) {
	f, whole := snapshotted(t)
	path := filepath.Join(t.TempDir(), "restored.db")
	refused := func(image []byte, what string) {
		t.Helper()
		_, err := journal.Restore(t.Context(), bytes.NewReader(image), path, journal.RestoreOptions{})
		require.ErrorIs(t, err, journal.ErrCorrupt, what)
		require.ErrorContains(t, err, "cannot restore to "+path+": the snapshot", what)
		require.NotContains(t, err.Error(), "cannot make", what)
		left, err := filepath.Glob(path + "*")
		require.NoError(t, err)
		require.Empty(t, left, what)
	}
	refused(nil, "nothing")
	refused(read(t, f.path), "a file and no snapshot")
	for cut := 1; cut < len(whole); cut += len(whole)/50 + 1 {
		refused(whole[:cut], "cut off")
	}
	flip := func(at, bit int) {
		t.Helper()
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1 << bit
		refused(damaged, fmt.Sprintf("bit %d of byte %d", bit, at))
	}
	random := newRandom(2)
	for range 100 {
		flip(random.IntN(len(whole)), random.IntN(8))
	}
	end := len(whole) - len("watchmill snapshot\n") - 8
	for i := range 8 * 8 { // the length of the manifest
		flip(end+i/8, i%8)
	}
	manifest := bytes.LastIndex(whole, []byte(`{"id":`))
	revisions := manifest + bytes.Index(whole[manifest:], []byte(`:{`)) + 2 // are taken from the file
	rest := revisions + bytes.IndexByte(whole[revisions:], '}')
	for at := manifest; at < end; at++ {
		if at < revisions || at >= rest {
			flip(at, at%4)
		}
	}
}

// An error of Restore says whether the snapshot is wrong, or cannot be read, or the file
// cannot be made.
func TestRestore_SaysWhatIsWrong(t *testing.T) {
	_, whole := snapshotted(t)
	flipped := bytes.Clone(whole)
	flipped[len(whole)/2] ^= 1
	path := filepath.Join(t.TempDir(), "restored.db")
	restore := func(r io.Reader, path string) error {
		t.Helper()
		_, err := journal.Restore(t.Context(), r, path, journal.RestoreOptions{})
		require.Error(t, err)
		return err
	}
	require.EqualError(t, restore(bytes.NewReader(nil), path),
		"cannot restore to "+path+": the snapshot: damaged: it does not end as a snapshot does: it is cut off, or something else")
	require.EqualError(t, restore(bytes.NewReader(flipped), path),
		"cannot restore to "+path+": the snapshot: damaged: its checksum is wrong")

	gone := errors.New("the network is gone")
	err := restore(io.MultiReader(bytes.NewReader(whole[:1000]), iotest.ErrReader(gone)), path)
	require.EqualError(t, err, "cannot restore to "+path+": the snapshot cannot be read: the network is gone")
	require.ErrorIs(t, err, gone)
	require.NotErrorIs(t, err, journal.ErrCorrupt)

	missing := filepath.Join(t.TempDir(), "missing", "restored.db")
	require.ErrorContains(t, restore(bytes.NewReader(whole), missing), "cannot make "+missing)
}

// endless is a reader of zeros, as /dev/zero is, that fails a test in which too many are read.
type endless struct {
	t    *testing.T
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	require.Less(e.t, e.read, 1<<20)
	clear(p)
	return len(p), nil
}

// What is no snapshot at all may have no end, and would fill the disk.
func TestRestore_ReadsNoMoreThanTheBeginningOfSomethingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "restored.db")
	_, err := journal.Restore(t.Context(), &endless{t: t}, path, journal.RestoreOptions{})
	require.ErrorIs(t, err, journal.ErrCorrupt)
	require.EqualError(t, err, "cannot restore to "+path+": the snapshot: damaged: it does not begin as a snapshot does: give the path of one")
	require.NoFileExists(t, path)
	require.NoFileExists(t, journal.Unfinished(path))
}

// A snapshot whose checksum is right and whose contents are not is damaged, too: the error
// says where.
func TestRestore_SaysWhereASnapshotIsWrong(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 20, 100)
	var snapshot bytes.Buffer
	m, err := f.Snapshot(f.ctx, &snapshot, time.Minute)
	require.NoError(t, err)
	image := snapshot.Bytes()[:m.Bytes]
	clear(image[3*4096:])
	sum := sha256.Sum256(image)
	m.SHA256 = hex.EncodeToString(sum[:])
	footer, err := m.Footer()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "restored.db")
	_, err = journal.Restore(t.Context(), bytes.NewReader(slices.Concat(image, footer)), path, journal.RestoreOptions{})
	require.ErrorIs(t, err, journal.ErrCorrupt)
	require.ErrorContains(t, err, "cannot restore to "+path+": the snapshot, page ")
	var at *journal.CorruptError
	require.ErrorAs(t, err, &at)
}

// So is one of a file with a damaged record.
func TestRestore_SaysWhichRecordOfASnapshotIsWrong(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	f.put("a", "2")
	require.NoError(t, f.Spoil(logName, map[uint64]bool{2: true}))
	var snapshot bytes.Buffer
	_, err := f.Snapshot(f.ctx, &snapshot, time.Minute)
	require.NoError(t, err)
	_, err = journal.Restore(t.Context(), &snapshot, filepath.Join(t.TempDir(), "restored.db"), journal.RestoreOptions{})
	var at *journal.CorruptError
	require.ErrorAs(t, err, &at)
	require.Equal(t, uint64(2), at.Revision)
	require.ErrorContains(t, err, "the snapshot, page ")
}

// A snapshot that is written to is none any more, and a second file on the first one's timeline.
func TestOpen_LeavesASnapshotAsItIs(t *testing.T) {
	_, snapshot := snapshotted(t)
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, os.WriteFile(path, snapshot, 0o600))
	for _, opts := range []journal.Options{{}, {ShrinkAt: 0.1}, {Salvage: true}} {
		_, err := journal.Open(path, opts)
		require.ErrorIs(t, err, journal.ErrFormat)
		require.EqualError(t, err, path+" is a snapshot, which is not written to: restore it, and open the file that this makes")
		require.Equal(t, snapshot, read(t, path))
	}
	f, err := journal.Open(path, journal.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A reader that hangs does not keep the file from being closed.
func TestSnapshot_EndsWhenTheFileIsClosed(t *testing.T) {
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
	require.NoError(t, f.Close())
	close(wait)
	require.ErrorIs(t, <-done, journal.ErrClosed)
}

// Writers go on while a snapshot is written, and it is that of one moment.
func TestSnapshot_LetsWritersGoOn(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 20, 50, 3000)
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

// Opening a file that is mostly free copies it, and the copy is as the file was.
func TestOpen_Shrinks(t *testing.T) {
	f, before := newMostlyFree(t)
	id := f.Identity()

	f.opts.ShrinkAt = 0.5
	f.reopen()
	after, err := f.Usage()
	require.NoError(t, err)
	require.Less(t, after.Size, before/2)
	require.Equal(t, id, f.Identity())
	_, err = journal.Open(f.path, journal.Options{LockTimeout: time.Millisecond})
	require.ErrorIs(t, err, journal.ErrLocked, "the copy is locked")
	f.random(newRandom(2), 5, 20, 100)
	f.requireWhole()
	f.requireChecked()
	require.NoFileExists(t, journal.Unfinished(f.path))
}

// The pages of a copy are full, as those of records that are only added are.
func TestShrink_FillsThePages(t *testing.T) {
	f := newFixture(t, journal.Options{})
	const records, size = 3000, 200
	for i := range records {
		f.stage(journal.Put, fmt.Sprint(i), string(make([]byte, size)))
	}
	require.NoError(t, f.commit())
	f.put("large", string(make([]byte, 1<<20)))
	f.remove("large")
	f.raise(f.last)
	f.trim(journal.Budget{})
	require.NoError(t, f.Close())
	_, after, err := journal.Shrink(t.Context(), f.path, 0)
	require.NoError(t, err)
	require.Less(t, after, int64(records*size*3/2))
	f.open()
	f.requireWhole()
}

func TestOpen_DoesNotShrinkASmallFile(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 50, 500)
	f.raise(f.last)
	f.trim(journal.Budget{})
	u, err := f.Usage()
	require.NoError(t, err)
	require.Greater(t, u.Free, u.Size/2)
	require.NoError(t, f.Close())
	before, err := os.Stat(f.path)
	require.NoError(t, err)
	f.opts.ShrinkAt = 0.5
	f.open()
	after, err := os.Stat(f.path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
}

// A copy takes the place of the file, and not that of a link to it; else the file under its
// own name would stay behind, and the link would become another.
func TestOpen_ShrinksBehindALinkAndKeepsThePermissions(t *testing.T) {
	f, before := newMostlyFree(t)
	require.NoError(t, f.Close())
	require.NoError(t, os.Chmod(f.path, 0o640))
	dir := t.TempDir()
	far, link := filepath.Join(dir, "far"), filepath.Join(dir, "link.db")
	require.NoError(t, os.Symlink(filepath.Dir(f.path), far))
	require.NoError(t, os.Symlink(filepath.Join("far", filepath.Base(f.path)), link), "by a link to a link's file")

	shrunk, err := journal.Open(link, journal.Options{ShrinkAt: 0.5})
	require.NoError(t, err)
	require.NoError(t, shrunk.Close())
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeSymlink, "the link is one still")
	info, err = os.Stat(f.path)
	require.NoError(t, err)
	require.Less(t, info.Size(), before/2)
	require.Equal(t, fs.FileMode(0o640), info.Mode())
	f.open()
	f.requireWhole()
	f.requireChecked()
}

func TestOpen_MakesTheFileThatALinkLeadsTo(t *testing.T) {
	dir := t.TempDir()
	target, link, loop := filepath.Join(dir, "target.db"), filepath.Join(dir, "link.db"), filepath.Join(dir, "loop.db")
	require.NoError(t, os.Symlink("target.db", link))
	require.NoError(t, os.Symlink("loop.db", loop))
	f, err := journal.Open(link, journal.Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	info, err := os.Lstat(target)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
	info, err = os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeSymlink)
	_, err = journal.Open(loop, journal.Options{})
	require.ErrorContains(t, err, "loop.db")
}
