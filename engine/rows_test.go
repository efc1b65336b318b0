package engine_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// TestEveryRowIsTestedOrExempt: no behaviour of the originals is forgotten. Each
// row of our maps of their tests has a test with its number somewhere in this
// module, or a reason for having none in the documentation of a package.
func TestEveryRowIsTestedOrExempt(t *testing.T) {
	for name, rowMap := range map[string]struct {
		named naming
		last  int
		docs  []string
	}{
		"watch cache": {watchCacheRows, 157, []string{"doc.go"}},
		"clients": {clientRows, 189, []string{
			"../store/doc.go", "../actors/reflector/doc.go", "informer/doc.go", "objectcache/doc.go",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := findTested(os.DirFS(".."), rowMap.named)
			require.NoError(t, err)
			exempt := map[int]exemption{}
			for _, file := range rowMap.docs {
				doc, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
				require.NoError(t, err)
				more, err := findExempt(doc.Doc.Text())
				require.NoError(t, err, file)
				maps.Copy(exempt, more)
			}
			require.Empty(t, unaccounted(rows, exempt, rowMap.last))
		})
	}
}

// unaccounted says which rows from 1 to last are neither tested nor exempt, or
// both, and which do not exist.
func unaccounted(rows tested, exempt map[int]exemption, last int) (problems []string) {
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for row := 1; row <= last; row++ {
		tests, isTested := rows[row]
		why, isExempt := exempt[row]
		switch {
		case !isTested && !isExempt:
			complain("row %d has neither a test nor an exemption", row)
		case !isTested && why.part != "":
			complain("row %d: only %q is exempt, the rest has no test", row, why.part)
		case isTested && isExempt && why.part == "":
			complain("row %d is exempt, but tested: %s", row, strings.Join(tests, ", "))
		}
	}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		if row < 1 || row > last {
			complain("there is no row %d: %s", row, strings.Join(rows[row], ", "))
		}
	}
	for _, row := range slices.Sorted(maps.Keys(exempt)) {
		if row < 1 || row > last {
			complain("there is no row %d to exempt", row)
		}
	}
	return problems
}

// module is a small module in which rows are named in each way, and in ways that
// do not count.
var module = fstest.MapFS{
	"a/a_test.go": {Data: []byte(`package a
func TestRow001_OneRow() {}
func TestRow002_003_TwoRows() {}
func TestRows004To006_Range() {}
func TestRow3_2_15_NotOfTheMap() {}
func TestClientRow007_OfAnotherMap() {}
func (s suite) TestRow007_Method() {}
func helperRow007_NotATest() {}
// func TestRow007_Commented() {}
var _ = "Row007_InATestOfTheChecks"
`)},
	"a/suite.go":                            {Data: []byte("package a\nvar checks = []string{\"Row008_Check\", \"no Row007_Check\"}\nfunc TestRow007_NotInATestFile() {}\n")},
	"a/testdata/row_009_010_scenario.txt":   {},
	"a/testdata/row007_of_another_map.txt":  {},
	"a/testdata/client_row_007_another.txt": {},
	"a/row_007_not_test_data.txt":           {},
	".git/testdata/row_007_hidden.txt":      {},
}

func TestFindTested(t *testing.T) {
	rows, err := findTested(module, watchCacheRows)
	require.NoError(t, err)
	require.Equal(t, tested{
		1: {"TestRow001_OneRow"},
		2: {"TestRow002_003_TwoRows"}, 3: {"TestRow002_003_TwoRows"},
		4: {"TestRows004To006_Range"}, 5: {"TestRows004To006_Range"}, 6: {"TestRows004To006_Range"},
		8: {`"Row008_Check"`},
		9: {"a/testdata/row_009_010_scenario.txt"}, 10: {"a/testdata/row_009_010_scenario.txt"},
	}, rows)
	require.Equal(t, []string{"row 7 has neither a test nor an exemption", "there is no row 10: a/testdata/row_009_010_scenario.txt"}, unaccounted(rows, nil, 9))

	rows, err = findTested(module, clientRows)
	require.NoError(t, err)
	require.Equal(t, tested{7: {"TestClientRow007_OfAnotherMap", "a/testdata/client_row_007_another.txt"}}, rows)

	_, err = findTested(fstest.MapFS{"a.go": {Data: []byte("not Go")}}, watchCacheRows)
	require.Error(t, err)
}

func exemptFrom(items string) (map[int]exemption, error) {
	return findExempt("Package p.\n\n# " + exemptions + "its" + doNotApply + "\n\nThese do not:\n\n" + items + "\n\nThe end.\n")
}

func TestFindExempt(t *testing.T) {
	rows, err := exemptFrom("  - 7, 9 to 11, 12 (its half): Nothing\n    is there.\n  - 15: Nor there.")
	require.NoError(t, err)
	nothing := exemption{reason: "Nothing is there."}
	require.Equal(t, map[int]exemption{
		7: nothing, 9: nothing, 10: nothing, 11: nothing,
		12: {part: "its half", reason: "Nothing is there."},
		15: {reason: "Nor there."},
	}, rows)
	for _, items := range []string{
		"  - 7", "  - 7: no sentence", "  - seven: Nothing.", "  - 7 8: Nothing.", "  - 7 (: Nothing.",
		"  - 9 to 7: Nothing.", "  - 7, 7: Nothing.", "  - 7: Nothing.\n  - 5 to 8: Nor there.", "no list",
	} {
		_, err := exemptFrom(items)
		require.Error(t, err, items)
	}
}

func TestUnaccountedRowsAreTold(t *testing.T) {
	rows := tested{1: {"TestA"}, 3: {"TestB"}, 4: {"TestC"}}
	exempt := map[int]exemption{2: {}, 4: {part: "its half"}}
	require.Empty(t, unaccounted(rows, exempt, 4))
	delete(rows, 1)
	require.Equal(t, []string{"row 1 has neither a test nor an exemption"}, unaccounted(rows, exempt, 4))
	rows[1], rows[2] = []string{"TestA"}, []string{"TestD", "TestE"}
	require.Equal(t, []string{"row 2 is exempt, but tested: TestD, TestE"}, unaccounted(rows, exempt, 4))
	delete(rows, 2)
	delete(rows, 4)
	require.Equal(t, []string{`row 4: only "its half" is exempt, the rest has no test`}, unaccounted(rows, exempt, 4))
	require.Equal(t, []string{"there is no row 4 to exempt"}, unaccounted(rows, exempt, 3))
}
