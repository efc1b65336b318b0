package interop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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

	args, ok := strings.CutPrefix(shown[0].command, "go run ./cmd/watchmill ")
	require.True(t, ok, "the README's first console command is %q", shown[0].command)
	server := startProcess(t, dir, strings.Fields(args)...)
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
