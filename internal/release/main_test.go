package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output runs a program in dir, with variables beside those of the test, and returns what it prints to standard output.
func output(t *testing.T, env []string, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s: %s%s", name, strings.Join(args, " "), out, &stderr)
	return strings.TrimSpace(string(out))
}

// write writes a file, and makes its folders.
func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

// commitAll makes a folder a repository, with one commit. Git does not depend on the machine's configuration.
func commitAll(t *testing.T, dir string) {
	t.Helper()
	for _, of := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+of+"_NAME", "tester")
		t.Setenv("GIT_"+of+"_EMAIL", "tester@example.com")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	output(t, nil, dir, "git", "init", "--quiet")
	output(t, nil, dir, "git", "add", "--all", "--force")
	output(t, nil, dir, "git", "commit", "--quiet", "--message", "Begin")
}
