package interop_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// watchmillPath builds watchmill, once, and returns the program's path.
var watchmillPath = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "watchmill")
	build := exec.Command("go", "build", "-o", path, "./cmd/watchmill")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// process is `watchmill serve`, run as a process.
type process struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

// startProcess runs watchmill with these arguments in the folder, listening on a free port.
func startProcess(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	program, err := watchmillPath()
	require.NoError(t, err)
	p := &process{cmd: exec.CommandContext(t.Context(), program, append(args, "--listen", "127.0.0.1:0")...)}
	p.cmd.Dir, p.cmd.Stderr = dir, os.Stderr
	pipe, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.stdout = bufio.NewReader(pipe)
	require.NoError(t, p.cmd.Start())
	return p
}

// stop sends SIGTERM, and returns what the process still printed.
func (p *process) stop(t *testing.T) string {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	require.NoError(t, p.cmd.Wait(), "it drains and exits with 0")
	return string(rest)
}
