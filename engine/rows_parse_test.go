package engine_test

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// tested is where each row of the map is tested: by its number, the names of
// tests and scenarios.
type tested map[int][]string

// naming are the ways in which a row is named: by a test, by a check of a
// conformance suite (the same without Test), or by the file of a scenario.
type naming struct{ byTest, byCheck, byScenario *regexp.Regexp }

// The two maps that we have name their rows differently: that of the watch cache,
// and that of what clients build on it.
var (
	watchCacheRows = namingOf("", "")
	clientRows     = namingOf("Client", "client_")
)

func namingOf(inNames, inFiles string) naming {
	const numbers = `Rows?(\d{3}[a-z]?(?:(?:_|To)\d{3}[a-z]?)*)_[A-Z]`
	return naming{
		byTest:     regexp.MustCompile(`^Test` + inNames + numbers),
		byCheck:    regexp.MustCompile(`^` + inNames + numbers),
		byScenario: regexp.MustCompile(`^` + inFiles + `row_(\d{3}(?:_\d{3})*)_[a-z].*\.txt$`),
	}
}

// findTested looks for tests of rows in all folders of a module.
func findTested(module fs.FS, named naming) (tested, error) {
	rows := tested{}
	err := fs.WalkDir(module, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && len(file) > 1 && strings.HasPrefix(path.Base(file), "."):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		case path.Ext(file) == ".go":
			return rows.addSource(module, file, named)
		case strings.Contains(file, "testdata/"):
			rows.add(named.byScenario, path.Base(file), file)
		}
		return nil
	})
	return rows, err
}

// add notes place for the rows in name, if it names any.
func (r tested) add(pattern *regexp.Regexp, name, place string) {
	match := pattern.FindStringSubmatch(name)
	if match == nil {
		return
	}
	for group := range strings.SplitSeq(match[1], "_") {
		first, last, isRange := strings.Cut(group, "To")
		if !isRange {
			last = first
		}
		for row := number(first); row <= number(last); row++ {
			r[row] = append(r[row], place)
		}
	}
}

// addSource notes the tests of a Go file, or the checks that it holds for the
// tests of others.
func (r tested) addSource(module fs.FS, file string, named naming) error {
	source, err := fs.ReadFile(module, file)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	isTest := strings.HasSuffix(file, "_test.go")
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			if isTest && n.Recv == nil {
				r.add(named.byTest, n.Name.Name, n.Name.Name)
			}
		case *ast.BasicLit:
			if !isTest && n.Kind == token.STRING {
				r.add(named.byCheck, strings.Trim(n.Value, "\"`"), n.Value)
			}
		}
		return true
	})
	return nil
}

// exemption is why a row has no test.
type exemption struct {
	// part is what of the row it is about; empty means all of it.
	part   string
	reason string
}

// exemptions are below the heading that begins and ends so.
const exemptions, doNotApply = "What of ", " does not apply"

// findExempt reads the list of rows without tests from a package's
// documentation. Its items look like
//
//	1, 3 to 5, 7 (its part that does not apply): The reason.
func findExempt(doc string) (map[int]exemption, error) {
	blocks := new(comment.Parser).Parse(doc).Content
	for i, block := range blocks {
		heading, ok := block.(*comment.Heading)
		if !ok || !strings.HasPrefix(plain(heading.Text), exemptions) || !strings.HasSuffix(plain(heading.Text), doNotApply) {
			continue
		}
		for _, after := range blocks[i+1:] {
			if list, ok := after.(*comment.List); ok {
				return exemptBy(list)
			}
		}
	}
	return nil, fmt.Errorf("there is no list under %q", exemptions+"…"+doNotApply)
}

func exemptBy(list *comment.List) (map[int]exemption, error) {
	rows := map[int]exemption{}
	for _, item := range list.Items {
		var text string
		for _, block := range item.Content {
			if paragraph, ok := block.(*comment.Paragraph); ok {
				text += plain(paragraph.Text)
			}
		}
		text = strings.Join(strings.Fields(text), " ")
		numbers, reason, _ := strings.Cut(text, ": ")
		if !strings.HasSuffix(reason, ".") {
			return nil, fmt.Errorf("no rows and reason: %q", text)
		}
		for group := range strings.SplitSeq(numbers, ", ") {
			if err := exempt(rows, group, reason); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

var exemptGroup = regexp.MustCompile(`^(\d+)(?: to (\d+))?(?: \(([^()]+)\))?$`)

// exempt adds the rows of one group, such as "7", "3 to 5" or "7 (its colour)".
func exempt(rows map[int]exemption, group, reason string) error {
	match := exemptGroup.FindStringSubmatch(group)
	if match == nil {
		return fmt.Errorf("not a row or a range of rows: %q", group)
	}
	first, last := number(match[1]), number(match[1])
	if match[2] != "" {
		last = number(match[2])
	}
	if last < first {
		return fmt.Errorf("not a range: %q", group)
	}
	for row := first; row <= last; row++ {
		if _, twice := rows[row]; twice {
			return fmt.Errorf("row %d is listed twice", row)
		}
		rows[row] = exemption{part: match[3], reason: reason}
	}
	return nil
}

// plain is the text of a comment without its markup.
func plain(text []comment.Text) string {
	return strings.TrimSpace(string(new(comment.Printer).Text(&comment.Doc{Content: []comment.Block{&comment.Paragraph{Text: text}}})))
}

// number is what a regular expression has found to be a number, maybe with a
// letter behind: a row that was put between two.
func number(digits string) int {
	n, err := strconv.Atoi(strings.TrimRight(digits, "abc"))
	if err != nil {
		panic(err)
	}
	return n
}
