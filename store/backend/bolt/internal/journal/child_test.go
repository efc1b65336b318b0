//go:build unix

package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// fillUp writes until there is no space, checks that nothing else has changed,
// what the error says, and that there is life after it when there is space again.
func (f *fixture) fillUp(says string, makeSpace func()) {
	f.Helper()
	random := newRandom(3)
	large := string(make([]byte, 3000))
	var err error
	for err == nil {
		require.Less(f, f.last, uint64(20_000))
		f.stage(journal.Put, fmt.Sprint("key/", random.IntN(50)), large)
		err = f.commit()
	}
	require.ErrorIs(f, err, journal.ErrFull)
	require.ErrorContains(f, err, f.path+": "+says)
	f.takeBack()
	f.requireWhole()
	f.stage(journal.Put, "again", large)
	require.ErrorIs(f, f.commit(), journal.ErrFull)
	f.takeBack()
	makeSpace()
	for range 20 {
		f.put("after", large)
	}
	f.requireWhole()
	f.requireChecked()
	f.requireWhole()
}

// takeBack makes the model forget the last change, which was not written.
func (f *fixture) takeBack() {
	delete(f.states, f.last)
	f.last--
	f.newest = map[string]link{}
	maps.Copy(f.newest, f.states[f.last])
}

// A file uses most of its bound, also the least that it may have, and then has room to discard history.
func TestAppend_SaysThatTheFileIsFull(t *testing.T) {
	for _, c := range []struct {
		page  int
		limit int64
	}{{pageSize, leastMaxBytes}, {pageSize, 2 * leastMaxBytes}, {64 << 10, 8 << 20}} {
		f := newFixture(t, journal.Options{MaxBytes: c.limit})
		f.setPageSize(c.page)
		f.fillUp("the file has reached its largest size", func() {
			require.Greater(t, f.size(), c.limit/4*3)
			f.raise(f.last)
			f.trim(journal.Budget{Records: 50})
		})
		require.LessOrEqual(t, f.size(), c.limit)
	}
}

// setPageSize replaces the file by a copy that has pages of that size, as one from another system may.
func (f *fixture) setPageSize(size int) {
	f.Helper()
	require.NoError(f, f.Close())
	from, err := bbolt.Open(f.path, 0, &bbolt.Options{ReadOnly: true})
	require.NoError(f, err)
	to, err := bbolt.Open(f.path+".paged", 0o600, &bbolt.Options{PageSize: size})
	require.NoError(f, err)
	require.NoError(f, bbolt.Compact(to, from, 0))
	require.NoError(f, errors.Join(from.Close(), to.Close()))
	require.NoError(f, os.Rename(f.path+".paged", f.path))
	f.open()
}

const noSpaceLeft = "no space left: nothing was written"

const childEnv = "JOURNAL_TEST_CHILD"

// inChild runs a test in a process of its own, whose files limitFiles may limit: there it calls
// test.
func inChild(t *testing.T, test func()) {
	t.Helper()
	if os.Getenv(childEnv) != "" {
		signal.Ignore(syscall.SIGXFSZ)
		test()
		return
	}
	child := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childEnv+"=1")
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name(), "the child has run it")
}

// limitFiles lets no file of this process grow beyond a number of bytes, until the limit is
// lifted. Writes then meet what a full disk would be: EFBIG in place of ENOSPC.
func limitFiles(t *testing.T, bytes uint64) (lift func()) {
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	assign(&limit.Cur, bytes)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	return func() {
		limit.Cur = limit.Max
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	}
}

// assign sets a number whose type depends on the system.
func assign[N int64 | uint64](to *N, n uint64) { *to = N(n) }

func TestFile_LivesWithAFullDisk(t *testing.T) {
	inChild(t, func() {
		f := newFixture(t, journal.Options{})
		f.fillUp(noSpaceLeft, limitFiles(t, 2<<20))
	})
}

// A file for whose copy there is no space is opened as it is, and shrunk when there is some.
func TestOpen_ShrinksLaterIfTheDiskIsFull(t *testing.T) {
	inChild(t, func() { shrinkOnAFullDisk(t) })
}

func shrinkOnAFullDisk(t *testing.T) {
	f, before := newMostlyFree(t)
	require.NoError(t, f.Close())

	lift := limitFiles(t, 16<<10)
	f.opts.ShrinkAt = 0.5
	f.open()
	u, err := f.Usage()
	require.NoError(t, err)
	require.ErrorIs(t, u.Unshrunk, journal.ErrFull)
	require.ErrorIs(t, u.Unshrunk, syscall.EFBIG)
	require.ErrorContains(t, u.Unshrunk, f.path+" stays as large as it is: cannot shrink "+f.path)
	require.Equal(t, before, u.Size)
	require.NoFileExists(t, journal.Unfinished(f.path))
	f.requireWhole()

	lift()
	f.put("after", "it")
	f.reopen()
	u, err = f.Usage()
	require.NoError(t, err)
	require.NoError(t, u.Unshrunk)
	require.Less(t, u.Size, before/2)
	f.requireWhole()
	f.requireChecked()
}

// A file that cannot be made for lack of space is not there afterwards, and can be made when
// there is some.
func TestOpen_SaysThatTheDiskIsFull(t *testing.T) {
	inChild(t, func() { makeOnAFullDisk(t) })
}

