package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// harm changes a text in a file, on pages of old, too.
func harm(t *testing.T, path, text string) {
	t.Helper()
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(whole), text)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(whole, []byte(text), []byte(strings.ToUpper(text))), 0o600))
}

// A file with a damaged object is not served. Without that object it is, and clients that knew it
// list again.
func TestStoreSalvage_MakesAFileThatIsServedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	opts := server.Options{Data: "bolt:" + path}
	url, stop := serving(t, opts)
	for _, name := range []string{"good", "damaged", "fine"} {
		code, created := call(t, "POST", url+inDefault, "", `{"metadata":{"name":"`+name+`"},"spec":{"size":3}}`)
		require.Equal(t, 201, code, created)
	}
	stop()
	harm(t, path, `"name":"damaged"`)
	_, errs, status := command(t.Context(), "serve", "--crd", manifests, "--listen", "127.0.0.1:0", "--data", "bolt:"+path)
	require.Equal(t, exitFailed, status)
	require.Contains(t, errs, "by watchmill store salvage")

	out, errs, status := command(t.Context(), "store", "salvage", path)
	require.Equal(t, exitOK, status, errs)
	require.Regexp(t, "^discarded  .*checksum is wrong: .*value is lost\ndeleted    widgets.example.com default/damaged, whose value is lost\n$", out)
	out, _, status = command(t.Context(), "store", "check", path)
	require.Equal(t, exitOK, status, out)
	out, _, status = command(t.Context(), "store", "salvage", path)
	require.Equal(t, exitOK, status)
	require.Equal(t, "nothing is damaged\n", out)

	url, stop = serving(t, opts)
	defer stop()
	for name, want := range map[string]int{"good": 200, "fine": 200, "damaged": 404} {
		code, _ := call(t, "GET", url+inDefault+"/"+name, "", "")
		require.Equal(t, want, code, name)
	}
}

// An object that was written again after the damage is there.
func TestStoreSalvage_DeletesNoObjectThatWasWrittenAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	e := openNotes(t, f, "notes")
	for _, text := range []string{"first", "second", "third"} {
		_, err := e.Put(t.Context(), note{"a", text})
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	require.NoError(t, f.Close())
	harm(t, path, "second")
	out, errs, status := command(t.Context(), "store", "salvage", path)
	require.Equal(t, exitOK, status, errs)
	require.Contains(t, out, "so only history is lost")
	require.NotContains(t, out, "deleted")
	f, err = bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	e = openNotes(t, f, "notes")
	o, err := e.Get(t.Context(), "a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "third", o.Value.Text)
	require.NoError(t, e.Close())
	require.NoError(t, f.Close())
}

// writeDamaged makes a file of one note whose newest value is damaged.
func writeDamaged(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state.db")
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	e := openNotes(t, f, "notes")
	_, err = e.Put(t.Context(), note{"a", "to be damaged"})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, f.Close())
	harm(t, path, "to be damaged")
	return path
}

// A program may have gone on without the value. What it has passed by under the object's key since
// does not bring that back.
func TestStoreSalvage_DeletesAnObjectUnderWhoseKeyAValueWasEmitted(t *testing.T) {
	path := writeDamaged(t)
	f, err := bolt.Open(path, bolt.Options{Salvage: true})
	require.NoError(t, err)
	cfg := engine.Config[note]{Key: func(n note) string { return n.Name }}
	b, err := bolt.New(f, "notes", bolt.Config{Schema: cfg.Schema(), OnUndecodable: bolt.Keep})
	require.NoError(t, err)
	passing := cfg.Schema().New()
	passing.Key = "a"
	_, err = b.Emit(t.Context(), passing)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	out, errs, status := command(t.Context(), "store", "salvage", path)
	require.Equal(t, exitOK, status, errs)
	require.Equal(t, "deleted    notes a, whose value is lost\n", out)
	f, err = bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	require.NoError(t, openNotes(t, f, "notes").Close())
	require.NoError(t, f.Close())
}

func TestStoreSalvage_GoesOnAfterAnInterrupt(t *testing.T) {
	path := writeDamaged(t)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	out, errs, status := command(ctx, "store", "salvage", path)
	require.Equal(t, exitInterrupted, status)
	require.Empty(t, errs)
	require.Regexp(t, "^discarded  .*value is lost\n$", out)
	out, errs, status = command(t.Context(), "store", "salvage", path)
	require.Equal(t, exitOK, status, errs)
	require.Equal(t, "deleted    notes a, whose value is lost\n", out)
}

func TestStoreSalvage_LeavesAFileThatIsNoneAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, errs, status := command(t.Context(), "store", "salvage", path)
	require.Equal(t, exitFailed, status)
	require.Contains(t, errs, path)
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(left))
}

// The program that owns the file may keep more history than the default, which takes more writes to exceed
// than a test has time for.
func TestStoreSalvage_LeavesTheHistoryToTheProgram(t *testing.T) {
	require.Equal(t, math.MaxInt, rawConfig().Retain.MinEvents)
	f, err := bolt.Open(filepath.Join(t.TempDir(), "state.db"), bolt.Options{})
	require.NoError(t, err)
	_, err = bolt.New(f, "notes", rawConfig())
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// fullOutput is standard output on a full disk.
type fullOutput struct{}

func (fullOutput) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A list of what was discarded that cannot be written is a failure.
func TestStoreSalvage_FailsIfItCannotSayWhatItHasDone(t *testing.T) {
	path, _ := writeFile(t, "notes")
	var errs bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"store", "salvage", path}, fullOutput{}, &errs))
	require.Contains(t, errs.String(), syscall.ENOSPC.Error())
}
