package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limits of the flags are those of the server, and it waits for no load balancer that it need not
// wait for.
func TestServe_HasTheLimitsOfItsFlags(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0], "serve", "--crd", manifests, "--listen", "127.0.0.1:0",
		"--max-watches", "1", "--max-reads", "3", "--max-writes", "2", "--max-watches-per-user", "4", "--max-connections-per-address", "50", "--shutdown-delay", "0s", "--drain-watches", "0s")
	child.Env = append(os.Environ(), asCommand+"=1")
	var errs bytes.Buffer
	child.Stderr = &errs
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimSpace(strings.TrimPrefix(first, "serving "))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := func() int {
		req, err := http.NewRequestWithContext(ctx, "GET", url+inDefault+"?watch=1", nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		return resp.StatusCode
	}
	require.Equal(t, []int{200, 429}, []int{watch(), watch()})
	require.NoError(t, child.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, lines)
	require.NoError(t, child.Wait(), errs.String())
	require.Contains(t, errs.String(), "draining: /readyz fails for 0s")
}
