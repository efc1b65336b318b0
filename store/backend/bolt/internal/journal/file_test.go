package journal_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/usercode"
)

func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	f, err := journal.Open(filepath.Join(dir, "state.db"), journal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()

	b, _ := f.Declare("lamps", 1)
	r := journal.Record{Kind: journal.Put, Key: []byte("hall"), Value: []byte("on"), Created: b.Last + 1, Written: time.Now()}
	err = f.Append(journal.Batch{Entries: []journal.Entry{{Log: "lamps", Revision: b.Last + 1, Data: r.AppendTo(nil, b.Last+1)}}})
	fmt.Println(err)
	_ = f.Read(context.Background(), "lamps", func(v journal.View) error {
		return v.Scan(0, v.Bounds().Last, func(revision uint64, r journal.Record) (bool, error) {
			fmt.Printf("%d: %s=%s\n", revision, r.Key, r.Value)
			return true, nil
		})
	})
	// Output:
	// <nil>
	// 2: hall=on
}

func TestOpen_FindsWhatWasAppended(t *testing.T) {
	f := newFixture(t, journal.Options{})
	id := f.Identity()
	require.NotZero(t, id.ID)
	f.put("a", "1")
	f.put("b", "2")
	f.put("a", "3")
	f.remove("b")
	f.reopen()
	require.Equal(t, id, f.Identity())
	require.Equal(t, []string{logName}, f.Logs())
	f.requireWhole()
	require.Equal(t, map[string]link{"a": {4, 2, "3"}}, stateAt(t, f.File, f.last))
	f.requireChecked()
}

// An opened and closed file is the same file, byte for byte.
func TestOpen_ChangesNothing(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 20, 10, 100)
	require.NoError(t, f.Close())
	before := read(t, f.path)
	f.open()
	f.requireWhole()
	require.NoError(t, f.Close())
	require.True(t, string(before) == string(read(t, f.path)))
	require.NoError(t, f.Close(), "once more does nothing")
}

func TestOpen_ReadOnlyReadsAndWritesNothing(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 10, 10, 100)
	f.raise(f.last)
	f.trim(journal.Budget{})
	f.reopen()
	before, err := f.Usage()
	require.NoError(t, err)
	require.Positive(t, before.Free)
	require.NoError(t, f.Close())
	require.NoError(t, os.Chmod(f.path, 0o400))
	f.opts.ReadOnly = true
	f.open()
	f.requireWhole()
	second, err := journal.Open(f.path, f.opts)
	require.NoError(t, err, "any number of readers")
	require.NoError(t, second.Close())

	f.stage(journal.Put, "x", "x")
	err = f.commit()
	require.ErrorIs(t, err, journal.ErrReadOnly)
	require.ErrorContains(t, err, f.path)
	_, err = f.Declare("more", 1)
	require.ErrorIs(t, err, journal.ErrReadOnly)
	_, err = f.Declare(logName, 1)
	require.NoError(t, err)
	u, err := f.Usage()
	require.NoError(t, err)
	require.Equal(t, before, u)

	_, err = journal.Open(f.path+"x", journal.Options{ReadOnly: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = os.Stat(f.path + "x")
	require.ErrorIs(t, err, fs.ErrNotExist, "it is not made")
}

func TestOpen_SaysWhatToDoAboutBadPaths(t *testing.T) {
	dir := t.TempDir()
	_, err := journal.Open(filepath.Join(dir, "missing", "state.db"), journal.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "is its directory there")
	_, err = journal.Open(dir, journal.Options{ReadOnly: true})
	require.ErrorContains(t, err, "not a regular file")
	_, err = journal.Open(dir, journal.Options{})
	require.ErrorContains(t, err, dir)
	_, err = journal.Open("", journal.Options{})
	require.ErrorIs(t, err, usercode.ErrConfig)
	require.ErrorContains(t, err, "path is empty; give that of the file")
	require.NoFileExists(t, journal.Unfinished(""))
	_, err = journal.Check("", 0)
	require.ErrorIs(t, err, usercode.ErrConfig)
	_, _, err = journal.Shrink(t.Context(), "", 0)
	require.ErrorIs(t, err, usercode.ErrConfig)
	_, err = journal.Restore(t.Context(), strings.NewReader(""), "", journal.RestoreOptions{})
	require.ErrorIs(t, err, usercode.ErrConfig)

}

func TestOpen_RefusesOptionsThatCannotBe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	for _, c := range []struct {
		opts    journal.Options
		problem string
	}{
		{journal.Options{LockTimeout: -1}, "LockTimeout is -1ns, which is negative; zero means 1s"},
		{journal.Options{MaxBytes: leastMaxBytes - 1}, fmt.Sprintf("MaxBytes is %d, which is less than %d; zero means no bound", leastMaxBytes-1, leastMaxBytes)},
		{journal.Options{MaxBytes: -1}, fmt.Sprintf("MaxBytes is -1, which is less than %d; zero means no bound", leastMaxBytes)},
		{journal.Options{ShrinkAt: 1}, "ShrinkAt is 1, which is not between 0 and 1; zero means never"},
		{journal.Options{ShrinkAt: -0.1}, "ShrinkAt is -0.1, which is not between 0 and 1; zero means never"},
		{journal.Options{ReadOnly: true, Salvage: true}, "ReadOnly excludes Salvage and ShrinkAt, which write, and MaxBytes"},
		{journal.Options{ReadOnly: true, MaxBytes: leastMaxBytes}, "ReadOnly excludes Salvage and ShrinkAt, which write, and MaxBytes"},
		{journal.Options{ReadOnly: true, ShrinkAt: 0.5}, "ReadOnly excludes Salvage and ShrinkAt, which write, and MaxBytes"},
	} {
		_, err := journal.Open(path, c.opts)
		require.ErrorIs(t, err, usercode.ErrConfig)
		require.ErrorContains(t, err, "invalid configuration: Options."+c.problem)
		require.NoFileExists(t, path)
	}
}

