package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/usercode"
)

func TestRestore_GoesOnAboveTheFloorThatIsAskedFor(t *testing.T) {
	f := newFixture(t, journal.Options{})
	snapshot, _ := f.snapshot()
	path := filepath.Join(t.TempDir(), "restored.db")
	m, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{Floor: 1 << 40})
	require.NoError(t, err)
	require.Equal(t, uint64(1<<40+1<<32), m.Revisions[logName])

	_, err = journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = journal.Restore(t.Context(), bytes.NewReader(snapshot), path+"2", journal.RestoreOptions{Floor: math.MaxUint64})
	require.ErrorContains(t, err, "used up")
	_, err = os.Stat(path + "2")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Revisions are used up where a continue token cannot hold those of one more restore.
func TestRestore_LeavesRevisionsForAnother(t *testing.T) {
	_, snapshot := snapshotted(t)
	const most = math.MaxInt64 - 2<<32
	path := filepath.Join(t.TempDir(), "restored.db")
	_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{Floor: most + 1})
	require.ErrorContains(t, err, "used up")
	require.NoFileExists(t, path)
	m, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{Floor: most})
	require.NoError(t, err)
	require.Equal(t, uint64(most+1<<32), m.Revisions[logName])
}

// A snapshot is read for long, and what another program puts at the path meanwhile is not locked.
func TestRestore_LeavesAFileThatCameMeanwhile(t *testing.T) {
	_, snapshot := snapshotted(t)
	path := filepath.Join(t.TempDir(), "restored.db")
	comes := atEnd(func() { require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600)) })
	_, err := journal.Restore(t.Context(), io.MultiReader(bytes.NewReader(snapshot), comes), path, journal.RestoreOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "cannot restore to "+path)
	require.Equal(t, "mine", string(read(t, path)))
	require.NoFileExists(t, journal.Unfinished(path))
}

// A restored file has the state and no history, however long that was.
func TestRestore_DiscardsAHistoryOfAnyLength(t *testing.T) {
	f := newFixture(t, journal.Options{})
	for i := range 12_000 { // more than one transaction discards
		f.stage(journal.Put, fmt.Sprint(i%3), fmt.Sprint(i))
	}
	require.NoError(t, f.commit())
	snapshot, _ := f.snapshot()
	path := filepath.Join(t.TempDir(), "restored.db")
	_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{})
	require.NoError(t, err)
	report, err := journal.Check(path, 0)
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Equal(t, 3, report.Records)
	r, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	require.Equal(t, f.states[f.last], stateAt(t, r, math.MaxUint64))
	require.NoError(t, r.Close())
}

// Each restore begins a timeline, and goes on above what the one before it began with.
func TestRestore_OfWhatWasRestored(t *testing.T) {
	f, snapshot := snapshotted(t)
	revisions, dir := map[string]uint64{logName: f.last}, t.TempDir()
	for timeline := range uint64(3) {
		path := filepath.Join(dir, fmt.Sprint(timeline))
		m, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{})
		require.NoError(t, err)
		for name := range revisions {
			revisions[name] += 1 << 32
		}
		require.Equal(t, revisions, m.Revisions)
		require.Equal(t, timeline+1, m.Timeline)

		r, err := journal.Open(path, journal.Options{})
		require.NoError(t, err)
		require.Equal(t, f.Identity().ID, r.Identity().ID)
		require.Equal(t, timeline+1, r.Identity().Timeline)
		require.Equal(t, f.states[f.last], stateAt(t, r, math.MaxUint64))
		name := fmt.Sprint("log ", timeline)
		_, err = r.Declare(name, timeline)
		require.NoError(t, err)
		revisions[name] = timeline
		var next bytes.Buffer
		m, err = r.Snapshot(t.Context(), &next, time.Minute)
		require.NoError(t, err)
		require.Equal(t, timeline+1, m.Timeline)
		require.Equal(t, revisions, m.Revisions)
		require.NoError(t, r.Close())
		snapshot = next.Bytes()
	}
}

