//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// A pipe has its tokens once: a server that waited for others would answer no request.
func TestServe_ReadsAPipeOfTokensOnce(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, syscall.Mkfifo(tokens, 0o600))
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(tokens, []byte("secret,alice\n"), 0) }()
	url, stop := serving(t, server.Options{Data: "memory", TokenFile: tokens})
	defer stop()
	require.NoError(t, <-written)
	require.NoError(t, os.Chtimes(tokens, time.Unix(1, 0), time.Unix(1, 0)))
	for range 2 {
		code, _ := call(t, "GET", url+inDefault, "secret", "")
		require.Equal(t, 200, code)
	}
}

// A pipe has nothing that shows whether it may be overwritten, and would keep the server waiting for that.
func TestServe_RefusesAPipeForItsKubeconfig(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, errs, status := command(t.Context(), "serve", "--crd", manifests, "--listen", "127.0.0.1:0", "--kubeconfig", pipe)
	require.Equal(t, exitUsage, status, errs)
	require.Contains(t, errs, "--kubeconfig is "+pipe+", which is not a regular file; give a new file")
}

// A kubeconfig has a token, and a snapshot all objects, so that only their owner may read them.
func TestServe_FilesAreForTheirOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	tokens, data, snapshot := filepath.Join(dir, "tokens"), filepath.Join(dir, "data"), filepath.Join(dir, "snapshot")
	require.NoError(t, os.WriteFile(tokens, []byte("secret,alice\n"), 0o600))
	opts := server.Options{Data: "bolt:" + data, TokenFile: tokens, Kubeconfig: filepath.Join(dir, "config"), Log: newServedOutput()}
	_, stop := serving(t, opts)
	stop()
	_, errs, status := command(t.Context(), "store", "snapshot", data, snapshot)
	require.Equal(t, exitOK, status, errs)
	for _, name := range []string{opts.Kubeconfig, data, snapshot} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
}
