package doclinks_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const module = "github.com/watchmill/watchmill/"

// member is what a link's type has, as in [testing.T].Name: that is there, too.
var member = regexp.MustCompile(`\[([\w./]+)\]\.([A-Z]\w*)`)

// packages are all that a link may lead to, by import path.
type packages map[string]*files

// files are those of a package, and what finds the symbols and imports that its comments name.
type files struct {
	names  []string
	set    *token.FileSet
	parsed []*ast.File
	find   *comment.Parser
}

func list(t *testing.T) packages {
	const format = `{{$dir := .Dir}}{{.ImportPath}}{{range .GoFiles}}|{{$dir}}/{{.}}{{end}}{{range .CgoFiles}}|{{$dir}}/{{.}}{{end}}`
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", format, module+"...", "std").Output()
	require.NoError(t, err)
	all := packages{}
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		all[parts[0]] = &files{names: parts[1:]}
	}
	require.Contains(t, all, module+"engine")
	return all
}

func (all packages) parse(t *testing.T, path string) *files {
	p := all[path]
	if p == nil || p.find != nil {
		return p
	}
	p.set = token.NewFileSet()
	for _, name := range p.names {
		file, err := parser.ParseFile(p.set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		p.parsed = append(p.parsed, file)
	}
	docs, err := doc.NewFromFiles(p.set, p.parsed, path, doc.AllDecls|doc.PreserveAST)
	require.NoError(t, err)
	p.find = docs.Parser()
	return p
}

// broken returns the links of a package that lead nowhere, each with the place of its comment.
func (all packages) broken(t *testing.T, path string) (problems []string) {
	p := all.parse(t, path)
	// To this parser all that may be a link is one, so that leads can judge it.
	every := comment.Parser{
		LookupPackage: func(name string) (string, bool) { return "name/" + name, true },
		LookupSym:     func(string, string) bool { return true },
	}
	for _, file := range p.parsed {
		for _, group := range file.Comments {
			printer := comment.Printer{DocLinkURL: func(link *comment.DocLink) string {
				if !all.leads(t, p, link) {
					problems = append(problems, fmt.Sprintf("%v: [%v] leads nowhere", p.set.Position(group.Pos()), link.Text[0]))
				}
				return ""
			}}
			printer.HTML(every.Parse(member.ReplaceAllString(group.Text(), "[$1.$2]")))
		}
	}
	return problems
}

// leads reports whether a link in package p leads to something, or is none.
func (all packages) leads(t *testing.T, p *files, link *comment.DocLink) bool {
	path := link.ImportPath
	if name, ok := strings.CutPrefix(path, "name/"); ok {
		receiver, symbol, _ := strings.Cut(name, ".")
		if link.Name == "" && (!token.IsIdentifier(receiver) || p.find.LookupSym("", name) || p.find.LookupSym(receiver, symbol)) {
			return true // to what is not exported, or no link at all
		}
		if path, ok = p.find.LookupPackage(name); !ok {
			path, ok = comment.DefaultLookupPackage(name)
		}
		if !ok {
			return false
		}
	}
	if path != "" {
		p = all.parse(t, path)
	}
	return p != nil && (link.Name == "" || p.find.LookupSym(link.Recv, link.Name))
}

func TestLinks_LeadSomewhere(t *testing.T) {
	all := list(t)
	var problems []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(path, module) {
			problems = append(problems, all.broken(t, path)...)
		}
	}
	require.Empty(t, strings.Join(problems, "\n"))
}

// The test finds what it is for.
func TestLinks_ThatLeadNowhereAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.go")
	require.NoError(t, os.WriteFile(file, []byte(`package p

import "io"

// T is as [io.Reader.Read], [bytes.Buffer], [T.Field], [T].Field, [t.field], [*T] and [io], and not as [io.Nothing],
// [io.ReadCloser.Read], [http.Client], [T.Missing], [U], [T].None and [missing]; see [1 2] and [a:b].
type T struct{ Field io.Reader } // see [V]

type t struct{ field int }
`), 0o600))
	all := list(t)
	all["p"] = &files{names: []string{file}}
	problems := all.broken(t, "p")
	require.Len(t, problems, 8)
	for i, link := range []string{"io.Nothing", "io.ReadCloser.Read", "http.Client", "T.Missing", "U", "T.None", "missing", "V"} {
		require.Contains(t, problems[i], "["+link+"] leads nowhere")
	}
}
