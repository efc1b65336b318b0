package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// serverProcess is watchmill serve in a process of its own.
type serverProcess struct {
	*exec.Cmd
	url  string
	out  *bufio.Reader
	errs bytes.Buffer
}

// startServer starts a server of widgets.
func startServer(t *testing.T, flags ...string) *serverProcess {
	t.Helper()
	args := append([]string{"serve", "--crd", manifests, "--listen", "127.0.0.1:0", "--shutdown-delay", "0s", "--drain-watches", "0s"}, flags...)
	p := &serverProcess{Cmd: exec.CommandContext(t.Context(), os.Args[0], args...)}
	p.Env, p.Stderr = append(os.Environ(), asCommand+"=1"), &p.errs
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	p.out = bufio.NewReader(out)
	first, err := p.out.ReadString('\n')
	require.NoError(t, err)
	p.url = strings.TrimSpace(strings.TrimPrefix(first, "serving "))
	return p
}

// terminate sends a SIGTERM, and returns what the process has written to standard error when it
// has ended without a failure.
func (p *serverProcess) terminate(t *testing.T) string {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, p.out)
	require.NoError(t, p.Wait(), p.errs.String())
	return p.errs.String()
}
