package draft_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
)

func TestDraft_ReplacesTheFileOnceItIsWhole(t *testing.T) {
	dir := t.TempDir()
	old, link := filepath.Join(dir, "old"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(old, []byte("before"), 0o640))
	require.NoError(t, os.Symlink(old, link))
	for _, name := range []string{old, link, filepath.Join(dir, "new")} {
		d, err := draft.New(name)
		require.NoError(t, err)
		before, _ := os.ReadFile(old)
		_, err = io.WriteString(d, "after "+name)
		require.NoError(t, err)
		still, _ := os.ReadFile(old)
		require.Equal(t, before, still)
		require.NoError(t, d.Publish())
		d.Discard() // too late
		after, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, "after "+name, string(after))
	}
	require.Equal(t, []string{"link", "new", "old"}, filetest.Names(t, dir))
	info, err := os.Lstat(old)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode())
	info, err = os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}

func TestDraft_LeavesNothingIfDiscarded(t *testing.T) {
	dir := t.TempDir()
	d, err := draft.New(filepath.Join(dir, "new"))
	require.NoError(t, err)
	_, err = io.WriteString(d, "half")
	require.NoError(t, err)
	require.Len(t, filetest.Names(t, dir), 1)
	d.Discard()
	require.Empty(t, filetest.Names(t, dir))
}

// A program may be killed between the beginning of a run and the writing of its report.
func TestDraft_HasNoFileBeforeItIsWritten(t *testing.T) {
	dir := t.TempDir()
	d, err := draft.New(filepath.Join(dir, "new"))
	require.NoError(t, err)
	require.Empty(t, filetest.Names(t, dir))
	require.NoError(t, d.Publish(), "an empty one")
	require.Equal(t, []string{"new"}, filetest.Names(t, dir))
}

// A backup whose link leads to another disk goes there the first time, too.
func TestDraft_FollowsALinkToAFileThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Mkdir("far", 0o700))
	require.NoError(t, os.Symlink("far", "near"))
	require.NoError(t, os.Symlink("near/file", "link"))
	require.True(t, draft.SameFile("link", "far/file"))
	require.NoError(t, os.WriteFile("far/file.0123cdef.tmp", nil, 0o600)) // of a process that was killed
	require.NoError(t, draft.Clean("link"))
	d, err := draft.New("link")
	require.NoError(t, err)
	require.NoError(t, d.Publish())
	require.Equal(t, []string{"file"}, filetest.Names(t, "far"))
	require.Equal(t, []string{"far", "link", "near"}, filetest.Names(t, dir))
	info, err := os.Lstat("link")
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}

// The draft's own name would be news to the user.
func TestDraft_NamesTheFileInErrors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "away", "new")
	require.NoError(t, os.Mkdir(filepath.Dir(name), 0o700))
	d, err := draft.New(name)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Dir(name)))
	_, err = io.WriteString(d, "x")
	require.ErrorContains(t, err, "open "+name+":")
	require.ErrorIs(t, d.Publish(), os.ErrNotExist)
}

func TestCheck_FindsWhetherThereCanBeAFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, draft.Check(filepath.Join(dir, "new")))
	require.Empty(t, filetest.Names(t, dir))
	require.ErrorIs(t, draft.Check(filepath.Join(dir, "no", "file")), os.ErrNotExist)
	require.ErrorContains(t, draft.Check(dir), "is a directory")
	require.NoError(t, draft.Check(os.DevNull))
}

func TestSpecial_IsNeitherAFileNorADirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, want := range map[string]bool{dir: false, file: false, filepath.Join(dir, "none"): false, os.DevNull: true} {
		require.Equal(t, want, draft.Special(name), name)
	}
}

// A pipe cannot be replaced.
func TestDraft_WritesIntoAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	d, err := draft.New(fmt.Sprintf("/dev/fd/%d", w.Fd()))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = io.WriteString(d, "report")
	require.NoError(t, err)
	require.NoError(t, d.Publish())
	read, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "report", string(read))
}