func TestOpen_RefusesOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	for name, content := range map[string]string{"empty": "", "short": "x", "text": strings.Repeat("apiVersion: v1\n", 10_000), "zeros": string(make([]byte, 100_000))} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := journal.Open(path, journal.Options{})
		require.ErrorIs(t, err, journal.ErrCorrupt, name)
		require.ErrorContains(t, err, path, name)
		require.NotContains(t, err.Error(), "dump", "it has nothing to read")
		require.Equal(t, content, string(read(t, path)))
		if content == "" {
			require.ErrorContains(t, err, "remove it")
		} else {
			require.ErrorContains(t, err, "does not begin like a file of objects: give the path of one")
			require.NotContains(t, err.Error(), "damaged", "it is as its program wrote it")
		}
	}
	require.NoError(t, os.Remove(path))
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("other"))
		return err
	}))
	require.NoError(t, db.Close())
	_, err = journal.Open(path, journal.Options{})
	require.ErrorIs(t, err, journal.ErrFormat)
	require.ErrorContains(t, err, "not one that watchmill made")
}

// A file of which both meta pages are damaged is not taken for one of another program.
func TestOpen_SaysWhatToDoAboutAFileWithoutAValidMetaPage(t *testing.T) {
	f := newFixture(t, journal.Options{})
	require.NoError(t, f.Close())
	content := read(t, f.path)
	content[16+56]++ // the checksum
	content[os.Getpagesize()+16+56]++
	for _, beginning := range []int{0, 16} { // 16 is where the magic number begins
		clear(content[beginning : beginning+16])
		require.NoError(t, os.WriteFile(f.path, content, 0o600))
		_, err := journal.Open(f.path, journal.Options{})
		require.ErrorIs(t, err, journal.ErrCorrupt)
		require.ErrorContains(t, err, f.path+", page 0: damaged: neither meta page is valid")
		require.ErrorContains(t, err, "restore a snapshot, or dump")
	}
}

