package promises_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const module = "github.com/watchmill/watchmill/"

// What the comment of an interface says.
const (
	never = "never gains methods"
	may   = "may gain methods"
)

// files returns the source files of the packages that programs can import, except those of benchmarks.
func files(t *testing.T) (all []string) {
	const format = `{{$dir := .Dir}}{{$path := .ImportPath}}{{range .GoFiles}}{{$path}}/|{{$dir}}/{{.}}{{"\n"}}{{end}}`
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", format, module+"...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		path, file, found := strings.Cut(strings.TrimSpace(line), "|")
		if found && !strings.Contains(path, "/internal/") && !strings.HasPrefix(path, module+"bench/") {
			all = append(all, file)
		}
	}
	return all
}

// broken returns what is wrong with the interfaces of a file, and how many it has that must say something.
func broken(t *testing.T, file string) (problems []string, judged int) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, decl := range f.Decls {
		types, ok := decl.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			s := spec.(*ast.TypeSpec)
			of, ok := s.Type.(*ast.InterfaceType)
			if !ok || !s.Name.IsExported() || isConstraint(of) || len(of.Methods.List) == 1 {
				continue
			}
			judged++
			if problem := problemOf(of, strings.Join(strings.Fields(types.Doc.Text()+s.Doc.Text()), " ")); problem != "" {
				problems = append(problems, fmt.Sprintf("%v: %s %s", set.Position(s.Pos()), s.Name, problem))
			}
		}
	}
	return problems, judged
}

// problemOf returns what is wrong with an interface, for what its comment says; empty for nothing.
func problemOf(of *ast.InterfaceType, comment string) string {
	switch closed := isClosed(of); {
	case strings.Contains(comment, never) == strings.Contains(comment, may):
		return "must say either that it " + never + ", or that it " + may
	case closed && strings.Contains(comment, never):
		return "has an unexported method, so that it " + may
	case !closed && strings.Contains(comment, may):
		return "needs an unexported method, so that it can be implemented by embedding alone"
	}
	return ""
}

// isConstraint reports whether an interface has types or a pointer among its elements, so that no value has
// its type.
func isConstraint(of *ast.InterfaceType) bool {
	for _, element := range of.Methods.List {
		switch element.Type.(type) {
		case *ast.StarExpr, *ast.BinaryExpr, *ast.UnaryExpr:
			return true
		}
	}
	return false
}

// isClosed reports whether an interface has an unexported method.
func isClosed(of *ast.InterfaceType) bool {
	for _, element := range of.Methods.List {
		for _, name := range element.Names {
			if !name.IsExported() {
				return true
			}
		}
	}
	return false
}

func TestInterfaces_SayWhetherTheyMayGainMethods(t *testing.T) {
	var problems []string
	judged := 0
	for _, file := range files(t) {
		of, n := broken(t, file)
		problems = append(problems, of...)
		judged += n
	}
	require.Empty(t, strings.Join(problems, "\n"))
	require.Greater(t, judged, 20)
}

// The test finds what it is for.
func TestInterfaces_ThatPromiseNothingOrTooMuchAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.go")
	require.NoError(t, os.WriteFile(file, []byte(`package p

// Silent says nothing.
type Silent interface{ A(); B() }

// Closed never gains methods.
type Closed interface{ A(); b() }

// Open may gain
// methods.
type Open interface{ A(); B() }

// Both never gains methods, and may gain methods.
type Both interface{ A(); b() }

// Complete never gains methods.
type Complete interface{ A(); B() }

// Growing may gain methods.
type Growing interface{ A(); b() }

type (
	One          interface{ A() }
	Number       interface{ ~int | ~uint; A() }
	Pointer[T any] interface{ *T; A() }
	notExported  interface{ A(); B() }
)
`), 0o600))
	problems, judged := broken(t, file)
	require.Equal(t, 6, judged)
	require.Len(t, problems, 4)
	for i, problem := range []string{"Silent must say either", "Closed has an unexported", "Open needs an unexported", "Both must say either"} {
		require.Contains(t, problems[i], problem)
	}
}