func TestDraft_NeedsAPlace(t *testing.T) {
	dir := t.TempDir()
	_, err := draft.New(filepath.Join(dir, "no", "file"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, filepath.Join("no", "file")+":", "the name that was given, and not the draft's")
	_, err = draft.New(dir)
	require.ErrorContains(t, err, "is a directory")
	require.Empty(t, filetest.Names(t, dir))
}

// A draft of no file would be written to the folder of the process, and stay there.
func TestDraft_NeedsAName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	_, err := draft.New("")
	require.ErrorContains(t, err, "name of the file to write is empty")
	_, err = draft.NewFile("", 0o600)
	require.ErrorContains(t, err, "name of the file to write is empty")
	require.ErrorContains(t, draft.Check(""), "name of the file to write is empty")
	require.Empty(t, filetest.Names(t, dir))
}

// One file has many names, also before it is there.
func TestSameFile_SeesThroughNames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("file", nil, 0o600))
	require.NoError(t, os.WriteFile("other", nil, 0o600))
	require.NoError(t, os.Symlink("file", "link"))
	require.NoError(t, os.Mkdir("directory", 0o700))
	require.NoError(t, os.Symlink("directory", "also"))
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"file", filepath.Join(dir, "file"), true},
		{"file", "link", true},
		{"file", "other", false},
		{"new", "./new", true},
		{filepath.Join(dir, "new"), "new", true},
		{"new", "newer", false},
		{"file", "new", false},
		{"directory/new", "also/new", true},
		{"directory/new", "new", false},
		{"none/new", "none/new", true},
	} {
		require.Equal(t, c.same, draft.SameFile(c.a, c.b), "%s and %s", c.a, c.b)
	}
}

func TestNewFile_HasThePermissionsOnceItIsPublished(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	d, err := draft.NewFile(name, 0o600)
	require.NoError(t, err)
	require.NoError(t, d.Publish())
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

// A new file has the permissions that any program gives it.
func TestNew_LeavesThePermissionsToTheMask(t *testing.T) {
	dir := t.TempDir()
	other, name := filepath.Join(dir, "other"), filepath.Join(dir, "new")
	made, err := os.Create(other)
	require.NoError(t, err)
	require.NoError(t, made.Close())
	d, err := draft.New(name)
	require.NoError(t, err)
	require.NoError(t, d.Publish())
	want, err := os.Stat(other)
	require.NoError(t, err)
	got, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, want.Mode(), got.Mode())
}

// Where something else has come into being meanwhile, the draft does not replace it, and does not stay.
func TestDraft_ThatCannotBePublishedIsAnError(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "new")
	d, err := draft.New(name)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(name, 0o700))
	require.ErrorContains(t, d.Publish(), name)
	d.Discard()
	require.Equal(t, []string{"new"}, filetest.Names(t, dir))
	require.DirExists(t, name)
}

// A name that is wrong stays wrong; a disk has room again.
func TestOfDisk_TellsADiskFromAName(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EFBIG: true, syscall.EIO: true,
		syscall.ENOENT: false, syscall.EACCES: false, syscall.EISDIR: false,
	} {
		require.Equal(t, want, draft.OfDisk(&fs.PathError{Op: "write", Path: "x", Err: err}), err)
	}
	require.False(t, draft.OfDisk(nil))
}

// Each process that was killed would leave a draft as large as the file.
func TestClean_RemovesTheDraftsThatWereLeft(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a+b", "a+b.0123cdef.tmp", "a+b.ffffffff.tmp", "aab.ffffffff.tmp", "a+b.new.tmp", "xa+b.ffffffff.tmp", "a+b.ffffffff.tmp.old"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a+b.00000000.tmp"), 0o700))
	require.NoError(t, draft.Clean(filepath.Join(dir, "a+b")))
	require.Equal(t, []string{"a+b", "a+b.00000000.tmp", "a+b.ffffffff.tmp.old", "a+b.new.tmp", "aab.ffffffff.tmp", "xa+b.ffffffff.tmp"}, filetest.Names(t, dir))
	require.ErrorIs(t, draft.Clean(filepath.Join(dir, "none", "a")), fs.ErrNotExist)
	require.NoError(t, os.Symlink(filepath.Join(dir, "a+b"), filepath.Join(dir, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a+b.11111111.tmp"), nil, 0o600))
	require.NoError(t, draft.Clean(filepath.Join(dir, "link")))
	require.NotContains(t, filetest.Names(t, dir), "a+b.11111111.tmp")
}
