package scenario

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Load reads a scenario from a file and validates it.
//
// Errors: [Errors] with file, line and column, or the error of opening or reading
// the file.
func Load(file string) (*Scenario, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1)) // one byte more, so that parse can tell that the file is too large
	if err != nil {
		return nil, err
	}
	return parse(file, filepath.Dir(file), data)
}

// Parse reads a scenario from YAML and validates it. The name is the file's name in
// errors. The memory that it takes is bounded by the limits in the package's
// documentation.
//
// Errors: [Errors] with line and column: the first error of the YAML itself, or
// else all unknown fields and values of a wrong type, or else all invalid values.
func Parse(name string, data []byte) (*Scenario, error) { return parse(name, "", data) }

func parse(file, dir string, data []byte) (*Scenario, error) {
	s, places, errs := decode(data)
	if errs == nil {
		s.dir = dir
		s.Name = cmp.Or(s.Name, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
		errs = s.validate(places)
	}
	if errs == nil {
		return s, nil
	}
	for _, e := range errs {
		e.File = file
		if e.Line == 0 {
			e.Line, e.Column = places.of(e.Field)
		}
	}
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return nil, errs
}

// decode reads the YAML and returns the positions of the fields.
func decode(data []byte) (*Scenario, places, Errors) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the mark with which some editors begin a file
	if e := checkText(data); e != nil {
		return nil, nil, Errors{e}
	}
	tokens := lexer.Tokenize(string(data))
	if e := checkTokens(tokens); e != nil {
		return nil, nil, Errors{e}
	}
	tokens, e := onlyDocument(tokens)
	if e != nil {
		return nil, nil, Errors{e}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, nil, Errors{yamlError(err)}
	}
	root := file.Docs[0].Body
	x := indexer{places: places{}, anchors: map[string]ast.Node{}, overridden: map[string]int{}}
	x.walk(root, reflect.TypeFor[Scenario](), "")
	if len(x.errs) > 0 {
		return nil, nil, x.errs
	}
	s := &Scenario{}
	// The parser has refused keys that are written twice; those left are of merged mappings.
	if err := yaml.NodeToValue(root, s, yaml.DisallowUnknownField(), yaml.AllowDuplicateMapKey()); err != nil {
		return nil, nil, Errors{yamlError(err)}
	}
	return s, x.places, nil
}

// onlyDocument returns the tokens of the file's only document. The parser gets no others, since it leaves out the
// document after one that is empty.
func onlyDocument(tokens token.Tokens) (only token.Tokens, e *Error) {
	for from := 0; from < len(tokens); {
		to := from
		for to < len(tokens) && tokens[to].Type != token.DocumentHeaderType && tokens[to].Type != token.DocumentEndType {
			to++
		}
		document := tokens[from:to]
		from = to + 1
		first := slices.IndexFunc(document, func(tk *token.Token) bool { return tk.Type != token.CommentType })
		switch {
		case first < 0:
		case document[first].Type == token.DirectiveType:
			return nil, errorAt(document[first], "there is a directive", "leave its line out")
		case only != nil:
			return nil, errorAt(document[first], "there is a second document", "write one scenario per file")
		default:
			only = document
		}
	}
	if only == nil {
		return nil, &Error{Line: 1, Column: 1, Problem: "the file is empty", Fix: "describe writers, watchers or readers"}
	}
	return only, nil
}

// yamlError converts an error of the YAML library.
func yamlError(err error) *Error {
	e := &Error{Line: 1, Column: 1, Fix: "write it as YAML"}
	var syntax *yaml.SyntaxError
	var mismatch *yaml.TypeError
	var overflow *yaml.OverflowError
	var unexpected *yaml.UnexpectedNodeTypeError
	var placed yaml.Error
	switch {
	case errors.As(err, &syntax):
		switch e.Problem = syntax.Message; {
		case strings.HasPrefix(e.Problem, "mapping key "):
			e.Fix = "keep one of them"
		case strings.Contains(e.Problem, "'\t'"), strings.HasPrefix(e.Problem, "tab character"):
			e.Problem, e.Fix = "there is a tab where only spaces may be", "write spaces in its place"
		}
	case errors.As(err, &mismatch):
		e.Problem = quoted(mismatch.Token.Value) + " is not " + kindName(mismatch.DstType)
		e.Fix = "write " + kindExample(mismatch.DstType)
	case errors.As(err, &overflow):
		e.Problem = fmt.Sprintf("%s is out of range for %s", shortened(overflow.SrcNum, maxQuoted), kindName(overflow.DstType))
		e.Fix = "write a smaller number"
	case errors.As(err, &unexpected):
		e.Problem = fmt.Sprintf("a %v is where a %v belongs", unexpected.Actual, unexpected.Expected)
		e.Fix = "see the documentation of the field"
	case errors.As(err, &placed): // its Error method prints the whole source
		e.Problem = placed.GetMessage()
	default:
		e.Problem = err.Error()
	}
	if errors.As(err, &placed) {
		if token := placed.GetToken(); token != nil {
			e.Line, e.Column = token.Position.Line, token.Position.Column
		}
	}
	return e
}

//go:embed library/*.yaml
var library embed.FS

// Library returns the names of the shipped scenarios, sorted.
func Library() []string {
	files, _ := library.ReadDir("library") // cannot fail: it is embedded
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(f.Name(), ".yaml")
	}
	slices.Sort(names)
	return names
}

// Source returns the file of a shipped scenario. Errors: an [*Error] that lists the
// shipped scenarios.
func Source(name string) ([]byte, error) {
	data, err := library.ReadFile(path.Join("library", name+".yaml"))
	if err != nil {
		return nil, &Error{Problem: "there is no shipped scenario " + name, Fix: "there are " + listed(Library())}
	}
	return data, nil
}

// Shipped returns the shipped scenario of that name. Errors: those of [Source].
func Shipped(name string) (*Scenario, error) {
	data, err := Source(name)
	if err != nil {
		return nil, err
	}
	return Parse(name+".yaml", data)
}