// Files that are restored from one snapshot go on at the same revisions, with different changes: each
// is another one.
func TestRestore_BeginsABranchEachTime(t *testing.T) {
	f, snapshot := snapshotted(t)
	require.Zero(t, f.Identity().Branch)
	branches := map[uint64]bool{}
	for i := range 3 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i))
		_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{})
		require.NoError(t, err)
		r, err := journal.Open(path, journal.Options{})
		require.NoError(t, err)
		id := r.Identity()
		require.NoError(t, r.Close())
		require.NotZero(t, id.Branch)
		branches[id.Branch] = true
		id.Timeline, id.Branch = f.Identity().Timeline, 0
		require.Equal(t, f.Identity(), id)
	}
	require.Len(t, branches, 3)
}

// A file of a version without branches has the identity that it had.
func TestIdentity_WithoutABranchIsAsItWas(t *testing.T) {
	id := journal.Identity{ID: [16]byte{7}, Timeline: 3, Format: journal.Format, Created: noon.Truncate(time.Second)}
	without := len(id.Encode())
	parsed, err := journal.ParseIdentity(id.Encode())
	require.NoError(t, err)
	require.Equal(t, id, parsed)
	id.Branch = 1 << 63
	require.Equal(t, without+10, len(id.Encode()), "which versions without it do not read")
	parsed, err = journal.ParseIdentity(id.Encode())
	require.NoError(t, err)
	require.Equal(t, id, parsed)
	cut := id.Encode()
	_, err = journal.ParseIdentity(journal.Seal(cut[:len(cut)-1]))
	require.Error(t, err)
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
	for at := end + 8; at < len(whole); at++ { // what every snapshot ends with
		flip(at, at%8)
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

// The manifest of a newer version may have more in it, which does not make it damaged.
func TestRestore_RefusesANewerFormatByName(t *testing.T) {
	f, _ := snapshotted(t)
	image := read(t, f.path)
	manifest := fmt.Appendf(nil, `{"format":2,"bytes":%d,"compression":"zstd"}`, len(image))
	footer := append(binary.BigEndian.AppendUint64(nil, uint64(len(manifest))), "watchmill snapshot\n"...)
	path := filepath.Join(t.TempDir(), "restored.db")
	_, err := journal.Restore(t.Context(), bytes.NewReader(slices.Concat(image, manifest, footer)), path, journal.RestoreOptions{})
	require.EqualError(t, err, "cannot restore to "+path+": the snapshot has format 2, and only 1 is known: use a newer version of watchmill")
	require.ErrorIs(t, err, journal.ErrFormat)
	require.NotErrorIs(t, err, journal.ErrCorrupt)
	require.NoFileExists(t, path)
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
		"cannot restore to "+path+": the snapshot: damaged: it does not end like a snapshot: it is cut off, or another kind of file")
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

func TestRestore_MakesTheFileThatALinkLeadsTo(t *testing.T) {
	_, snapshot := snapshotted(t)
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target.db"), filepath.Join(dir, "link.db")
	require.NoError(t, os.Symlink("target.db", link))
	_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), link, journal.RestoreOptions{})
	require.NoError(t, err)
	requireKind(t, target, 0)
	requireKind(t, link, fs.ModeSymlink)
}

// Of two restores to one path, the second waits for the first, but not for long.
func TestRestore_WaitsForAnother(t *testing.T) {
	_, snapshot := snapshotted(t)
	for name, c := range map[string]struct {
		first time.Duration
		want  error
	}{
		"that ends soon": {journal.DefaultLockTimeout / 2, fs.ErrExist},
		"that hangs":     {journal.DefaultLockTimeout * 2, journal.ErrLocked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "restored.db")
				restore := func(r io.Reader) error {
					_, err := journal.Restore(t.Context(), r, path, journal.RestoreOptions{})
					return err
				}
				first := make(chan error, 1)
				go func() { first <- restore(&lateReader{c.first, bytes.NewReader(snapshot)}) }()
				synctest.Wait()
				second := restore(bytes.NewReader(snapshot))
				require.NoError(t, <-first)
				require.ErrorIs(t, second, c.want)
				require.FileExists(t, path)
			})
		})
	}
}

