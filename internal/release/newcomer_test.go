//go:build release

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
)

const root = "../.."

// programs has a value of a package of each published module that has any to import, and the value's type. The other published
// modules are commands.
var programs = map[string]struct{ pkg, value, kind string }{
	"":                   {"engine", "engine.NewTopic[string]()", "*engine.Topic[string]"},
	"store/backend/etcd": {"store/backend/etcd", "etcd.Config{}", "etcd.Config"},
	"serve/lease":        {"serve/lease", "lease.Lease{}", "v1.Lease"},
	"serve/corekinds":    {"serve/corekinds", "corekinds.Config{}", "corekinds.Config"},
	"registry/crd/cel":   {"registry/crd/cel", "cel.Rules{}", "cel.Rules"},
}

// commands are the folders of the programs that users install.
var commands = []string{"cmd/watchmill", "cmd/watchmill/watchmill-etcd"}

// newcomer returns the environment of a machine with an empty module cache. No checksum database has the modules of the proxy.
func newcomer(t *testing.T, proxy, bin string) []string {
	return []string{
		"GOPROXY=" + proxy, "GOPRIVATE=", "GONOPROXY=", "GOSUMDB=off", "GOMODCACHE=" + t.TempDir(), "GOWORK=off", "GOBIN=" + bin,
		// Without -trimpath each run would compile everything again, and keep it, since the cache has another path.
		"GOFLAGS=-trimpath -modcacherw",
	}
}

// TestRelease_IsForNewcomers prepares a release of this tree and uses it as those do who have no clone. By default it loads all packages,
// and compiles nothing. With WATCHMILL_RELEASE_BUILD it builds and runs what it has got and installed, in a few minutes.
func TestRelease_IsForNewcomers(t *testing.T) {
	clone, version := copyTree(t), nextVersion(t)
	commit, err := prepare(t.Context(), clone, version, time.Now())
	require.NoError(t, err)
	build, bin := os.Getenv("WATCHMILL_RELEASE_BUILD") != "", t.TempDir()
	env := newcomer(t, newProxy(t, clone, commit, version), bin)
	for folder, program := range programs {
		t.Run("get "+path.Base(program.pkg), func(t *testing.T) {
			dir, of := t.TempDir(), path.Join(mainModule, folder)
			write(t, filepath.Join(dir, "main.go"), fmt.Sprintf("package main\n\nimport (\n\t\"fmt\"\n\n\t%q\n)\n\nfunc main() { fmt.Printf(\"%%T\", %s) }\n",
				path.Join(mainModule, program.pkg), program.value))
			output(t, env, dir, "go", "mod", "init", "example.com/newcomer")
			output(t, env, dir, "go", "get", path.Join(mainModule, program.pkg)+"@"+version)
			output(t, env, dir, "go", "list", "-deps", ".")
			if build {
				require.Equal(t, program.kind, output(t, env, dir, "go", "run", "."))
			}
			output(t, env, dir, "go", "mod", "tidy")
			output(t, env, dir, "go", "get", of+"/...@"+version)
			output(t, env, dir, "go", "list", "-deps", of+"/...")
		})
	}
	for _, folder := range commands {
		t.Run("install "+path.Base(folder), func(t *testing.T) {
			of, name := path.Join(mainModule, folder)+"@"+version, path.Base(folder)
			if !build {
				output(t, env, bin, "go", "install", "-n", of)
				return
			}
			output(t, env, bin, "go", "install", of)
			require.Contains(t, output(t, nil, bin, filepath.Join(bin, name), "--version"), name+" "+version+", go")
		})
	}
	for _, folder := range published {
		require.True(t, programs[folder].pkg != "" || folder == commands[1], "%s is published, but is not tried here", folder)
	}
}

// The modules of a release are built with each other in a clone, before they are published.
func TestRelease_IsBuiltInItsClone(t *testing.T) {
	clone, version := copyTree(t), nextVersion(t)
	_, err := prepare(t.Context(), clone, version, time.Now())
	require.NoError(t, err)
	output(t, nil, clone, ".ci/tidy", "-diff")
	for _, folder := range published[1:] {
		dir := filepath.Join(clone, folder)
		require.Equal(t, clone, output(t, nil, dir, "go", "list", "-m", "-f", "{{.Dir}}", mainModule))
		output(t, nil, dir, "go", "list", "-deps", "-test", "./...")
	}
	require.Empty(t, output(t, nil, clone, "git", "status", "--porcelain"), "commit what the go command has completed")
}

// copyTree returns a repository with the files of this one, committed or not, and something to release.
func copyTree(t *testing.T) string {
	copied, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	files := output(t, nil, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // is deleted, but that is not committed
		}
		require.NoError(t, err)
		info, err := os.Stat(filepath.Join(root, name))
		require.NoError(t, err)
		if name == changelogFile {
			text = []byte(strings.Replace(string(text), string(unreleased), string(unreleased)+"\n- An entry.\n", 1))
		}
		write(t, filepath.Join(copied, name), string(text))
		require.NoError(t, os.Chmod(filepath.Join(copied, name), info.Mode()))
	}
	commitAll(t, copied)
	return copied
}

// nextVersion returns a version that comes after those which are released.
func nextVersion(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join(root, changelogFile))
	require.NoError(t, err)
	if last := released.FindSubmatch(text); last != nil {
		return semver.Major(string(last[1])) + ".999.0"
	}
	return "v0.999.0"
}
