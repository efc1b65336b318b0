package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/filetest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// note is what the files of the tests hold.
type note struct{ Name, Text string }

// writeFile makes a file with a few notes, one changed and one deleted, and returns
// its path and that of a snapshot of it.
func writeFile(t *testing.T, types ...string) (path, snapshot string) {
	path, snapshot = filepath.Join(t.TempDir(), "state.db"), filepath.Join(t.TempDir(), "snapshot")
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	for _, name := range types {
		e := openNotes(t, f, name)
		for _, n := range []note{{"a", "1"}, {"b", "2"}, {"a", "3"}} {
			_, err := e.Put(t.Context(), n)
			require.NoError(t, err)
		}
		_, err = e.Delete(t.Context(), "b", engine.DeleteOptions{})
		require.NoError(t, err)
		_, err = e.Emit(t.Context(), note{"c", "passing"})
		require.NoError(t, err)
		require.NoError(t, e.Close())
	}
	w, err := os.Create(snapshot)
	require.NoError(t, err)
	_, err = f.Snapshot(t.Context(), w)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return path, snapshot
}

// openNotes returns an engine over the notes of one type in a file.
func openNotes(t *testing.T, f *bolt.File, name string) *engine.Engine[note] {
	cfg := engine.Config[note]{Key: func(n note) string { return n.Name }}
	b, err := bolt.New(f, name, bolt.Config{Schema: cfg.Schema(), FirstRevision: 1})
	require.NoError(t, err)
	cfg.Backend = b
	e, err := engine.New(cfg)
	require.NoError(t, err)
	return e
}

func TestStoreCheck_OfAGoodFile(t *testing.T) {
	path, _ := writeFile(t, "notes")
	out, errs, status := command(t.Context(), "store", "check", path)
	require.Zero(t, status, errs)
	var report struct {
		OK      bool
		Records int
		Types   map[string]struct{ Revision int }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.True(t, report.OK)
	require.Equal(t, 5, report.Records)
	require.Equal(t, 6, report.Types["notes"].Revision)
}

func TestStoreCheck_OfADamagedFileExitsWithOne(t *testing.T) {
	path, _ := writeFile(t, "notes")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	whole = bytes.ReplaceAll(whole, []byte(`"Text":"3"`), []byte(`"Text":"4"`)) // on pages of old, too
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	out, errs, status := command(t.Context(), "store", "check", path)
	require.Equal(t, exitFailed, status)
	require.Empty(t, errs, "the report says it")
	require.Contains(t, out, `"ok": false`)
	require.Contains(t, out, path)
	require.Contains(t, out, "revision 4")
	dumped, errs, status := command(t.Context(), "store", "dump", path)
	require.Equal(t, exitFailed, status)
	require.Regexp(t, "defect: .*revision 4", errs)
	require.Equal(t, 3, strings.Count(dumped, "\n"), "the other changes are there")
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, whole, now, "the file is as it was")
}

// One damaged record is one defect, named first, and one more for the record after it.
func TestStoreCheck_ReportsADamagedRecordBeforeWhatFollowsFromIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	e := openNotes(t, f, "notes")
	for _, text := range []string{"first", "second", "third", "fourth", "fifth"} {
		_, err := e.Put(t.Context(), note{"a", text})
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	require.NoError(t, f.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(whole, []byte("second"), []byte("Second")), 0o600))
	out, _, status := command(t.Context(), "store", "check", path)
	require.Equal(t, exitFailed, status)
	var report struct{ Problems []string }
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Len(t, report.Problems, 2)
	require.Contains(t, report.Problems[0], "revision 3: damaged: the record's checksum is wrong")
	require.Contains(t, report.Problems[1], "revision 4: damaged: it does not continue the object's last record")
}

// What is not known is not in the report, and every command exits with 1.
func TestStore_OfAFileThatIsCutOff(t *testing.T) {
	path, snapshot := writeFile(t, "notes")
	for _, name := range []string{path, snapshot} {
		require.NoError(t, os.Truncate(name, 100))
	}
	out, errs, status := command(t.Context(), "store", "check", path)
	require.Equal(t, exitFailed, status, errs)
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.NotContains(t, report, "store")
	require.NotContains(t, report, "created")
	require.NotEmpty(t, report["problems"])
	for _, arguments := range [][]string{{"info", path}, {"dump", path}, {"shrink", path}, {"snapshot", path, path + ".new"}, {"restore", snapshot, path + ".new"}} {
		_, errs, status := command(t.Context(), append([]string{"store"}, arguments...)...)
		require.Equal(t, exitFailed, status, "%v: %s", arguments, errs)
		require.Contains(t, errs, arguments[1])
	}
	require.NoFileExists(t, path+".new")
}

