package server

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A disk that hangs while a file is read again keeps only one request waiting.
func TestReload_KeepsOneRequestWaiting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("1"), 0o600))
	reading, hung := make(chan struct{}), make(chan struct{})
	reads := 0
	r, err := load(slog.New(slog.DiscardHandler), func() (string, error) {
		if reads++; reads > 1 {
			close(reading)
			<-hung
		}
		text, err := os.ReadFile(file)
		return string(text), err
	}, file)
	require.NoError(t, err)
	require.Equal(t, "1", r.get())
	require.NoError(t, os.WriteFile(file, []byte("22"), 0o600))
	got := make(chan string, 1)
	go func() { got <- r.get() }()
	<-reading
	require.Equal(t, "1", r.get())
	close(hung)
	require.Equal(t, "22", <-got)
	require.Equal(t, "22", r.get())
}

// A file may be replaced by one of the same size and the same time, as by cp -p, or be written to.
func TestReload_SeesAnyChangeOfAFile(t *testing.T) {
	at := time.Unix(1_000_000_000, 0)
	for how, change := range map[string]func(t *testing.T, file string){
		"it grows and keeps its time": func(t *testing.T, file string) {
			require.NoError(t, os.WriteFile(file, []byte("b "), 0o600))
			require.NoError(t, os.Chtimes(file, at, at))
		},
		"it is replaced by one of its time": func(t *testing.T, file string) {
			require.NoError(t, os.WriteFile(file+".new", []byte("b"), 0o600))
			require.NoError(t, os.Chtimes(file+".new", at, at))
			require.NoError(t, os.Rename(file+".new", file))
		},
		"it is written to": func(t *testing.T, file string) {
			require.NoError(t, os.WriteFile(file, []byte("b"), 0o600))
		},
	} {
		t.Run(how, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			require.NoError(t, os.WriteFile(file, []byte("a"), 0o600))
			require.NoError(t, os.Chtimes(file, at, at))
			read := func() (string, error) {
				text, err := os.ReadFile(file)
				return strings.TrimSpace(string(text)), err
			}
			r, err := load(slog.New(slog.DiscardHandler), read, file)
			require.NoError(t, err)
			require.Equal(t, "a", r.get())
			change(t, file)
			require.Equal(t, "b", r.get())
		})
	}
}

// Otherwise a token that was withdrawn while the server started would stay valid.
func TestReload_SeesAChangeDuringTheFirstReading(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("before"), 0o600))
	reads := 0
	r, err := load(slog.New(slog.DiscardHandler), func() (string, error) {
		text, err := os.ReadFile(file)
		if reads++; reads == 1 {
			require.NoError(t, os.WriteFile(file, []byte("since then"), 0o600))
		}
		return string(text), err
	}, file)
	require.NoError(t, err)
	require.Equal(t, "since then", r.get())
	require.Equal(t, 2, reads)
}

// The process may have no file descriptors left while a token is withdrawn: that must not stay valid until the file
// changes once more.
func TestReload_ReadsAgainWhatCouldNotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("1"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		var failure error
		reads := 0
		var lines strings.Builder
		r, err := load(slog.New(slog.NewTextHandler(&lines, nil)), func() (string, error) {
			reads++
			text, err := os.ReadFile(file)
			return string(text), errors.Join(err, failure)
		}, file)
		require.NoError(t, err)
		failure = errors.New("too many open files")
		require.NoError(t, os.WriteFile(file, []byte("22"), 0o600))
		for range 3 {
			require.Equal(t, "1", r.get())
			require.Equal(t, "1", r.get())
			time.Sleep(againAfter)
		}
		require.Equal(t, 4, reads)
		require.Equal(t, 1, strings.Count(lines.String(), failure.Error()), "one line for each change")
		failure = nil
		require.Equal(t, "22", r.get())
		require.Equal(t, "22", r.get())
		require.Equal(t, 5, reads)
	})
}