// Every format begins with its number, whatever follows it.
func TestOpen_RefusesANewerFormatByName(t *testing.T) {
	newer := journal.Identity{Format: 2}
	for _, identity := range [][]byte{newer.Encode(), journal.Seal([]byte{0, 0, 0, 0, 2})} {
		f := newFixture(t, journal.Options{})
		require.NoError(t, f.Close())
		db, err := bbolt.Open(f.path, 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("watchmill")).Put([]byte("file"), identity)
		}))
		require.NoError(t, db.Close())
		_, err = journal.Open(f.path, journal.Options{})
		var format *journal.FormatError
		require.ErrorAs(t, err, &format)
		require.Equal(t, uint64(2), format.Format)
		require.ErrorContains(t, err, "newer version")
	}
}

func TestFile_FailsAfterClose(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	require.NoError(t, f.Close())
	f.stage(journal.Put, "a", "2")
	err := f.commit()
	require.ErrorIs(t, err, journal.ErrClosed)
	require.NotErrorIs(t, err, journal.ErrFailed)
	require.ErrorIs(t, f.Read(f.ctx, logName, func(journal.View) error { return nil }), journal.ErrClosed)
	_, err = f.Usage()
	require.ErrorIs(t, err, journal.ErrClosed)
	_, err = f.Snapshot(f.ctx, nil, time.Second)
	require.ErrorIs(t, err, journal.ErrClosed)
	_, err = f.Declare("more", 1)
	require.ErrorIs(t, err, journal.ErrClosed)
}

func TestFile_KeepsLogsApart(t *testing.T) {
	f := newFixture(t, journal.Options{})
	other := func(revision uint64) journal.Entry {
		r := journal.Record{Kind: journal.Put, Key: []byte("n"), Created: 11}
		if revision > 11 {
			r.Prev = revision - 1
		}
		return journal.Entry{Log: "nodes", Revision: revision, Data: r.AppendTo(nil, revision)}
	}
	_, err := f.Declare("nodes", 10)
	require.NoError(t, err)
	f.stage(journal.Put, "a", "1")
	require.NoError(t, f.Append(journal.Batch{Entries: append(f.pending, other(11), other(12))}), "one batch for both")
	f.pending = nil
	require.Equal(t, []string{"nodes", logName}, f.Logs())
	f.requireChecked()
	f.requireWhole()
	b, err := f.Bounds("nodes")
	require.NoError(t, err)
	require.Equal(t, journal.Bounds{First: 10, Trimmed: 10, Last: 12}, b)
	_, err = f.Bounds("none")
	require.ErrorIs(t, err, journal.ErrUnknownLog)
	require.ErrorIs(t, f.Read(f.ctx, "none", nil), journal.ErrUnknownLog)
	_, err = f.Declare("", 1)
	require.Error(t, err)
}

// What a process that was killed has written and not synced is read from the system's memory: it
// must last before readers see it.
func TestOpen_SyncsWhatItHasRead(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	require.NoError(t, f.Close())
	synced, outcome := 0, error(nil)
	defer journal.SetSync(func(file *os.File) error {
		synced++
		require.NoError(t, file.Sync())
		return outcome
	})()
	f.open()
	require.Equal(t, 1, synced)
	require.NoError(t, f.Close())

	outcome = syscall.EIO
	_, err := journal.Open(f.path, f.opts)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, f.path)
	outcome = nil
	f.open()
	require.Equal(t, 3, synced)
	require.NoError(t, f.Close())

	f.opts.ReadOnly = true
	f.open()
	require.Equal(t, 3, synced, "a reader has nothing to sync with")
}

// The process that made the file may have been killed before its name was on the disk.
func TestOpen_SyncsTheNameOfAFileThatItFinds(t *testing.T) {
	f := newFixture(t, journal.Options{})
	require.NoError(t, f.Close())
	var synced []string
	outcome := error(nil)
	defer journal.SetSyncDirectory(func(path string) error {
		synced = append(synced, path)
		return outcome
	})()
	f.open()
	require.Equal(t, []string{filepath.Dir(f.path)}, synced)
	require.NoError(t, f.Close())

	outcome = syscall.EIO
	_, err := journal.Open(f.path, f.opts)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, f.path)
	outcome = &fs.PathError{Op: "open", Path: filepath.Dir(f.path), Err: syscall.EACCES}
	f.open()
	require.NoError(t, f.Close())

	f.opts.ReadOnly = true
	f.open()
	require.Len(t, synced, 3, "a reader has nothing to sync with")
}
