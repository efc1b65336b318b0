package interop_test

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// kubectlProgram is one minor version of kubectl.
type kubectlProgram struct {
	// minor is the version's beginning, such as v0.37.
	minor string
	// path builds the program, once, and returns its path.
	path func() (string, error)
}

// kubectls are the versions of kubectl that the tests run, newest first.
var kubectls = []kubectlProgram{
	{"v0.37", sync.OnceValues(func() (string, error) { return buildKubectl("kubectl") })},
	{"v0.36", sync.OnceValues(func() (string, error) { return buildKubectl("kubectlprevious") })},
}

// programs is the folder of the programs that tests build, which TestMain makes.
var programs string

// buildKubectl builds the command in the folder, and returns the program's path. The
// go command keeps programs that it runs in its cache, but not those that it builds: by
// running cp of the program, in place of the program, it does not link 100 MB every time.
func buildKubectl(folder string) (string, error) {
	path := filepath.Join(programs, folder)
	cmd := exec.Command("go", "run", "-exec", fmt.Sprintf(`sh -c 'cp "$1" "$0"' %q`, path), ".")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go run in %s: %w: %s", folder, err, bytes.TrimSpace(out))
	}
	return path, nil
}

// withEachKubectl runs a test with each version of kubectl, against a server of its own.
func withEachKubectl(t *testing.T, test func(t *testing.T, s *server, k *kubectl)) {
	t.Helper()
	for _, program := range kubectls {
		t.Run(program.minor, func(t *testing.T) {
			s := newServer(t)
			test(t, s, newKubectl(t, program, s.cfg.Host))
		})
	}
}

// kubectl runs kubectl against a server.
type kubectl struct {
	t    *testing.T
	path string
	args []string
	home string
}

func newKubectl(t *testing.T, program kubectlProgram, url string) *kubectl {
	t.Helper()
	path, err := program.path()
	require.NoError(t, err)
	return &kubectl{t, path, []string{"-s", url, "-n", "default"}, t.TempDir()}
}

// command is kubectl with these arguments and that standard input.
func (k *kubectl) command(ctx context.Context, input string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.path, append(append([]string{}, k.args...), args...)...)
	cmd.Env = append(os.Environ(), "HOME="+k.home, "KUBECONFIG="+filepath.Join(k.home, "none"))
	cmd.Stdin = strings.NewReader(input)
	return cmd
}

// try runs kubectl and returns what it wrote, errors included.
func (k *kubectl) try(input string, args ...string) (string, error) {
	k.t.Helper()
	out, err := k.command(k.t.Context(), input, args...).CombinedOutput()
	return string(out), err
}

func (k *kubectl) run(args ...string) string { k.t.Helper(); return k.with("", args...) }

func (k *kubectl) with(input string, args ...string) string {
	k.t.Helper()
	out, err := k.try(input, args...)
	require.NoError(k.t, err, "kubectl %s: %s", strings.Join(args, " "), out)
	return out
}

// The programs are of the versions that the tests name, and these are successive.
func TestKubectl_HasTwoMinorVersions(t *testing.T) {
	var minors []int
	for _, program := range kubectls {
		path, err := program.path()
		require.NoError(t, err)
		info, err := buildinfo.ReadFile(path)
		require.NoError(t, err)
		built := ""
		for _, module := range info.Deps {
			if module.Path == "k8s.io/kubectl" {
				built = module.Version
			}
		}
		require.Contains(t, built, program.minor+".", "the version in go.mod and the one in the table of kubectls")
		var minor int
		_, err = fmt.Sscanf(program.minor, "v0.%d", &minor)
		require.NoError(t, err)
		minors = append(minors, minor)
	}
	require.Len(t, minors, 2)
	require.Equal(t, minors[0]-1, minors[1])
}
