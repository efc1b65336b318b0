package engine_test

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// What docs/parity.md says to be tested is tested, by the test or example that it names.
func TestParity_EveryTestThatIsNamedExists(t *testing.T) {
	document, err := os.ReadFile("../docs/parity.md")
	require.NoError(t, err)
	rows, unread := parityRows(string(document))
	require.Empty(t, unread, "a row has three cells")
	require.Greater(t, len(rows), 540, "the tables are hardly there")
	require.Empty(t, parityProblems(os.DirFS(".."), rows))
}

// Every behaviour of the protocol, H1 to H66, has a row.
func TestParity_EveryBehaviourOfTheProtocolIsThere(t *testing.T) {
	document, err := os.ReadFile("../docs/parity.md")
	require.NoError(t, err)
	rows, _ := parityRows(string(document))
	require.Empty(t, missingBehaviours(rows, 66))
}

// numbered is a behaviour of the protocol in a row's first cell, or the first and the last
// of several.
var numbered = regexp.MustCompile(`\bH(\d+)(?: to H(\d+))?`)

// missingBehaviours returns the behaviours from H1 to the last that no row is about.
func missingBehaviours(rows []parityRow, last int) (missing []string) {
	there := make([]bool, last+1)
	for _, row := range rows {
		for _, match := range numbered.FindAllStringSubmatch(row.original, -1) {
			first, _ := strconv.Atoi(match[1]) // it is a number
			end, err := strconv.Atoi(match[2])
			if err != nil {
				end = first
			}
			for i := first; i <= min(end, last); i++ {
				there[i] = true
			}
		}
	}
	for i, is := range there[1:] {
		if !is {
			missing = append(missing, fmt.Sprintf("H%d", i+1))
		}
	}
	return missing
}

func TestParity_BehavioursThatAreMissingAreFound(t *testing.T) {
	rows := []parityRow{{original: "H1, H4"}, {original: "H6 to H8"}, {original: "H10, Lease"}, {original: "OH2"}}
	require.Equal(t, []string{"H2", "H3", "H5", "H9", "H11"}, missingBehaviours(rows, 11))
}

// parityRow is a row of a table in the document: the original of a behaviour, and the tests that
// hold it.
type parityRow struct{ original, held string }

// parityRows returns the rows of the document, and those that have not three cells.
func parityRows(document string) (rows []parityRow, unread []string) {
	for line := range strings.Lines(document) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Original") {
			continue
		}
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if len(cells) != 3 {
			unread = append(unread, line)
			continue
		}
		rows = append(rows, parityRow{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[2])})
	}
	return rows, unread
}

// namedTest is the name of a test as the document writes it: package, test or
// check, and perhaps a scenario.
var namedTest = regexp.MustCompile("`([a-z/]+)\\.([A-Z]\\w*)(?:/([\\w/]+))?`")

// parityProblems says which rows name no test and give no reason, and which tests
// do not exist.
func parityProblems(module fs.FS, rows []parityRow) (problems []string) {
	packages := map[string]*parityPackage{}
	for _, row := range rows {
		named := namedTest.FindAllStringSubmatch(row.held, -1)
		reason, exempt := strings.CutPrefix(row.held, "Does not apply: ")
		if exempt != (len(named) == 0) || exempt && len(reason) < 10 {
			problems = append(problems, fmt.Sprintf("%s: %q names no test, or no reason why not", row.original, row.held))
		}
		for _, name := range named {
			if packages[name[1]] == nil {
				packages[name[1]] = readParityPackage(module, name[1])
			}
			if !packages[name[1]].has(name[2], name[3]) {
				problems = append(problems, fmt.Sprintf("%s: there is no %s", row.original, name[0]))
			}
		}
	}
	return problems
}

// parityPackage is what of a package can be named: its tests, the texts in its
// source, and the files of its scenarios.
type parityPackage struct {
	tests, texts map[string]bool
	scenarios    []string
}

var (
	testDeclared = regexp.MustCompile(`(?m)^func ((?:Test|Example)\w*)\(`)
	textQuoted   = regexp.MustCompile(`"(\w+)"`)
)

func readParityPackage(module fs.FS, pkg string) *parityPackage {
	p := &parityPackage{tests: map[string]bool{}, texts: map[string]bool{}}
	_ = fs.WalkDir(module, pkg, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != pkg && !strings.HasPrefix(file, pkg+"/testdata"):
			return fs.SkipDir
		case strings.HasSuffix(file, "_test.go"):
			noteMatches(module, file, testDeclared, p.tests)
		case strings.HasSuffix(file, ".go"):
			noteMatches(module, file, textQuoted, p.texts)
		case strings.HasSuffix(file, ".txt"):
			p.scenarios = append(p.scenarios, strings.TrimSuffix(file, ".txt"))
		}
		return nil
	})
	return p
}

// noteMatches enters what the pattern finds in a file.
func noteMatches(module fs.FS, file string, pattern *regexp.Regexp, found map[string]bool) {
	source, err := fs.ReadFile(module, file)
	if err != nil {
		return
	}
	for _, match := range pattern.FindAllSubmatch(source, -1) {
		found[string(match[1])] = true
	}
}

// has reports whether there is that test, with the scenario if one is named; or
// that check, for the tests of others.
func (p *parityPackage) has(test, scenario string) bool {
	if !p.tests[test] {
		return !strings.HasPrefix(test, "Test") && scenario == "" && p.texts[test]
	}
	return scenario == "" || slices.ContainsFunc(p.scenarios, func(file string) bool { return strings.HasSuffix(file, "/"+scenario) })
}

func TestParity_WhatIsMissingIsFound(t *testing.T) {
	module := fstest.MapFS{
		"a/a_test.go":                    {Data: []byte("package a\n\nfunc TestA_Works(t *testing.T) {}\n\n// func TestA_Gone(t *testing.T) {}\n")},
		"a/testdata/scenarios/first.txt": {},
		"a/checks/checks.go":             {Data: []byte("package checks\n\nvar all = []string{\"Reads_Work\"}\n")},
	}
	rows, unread := parityRows("text | with | bars\n\n| Original | Behaviour | Test |\n|---|---|---|\n" +
		"| One | works | `a.TestA_Works`<br>`a.TestA_Works/first`<br>`a/checks.Reads_Work` |\n" +
		"| Two | does not | Does not apply: there are no twos. |\n" +
		"| Three | is gone | `a.TestA_Gone`<br>`a.TestA_Works/second`<br>`a/checks.Writes_Work`<br>`b.TestA_Works` |\n" +
		"| Four | is forgotten |  |\n" +
		"| Five | is both | Does not apply: see `a.TestA_Works`. |\n" +
		"| Six | has a fourth | Does not apply: there are no sixes. | |\n" +
		"| Seven | has two |\n")
	require.Len(t, rows, 5)
	require.Equal(t, []string{"| Six | has a fourth | Does not apply: there are no sixes. | |", "| Seven | has two |"}, unread)
	require.Equal(t, parityRow{"Two", "Does not apply: there are no twos."}, rows[1])
	require.Empty(t, parityProblems(module, rows[:2]))
	require.Equal(t, []string{
		"Three: there is no `a.TestA_Gone`", "Three: there is no `a.TestA_Works/second`",
		"Three: there is no `a/checks.Writes_Work`", "Three: there is no `b.TestA_Works`",
		`Four: "" names no test, or no reason why not`,
		"Five: \"Does not apply: see `a.TestA_Works`.\" names no test, or no reason why not",
	}, parityProblems(module, rows[2:]))
}
