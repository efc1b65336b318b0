package interop_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// console is a command in a console block of the README, with the output that the block
// shows.
type console struct{ command, output string }

// readmeConsole returns the commands of the README's console blocks in order.
func readmeConsole(t *testing.T) (all []console) {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				all = append(all, console{command: strings.TrimSpace(command)})
				continue
			}
			require.NotEmpty(t, all, "a console block of the README begins without a command")
			all[len(all)-1].output += line
		}
	}
	return all
}

// readmeServer is `watchmill serve`, run as a process.
type readmeServer struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

// startReadmeServer runs the command of the README, on a free port.
func startReadmeServer(t *testing.T, dir, command string) *readmeServer {
	t.Helper()
	program := filepath.Join(t.TempDir(), "watchmill")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/watchmill")
	build.Dir = ".."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	args, ok := strings.CutPrefix(command, "go run ./cmd/watchmill ")
	require.True(t, ok, "the README's first console command is %q", command)
	s := &readmeServer{cmd: exec.CommandContext(t.Context(), program, append(strings.Fields(args), "--listen", "127.0.0.1:0")...)}
	s.cmd.Dir, s.cmd.Stderr = dir, os.Stderr
	pipe, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	s.stdout = bufio.NewReader(pipe)
	require.NoError(t, s.cmd.Start())
	return s
}

// stop sends SIGTERM, and returns what the process still printed.
func (s *readmeServer) stop(t *testing.T) string {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(s.stdout)
	require.NoError(t, err)
	require.NoError(t, s.cmd.Wait(), "it drains and exits with 0")
	return string(rest)
}

// ages matches what changes between two runs: the ages of objects, such as 5s.
var ages = regexp.MustCompile(`\d+s\b`)

// What the README shows of `watchmill serve` and kubectl is what they print.
func TestReadme_ShowsWhatServeAndKubectlPrint(t *testing.T) {
	shown := readmeConsole(t)
	require.Greater(t, len(shown), 4, "the README hardly shows them")
	kubectl, err := kubectls[0].path()
	require.NoError(t, err)
	dir := t.TempDir()
	registry, err := filepath.Abs("../registry")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(registry, filepath.Join(dir, "registry")))

	server := startReadmeServer(t, dir, shown[0].command)
	printed, err := server.stdout.ReadString('\n')
	require.NoError(t, err)
	env := append(os.Environ(), "HOME="+dir, "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
	for _, c := range shown[1:] {
		if setting, ok := strings.CutPrefix(c.command, "export "); ok {
			env = append(env, setting)
			continue
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", c.command)
		cmd.Dir, cmd.Env = dir, env
		out, _ := cmd.CombinedOutput() // one of them is refused, and its output says so
		require.Equal(t, ages.ReplaceAllString(c.output, "0s"), ages.ReplaceAllString(string(out), "0s"), c.command)
	}
	printed += server.stop(t)
	require.Equal(t, shown[0].output, regexp.MustCompile(`:\d+\n`).ReplaceAllString(printed, ":8080\n"))
}
