package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

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