func makeOnAFullDisk(t *testing.T) {
	page := uint64(pageSize)
	for _, size := range []uint64{0, 1, page, 4 * page, 5 * page} { // of which bbolt writes four at once
		path := filepath.Join(t.TempDir(), "state.db")
		lift := limitFiles(t, size)
		_, err := journal.Open(path, journal.Options{})
		requireFull(t, err, path)
		lift()
		f, err := journal.Open(path, journal.Options{})
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}

func TestRestore_SaysThatTheDiskIsFull(t *testing.T) {
	inChild(t, func() { restoreToAFullDisk(t) })
}

func restoreToAFullDisk(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.random(newRandom(1), 5, 20, scaled(1000))
	snapshot, _ := f.snapshot()
	path := filepath.Join(t.TempDir(), "restored.db")
	restore := func(size int) error {
		lift := limitFiles(t, uint64(size))
		defer lift()
		_, err := journal.Restore(t.Context(), bytes.NewReader(snapshot), path, journal.RestoreOptions{})
		return err
	}
	for _, size := range []int{0, len(snapshot) / 2, len(snapshot) - 1} {
		requireFull(t, restore(size), path)
	}
	size := len(snapshot)
	for err := restore(size); err != nil; err = restore(size) {
		requireFull(t, err, path)
		size += pageSize
	}
	require.Greater(t, size, len(snapshot), "the file is larger than the snapshot")
}

// However much space there is, either all logs are salvaged or none is.
func TestSalvage_ChangesNothingIfTheDiskIsFull(t *testing.T) {
	inChild(t, func() { salvageOnAFullDisk(t) })
}

func salvageOnAFullDisk(t *testing.T) {
	f := newFixture(t, journal.Options{})
	f.put("a", "1")
	f.put("a", "2")
	_, err := f.Declare("services", 1)
	require.NoError(t, err)
	of := model{last: 1, newest: map[string]link{}, states: map[uint64]map[string]link{}}
	f.model, of = of, f.model
	for range 300 { // so many that they take more space than the other log
		f.stageRandom(newRandom(f.last), 1000)
	}
	f.model, of = of, f.model
	for i := range of.pending {
		of.pending[i].Log = "services"
	}
	require.NoError(t, f.Append(journal.Batch{Entries: of.pending}))
	require.NoError(t, f.Spoil(logName, map[uint64]bool{f.last: true}))
	require.NoError(t, f.Spoil("services", map[uint64]bool{of.last: true}))
	require.NoError(t, f.Close())
	image, full := read(t, f.path), 0
	f.opts.Salvage = true
	for size := 0; ; size += pageSize {
		require.NoError(t, os.WriteFile(f.path, image, 0o600))
		lift := limitFiles(t, uint64(size))
		f.File, err = journal.Open(f.path, f.opts)
		if err == nil {
			u, err := f.Usage()
			require.NoError(t, err)
			require.Len(t, u.Repairs, 2)
			lift()
			break
		}
		require.ErrorIs(t, err, journal.ErrFull, size)
		lift()
		report, err := journal.Check(f.path, 0)
		require.NoError(t, err)
		require.Len(t, report.Problems, 2, "with %d bytes", size)
		full++
	}
	require.Positive(t, full)
	f.requireChecked()
}

// requireFull checks the error of a file that could not be made, and that nothing is left of
// it.
func requireFull(t *testing.T, err error, path string) {
	t.Helper()
	require.ErrorIs(t, err, journal.ErrFull)
	require.ErrorIs(t, err, syscall.EFBIG)
	require.ErrorContains(t, err, path+": "+noSpaceLeft)
	require.Equal(t, 1, strings.Count(err.Error(), noSpaceLeft))
	require.NoFileExists(t, path)
	require.NoFileExists(t, journal.Unfinished(path))
}

// A real file system without space, where one may be mounted.
func TestAppend_SaysThatTheFileSystemIsFull(t *testing.T) {
	dir, err := mount(t)
	if err != nil {
		t.Logf("no file system of its own can be mounted here (%v): the limit on the size of files stands for it", err)
		return
	}
	f := newFixtureAt(t, filepath.Join(dir, "state.db"), journal.Options{})
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 2<<20), 0o600))
	f.fillUp(noSpaceLeft, func() { require.NoError(t, os.Remove(filler)) })
	require.NoError(t, f.Close())
}

// A file system can have space and no room for one more file.
func TestOpen_SaysThatTheFileSystemTakesNoFile(t *testing.T) {
	dir, err := mount(t, "nr_inodes=1") // which is that of the directory
	if err != nil {
		t.Logf("no file system of its own can be mounted here: %v", err)
		return
	}
	path := filepath.Join(dir, "state.db")
	_, err = journal.Open(path, journal.Options{})
	require.ErrorIs(t, err, journal.ErrFull)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, path+": no space left")
}

// mount mounts an empty file system of 4 MB until the test ends. Few may do that.
func mount(t *testing.T, options ...string) (dir string, err error) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if err := exec.Command("mount", "-t", "tmpfs", "-o", strings.Join(append(options, "size=4m"), ","), "tmpfs", dir).Run(); err != nil {
		return "", err
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", dir).Run()) })
	return dir, nil
}
