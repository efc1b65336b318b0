//go:build platforms

package platforms_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

const module = "github.com/watchmill/watchmill/"

// standard is where the sources of the standard library are.
var standard = filepath.Join(build.Default.GOROOT, "src") + string(filepath.Separator)

// parse reads a file, without the bodies of functions if it is of the standard library, which
// is right for all targets. That saves a quarter of the time.
func parse(files *token.FileSet, name string, source []byte) (*ast.File, error) {
	file, err := parser.ParseFile(files, name, source, parser.AllErrors|parser.SkipObjectResolution)
	if file == nil || !strings.HasPrefix(name, standard) {
		return file, err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
	return file, err
}

// load type-checks packages, and their tests if they are to be, for a target from their
// sources, with all that they import, and returns what is wrong with them. Of the standard library only the
// declarations count: its imports are unused without the bodies of its functions.
func load(t *testing.T, target string, tests bool, overlay map[string][]byte, patterns ...string) (problems []string) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // most of the garbage is of one load
	system, arch, _ := strings.Cut(target, "/")
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(), Mode: packages.LoadAllSyntax, Tests: tests, Overlay: overlay, ParseFile: parse,
		Env: append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
	}, patterns...)
	require.NoError(t, err)
	require.NotEmpty(t, loaded)
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if !strings.HasPrefix(e.Pos, standard) {
				problems = append(problems, e.Error())
			}
		}
	})
	return problems
}

// all are the packages of the module.
func all(t *testing.T) (paths []string) {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{Context: t.Context(), Mode: packages.NeedName}, module+"...")
	require.NoError(t, err)
	for _, p := range loaded {
		paths = append(paths, p.PkgPath)
	}
	require.Greater(t, len(paths), 40)
	return paths
}

// without leaves out the packages below some folders.
func without(paths []string, folders ...string) (rest []string) {
	for _, path := range paths {
		left := false
		for _, folder := range folders {
			left = left || strings.HasPrefix(path+"/", module+folder)
		}
		if !left {
			rest = append(rest, path)
		}
	}
	return rest
}

func TestPackages_AreRightForOtherSystems(t *testing.T) {
	for _, target := range []string{"windows/amd64", "darwin/arm64", "freebsd/amd64", "linux/386", "linux/arm", "linux/arm64"} {
		t.Run(target, func(t *testing.T) {
			require.Empty(t, load(t, target, true, nil, all(t)...))
		})
	}
}

// A browser has no files to map into memory and starts no commands, so storage in files,
// what mentions it, and tests are not for it.
func TestPackages_AreRightForBrowsers(t *testing.T) {
	require.Empty(t, load(t, "js/wasm", false, nil, without(all(t), "store/backend/bolt/", "cmd/", "bench/", "internal/buildcost/")...))
}

// The test finds what it is for.
func TestPackages_ThatAreWrongForASystemAreFound(t *testing.T) {
	file, err := filepath.Abs("doc.go")
	require.NoError(t, err)
	wrong := map[string][]byte{file: []byte(`package platforms

import "syscall"

const size int = 1 << 40

var signal = syscall.SIGUSR1
`)}
	require.Empty(t, load(t, "linux/amd64", false, wrong, "."))
	require.Contains(t, strings.Join(load(t, "linux/386", false, wrong, "."), "\n"), "1 << 40")
	require.Contains(t, strings.Join(load(t, "windows/amd64", false, wrong, "."), "\n"), "SIGUSR1")
}