// The remedy that errors and help have for a file that is cut off.
func TestStoreDump_OfAnExtendedCopyPrintsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	e := openNotes(t, f, "notes")
	for i := range 100 {
		_, err := e.Put(t.Context(), note{fmt.Sprint(i), strings.Repeat("x", 1000)})
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	require.NoError(t, f.Close())
	whole, _, status := command(t.Context(), "store", "dump", path)
	require.Zero(t, status)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, info.Size()/4))
	out, errs, status := command(t.Context(), "store", "dump", path)
	require.Equal(t, exitFailed, status)
	require.Empty(t, out)
	size := regexp.MustCompile(`the file is cut off here: .* until a copy is extended to (\d+) bytes, for example with truncate\n`).FindStringSubmatch(errs)
	require.NotNil(t, size, errs)
	n, err := strconv.ParseInt(size[1], 10, 64)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, n))
	out, _, status = command(t.Context(), "store", "dump", path)
	require.Equal(t, exitFailed, status)
	require.NotEmpty(t, out)
	require.Subset(t, slices.Collect(strings.Lines(whole)), slices.Collect(strings.Lines(out)))
}

func TestStoreDump_IsATraceThatReplays(t *testing.T) {
	path, _ := writeFile(t, "notes")
	out, errs, status := command(t.Context(), "store", "dump", path)
	require.Zero(t, status, errs)
	require.Equal(t, "left out: 1 emitted values, which are not state\n", errs)
	history := filepath.Join(t.TempDir(), "dump.ndjson")
	require.NoError(t, os.WriteFile(history, []byte(out), 0o600))
	state := filepath.Join(t.TempDir(), "state.tsv")
	replayed, errs, status := command(t.Context(), "replay", "--watchers=3", "--state", state, history)
	require.Zero(t, status, replayed+errs)
	require.Contains(t, replayed, "4 changes")
	want, err := os.ReadFile(state)
	require.NoError(t, err)
	got, _, status := command(t.Context(), "store", "dump", "--state", path)
	require.Zero(t, status)
	require.Equal(t, string(want), got)
	require.Equal(t, "a\t"+`{"Name":"a","Text":"3"}`+"\n", got)
}

func TestStoreDump_OfManyTypesNamesOne(t *testing.T) {
	path, _ := writeFile(t, "notes", "others")
	_, errs, status := command(t.Context(), "store", "dump", path)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "choose one with --type; there are notes, others\n")
	_, errs, status = command(t.Context(), "store", "dump", "--type=none", path)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, `no type "none"; there are notes, others`)
	out, errs, status := command(t.Context(), "store", "dump", "--type=others", "--state", path)
	require.Zero(t, status, errs)
	require.Contains(t, out, "a\t")
}

// hexadecimal seals a value as text.
type hexadecimal struct{}

func (hexadecimal) Seal(plain, _ []byte) ([]byte, error) { return hex.AppendEncode(nil, plain), nil }

func (hexadecimal) Open(sealed, _ []byte) (plain []byte, stale bool, err error) {
	plain, err = hex.AppendDecode(nil, sealed)
	return plain, false, err
}

// What is sealed is not taken for the value, even if it looks like text.
func TestStoreDump_ShowsSealedValuesAsBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	cfg := engine.Config[note]{Key: func(n note) string { return n.Name }}
	b, err := bolt.New(f, "notes", bolt.Config{Schema: cfg.Schema(), Sealer: hexadecimal{}})
	require.NoError(t, err)
	cfg.Backend = b
	e, err := engine.New(cfg)
	require.NoError(t, err)
	_, err = e.Put(t.Context(), note{"a", "secret"})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, f.Close())
	out, errs, status := command(t.Context(), "store", "dump", "--state", path)
	require.Zero(t, status, errs)
	key, value, _ := strings.Cut(strings.TrimSpace(out), "\t")
	require.Equal(t, "a", key)
	sealed, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(value, "base64:"))
	require.NoError(t, err, value)
	plain, err := hex.DecodeString(string(sealed))
	require.NoError(t, err)
	require.JSONEq(t, `{"Name":"a","Text":"secret"}`, string(plain))
}

func TestStoreInfo_SaysWhatAFileHolds(t *testing.T) {
	path, _ := writeFile(t, "notes")
	out, errs, status := command(t.Context(), "store", "info", path)
	require.Zero(t, status, errs)
	require.Contains(t, out, "timeline 0")
	require.Contains(t, out, "type       notes, at revision 6, history from the beginning\n")
}

func TestStoreShrink_KeepsWhatThereIs(t *testing.T) {
	path, _ := writeFile(t, "notes")
	before, _, _ := command(t.Context(), "store", "dump", path)
	out, errs, status := command(t.Context(), "store", "shrink", path)
	require.Zero(t, status, errs)
	require.Contains(t, out, path+" had ")
	after, _, _ := command(t.Context(), "store", "dump", path)
	require.Equal(t, before, after)
}