// A file that is being restored is waited for by one that opens it.
func TestOpen_WaitsForARestore(t *testing.T) {
	f, snapshot := snapshotted(t)
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "restored.db")
		restored := make(chan error, 1)
		go func() {
			_, err := journal.Restore(t.Context(), &lateReader{time.Minute, bytes.NewReader(snapshot)}, path, journal.RestoreOptions{})
			restored <- err
		}()
		synctest.Wait()
		r, err := journal.Open(path, journal.Options{LockTimeout: time.Hour})
		require.NoError(t, <-restored)
		require.NoError(t, err)
		require.Equal(t, f.Identity().ID, r.Identity().ID)
		require.NoError(t, r.Close())
	})
}

// lateReader is a reader that waits before it reads.
type lateReader struct {
	wait time.Duration
	io.Reader
}

func (r *lateReader) Read(p []byte) (int, error) {
	time.Sleep(r.wait)
	r.wait = 0
	return r.Reader.Read(p)
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

// What is not a snapshot at all may have no end, and would fill the disk.
func TestRestore_ReadsNoMoreThanTheBeginningOfSomethingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "restored.db")
	_, err := journal.Restore(t.Context(), &endless{t: t}, path, journal.RestoreOptions{})
	require.ErrorIs(t, err, journal.ErrCorrupt)
	require.EqualError(t, err, "cannot restore to "+path+": the snapshot: damaged: it does not begin like a snapshot: give the path of one")
	require.NoFileExists(t, path)
	require.NoFileExists(t, journal.Unfinished(path))
}

// A snapshot whose checksum is right and whose contents are not is damaged, too: the error
// says where.
func TestRestore_SaysWhereASnapshotIsWrong(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 20, 100)
	snapshot, m := f.snapshot()
	image := snapshot[:m.Bytes]
	clear(image[3*pageSize:])
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
	require.GreaterOrEqual(t, at.Page, int64(3))
}

// A snapshot of a file with a damaged record is damaged, too, and the error names the record.
func TestRestore_SaysWhichRecordOfASnapshotIsWrong(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	f.put("a", "2")
	require.NoError(t, f.Spoil(logName, map[uint64]bool{2: true}))
	snapshot, _ := f.snapshot()
	_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), filepath.Join(t.TempDir(), "restored.db"), journal.RestoreOptions{})
	var at *journal.CorruptError
	require.ErrorAs(t, err, &at)
	require.Equal(t, uint64(2), at.Revision)
	require.ErrorContains(t, err, "the snapshot, page ")
}

// atEnd is a reader of nothing that calls it.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) { f(); return 0, io.EOF }

func TestRestore_SaysThatItsReaderPanicked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "restored.db")
	_, err := journal.Restore(t.Context(), atEnd(func() { panic("broken reader") }), path, journal.RestoreOptions{})
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.NotErrorIs(t, err, journal.ErrCorrupt)
	require.ErrorContains(t, err, "the snapshot cannot be read: ")
	require.NoFileExists(t, path)
}

func TestRestore_CanBeTriedAgainIfItsReaderEndsTheGoroutine(t *testing.T) {
	_, snapshot := snapshotted(t)
	path := filepath.Join(t.TempDir(), "restored.db")
	var restoring sync.WaitGroup
	restoring.Go(func() { _, _ = journal.Restore(t.Context(), atEnd(runtime.Goexit), path, journal.RestoreOptions{}) })
	restoring.Wait()
	_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{})
	require.NoError(t, err)
}