func TestStoreShrink_LeavesTheFileAsItIsIfItIsInterrupted(t *testing.T) {
	path, _ := writeFile(t, "notes")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	out, errs, status := command(ctx, "store", "shrink", path)
	require.Equal(t, exitInterrupted, status)
	require.Empty(t, out+errs)
	require.Equal(t, []string{filepath.Base(path)}, filetest.Names(t, filepath.Dir(path)))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestStoreShrink_LeavesASnapshotAsItIs(t *testing.T) {
	_, snapshot := writeFile(t, "notes")
	before, err := os.ReadFile(snapshot)
	require.NoError(t, err)
	_, errs, status := command(t.Context(), "store", "shrink", snapshot)
	require.Equal(t, exitUsage, status)
	require.Contains(t, errs, "is a snapshot")
	after, err := os.ReadFile(snapshot)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestStore_OfWhatIsNoFileExitsWithTwo(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.db")
	for _, arguments := range [][]string{{"check", missing}, {"info", missing}, {"dump", missing}, {"shrink", missing}, {"salvage", missing}, {"snapshot", missing, missing + ".new"}, {"restore", missing, missing + ".new"}} {
		_, errs, status := command(t.Context(), append([]string{"store"}, arguments...)...)
		require.Equal(t, exitUsage, status, arguments)
		require.Contains(t, errs, "missing.db")
		require.Empty(t, filetest.Names(t, filepath.Dir(missing)))
	}
}

// The type may be on a page that is damaged.
func TestStoreDump_OfATypeThatDamageHidesReportsTheDamage(t *testing.T) {
	path, _ := writeFile(t, "notes")
	require.NoError(t, os.Truncate(path, 5000))
	_, errs, status := command(t.Context(), "store", "dump", "--type=notes", path)
	require.Equal(t, exitFailed, status)
	require.Contains(t, errs, "defect: ")
	require.NotContains(t, errs, "no type")
}

// A file of another program is not damaged, so the error is about the path.
func TestStore_OfAFileOfAnotherProgramSaysThatItIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "widgets.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("apiVersion: v1\n", 1000)), 0o600))
	for _, arguments := range [][]string{{"check", path}, {"info", path}, {"dump", path}, {"shrink", path}, {"snapshot", path, path + ".new"}} {
		out, errs, status := command(t.Context(), append([]string{"store"}, arguments...)...)
		require.Equal(t, exitFailed, status, arguments)
		require.Contains(t, out+errs, path+" does not begin like a file of objects: give the path of one")
		require.NotContains(t, out+errs, "damaged", arguments)
	}
	require.Equal(t, []string{"widgets.yaml"}, filetest.Names(t, filepath.Dir(path)))
}

// refusing is an output on a full disk.
type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestStoreDump_SaysThatItsOutputCannotBeWritten(t *testing.T) {
	path, _ := writeFile(t, "notes")
	for _, arguments := range [][]string{{"store", "dump", path}, {"store", "dump", "--state", path}} {
		var errs bytes.Buffer
		require.Equal(t, exitFailed, run(t.Context(), arguments, refusing{}, &errs))
		require.Equal(t, "watchmill: cannot write the dump: no space left on device\n", errs.String())
	}
}

// A long dump fails before its end.
func TestStoreDump_StopsWhenItsOutputFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	cfg := engine.Config[note]{Key: func(n note) string { return n.Name }}
	b, err := bolt.New(f, "notes", bolt.Config{Schema: cfg.Schema()})
	require.NoError(t, err)
	cfg.Backend = b
	e, err := engine.New(cfg)
	require.NoError(t, err)
	_, err = e.Put(t.Context(), note{"a", strings.Repeat("long ", 10_000)})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, f.Close())
	var errs bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"store", "dump", path}, refusing{}, &errs))
	require.Equal(t, "watchmill: cannot write the dump: no space left on device\n", errs.String())
}

// The message for a locked file has no word of Go.
func TestStore_OfALockedFileSaysWhereToCloseIt(t *testing.T) {
	path, _ := writeFile(t, "notes")
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	defer f.Close()
	for _, verb := range []string{"check", "info", "dump", "shrink"} {
		_, errs, status := command(t.Context(), "store", verb, path)
		require.Equal(t, exitFailed, status, verb)
		require.Regexp(t, "^watchmill: .*state.db is locked: this process has had it open for the last .*s: close it there first\n$", errs)
	}
}

// A supervisor or a script that goes by the status need not know which command it has called.
func TestFilesOfObjects_HaveOneExitStatusInAllCommands(t *testing.T) {
	whole, snapshot := writeFile(t, "notes")
	open, err := bolt.Open(whole, bolt.Options{})
	require.NoError(t, err)
	defer open.Close()
	cut, _ := writeFile(t, "notes")
	require.NoError(t, os.Truncate(cut, 100))
	for file, want := range map[string]int{
		filepath.Join(t.TempDir(), "none", "state.db"): exitUsage,
		t.TempDir(): exitUsage,
		snapshot:    exitUsage,
		whole:       exitFailed,
		cut:         exitFailed,
	} {
		for _, args := range [][]string{
			{"store", "shrink", file},
			{"replay", "--backend=bolt:" + file, shipped + ".ndjson.gz"},
			{"serve", "--crd", manifests, "--listen=127.0.0.1:0", "--data=bolt:" + file},
		} {
			_, errs, status := command(t.Context(), args...)
			require.Equal(t, want, status, "%v: %s", args, errs)
		}
	}
}
