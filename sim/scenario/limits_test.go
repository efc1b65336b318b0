package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// parseBounded parses data that must be refused, checks that the sum of allocations
// is at most that many MiB, and returns the error.
func parseBounded(t *testing.T, data []byte, mib uint64) string {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := scenario.Parse("f.yaml", data)
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, (after.TotalAlloc-before.TotalAlloc)>>20, mib)
	require.Error(t, err)
	requireErrors(t, err)
	require.Less(t, len(err.Error()), 64<<10)
	return err.Error()
}

// full returns a file of the highest size: a beginning, and a piece repeated.
func full(beginning, piece string) []byte {
	return []byte(beginning + strings.Repeat(piece, (scenario.MaxFile-len(beginning))/len(piece)))
}

func TestParse_FilesThatAreTooLargeAreRefusedUnread(t *testing.T) {
	const problem = ": the file has more than 65536 bytes; use fewer groups with larger counts, or make the scenario in Go"
	require.Equal(t, "f.yaml:1:1"+problem, parseBounded(t, []byte(strings.Repeat("[", 100_000)), 1))
	require.Equal(t, "f.yaml:1:1"+problem, parseBounded(t, []byte("about: "+strings.Repeat("x", 20_000_000)), 1))
	require.Equal(t, "f.yaml:8193:1"+problem, parseBounded(t, []byte(strings.Repeat("# note!\n", 10_000)), 1))

	fits := full("watchers: [{}]\n", "#")
	_, err := scenario.Parse("f.yaml", fits)
	require.NoError(t, err)
	require.Equal(t, "f.yaml:2:1"+problem, parseBounded(t, append(fits, '#'), 1))
}

func TestLoad_ReadsNoMoreOfAFileThanItMayHave(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.yaml")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Truncate(file, 1<<40))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := scenario.Load(file)
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, file+":1:1: the file has more than 65536 bytes")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// The memory of the YAML library grows with the square of the nesting, and with the
// names around a value.
func TestParse_MemoryIsBoundedForHostileFiles(t *testing.T) {
	name := strings.Repeat("k", 126)
	var nested strings.Builder
	for depth := range 18 {
		fmt.Fprintf(&nested, "%s%s:\n", strings.Repeat(" ", depth), name)
	}
	var indented strings.Builder
	for depth := range 21 {
		fmt.Fprintf(&indented, "%sa:\n", strings.Repeat(" ", depth))
	}
	for _, c := range []struct {
		beginning, piece, says string
	}{
		{"", "[", "f.yaml:1:21: more than 20 lists and mappings are within each other; nest less deeply"},
		{"", "{a: ", "f.yaml:1:81: more than 20 lists and mappings"},
		{"watchers:\n", "- ", "f.yaml:2:39: more than 20 lists and mappings"},
		{"", "? ", "f.yaml:1:41: more than 20 lists and mappings"},
		{"", "a: ", "f.yaml:1:62: more than 20 lists and mappings"},
		{nested.String() + strings.Repeat(" ", 19) + "[", "a,", "sequence end token ']' not found"},
		{"watchers: [", "{},", "sequence end token ']' not found"},
		{"watchers:\n", "- a\n", "watchers[0]: has no fields"},
		{indented.String(), "#", "f.yaml:21:22: more than 20 lists and mappings"},
		{"[", "[],[", "f.yaml:1:78: more than 20 lists and mappings"},
		{"[", "? ", "more than 20 lists and mappings"},
		{"[", "- ", "more than 20 lists and mappings"},
		{"about: |+\n ", "\n", "f.yaml:102:1: there are more than 100 blank lines in a row; leave them out"},
		{"about: >\n ", " \r\n", "f.yaml:102:1: there are more than 100 blank lines in a row; leave them out"},
		{"", "&a ", "f.yaml:1:"},
		{"", "!!a ", "has the tag !!a"},
		{"x: &x [" + strings.Repeat("a,", 100) + "]\nwatchers: [", "*x,", "sequence end token ']' not found"},
	} {
		require.Contains(t, parseBounded(t, full(c.beginning, c.piece), 128), c.says, "%.20s… and %q", c.beginning, c.piece)
	}
}

// A list that starts in the column of the mapping around it is nested in it.
func TestParse_DepthIsThatOfTheTree(t *testing.T) {
	for name, within := range map[string]func(inner string, depth int) string{
		"brackets": func(inner string, _ int) string { return "{and: [" + inner + "]}" },
		"indented": func(inner string, depth int) string {
			return "\n" + strings.Repeat("  ", depth) + "and:\n" + strings.Repeat("  ", depth) + "- " + strings.TrimLeft(inner, "\n ")
		},
	} {
		condition := func(levels int) []byte {
			text := "{operation: list}"
			for depth := levels - 1; depth >= 0; depth-- {
				text = within(text, 3+depth)
			}
			return []byte("watchers: [{}]\nfaults:\n  - kind: fail\n    when: " + text + "\n")
		}
		_, err := scenario.Parse("f.yaml", condition(8)) // and 4 levels around it
		require.NoError(t, err, "%s:\n%s", name, condition(8))
		_, err = scenario.Parse("f.yaml", condition(9))
		require.ErrorContains(t, err, "more than 20 lists and mappings are within each other", "%s", name)
	}
}

// Names and values have their limits, and lists that have ended do not count as around others.
func TestParse_AcceptsWhatIsAsLargeAsItMayBe(t *testing.T) {
	name := strings.Repeat("k", 128)
	s, err := scenario.Parse("f.yaml", []byte("about: "+strings.Repeat("x", 4096)+"\nobjects: {labels: {"+name+": 3}}\nwatchers: ["+strings.Repeat("{},", 50)+"{}]"))
	require.NoError(t, err)
	require.Len(t, s.About, 4096)
	require.Equal(t, 3, s.Objects.Labels[name])
	require.Len(t, s.Watchers, 51)
}

// Each alias is short, and its value is larger than that of the alias before.
func TestParse_AliasesCountAsWhatTheyStandFor(t *testing.T) {
	chain := func(n int) string {
		var b strings.Builder
		b.WriteString("watchers: [{}]\nfaults:\n- {kind: fail, when: &a0 {operation: list}}\n")
		for i := range n {
			fmt.Fprintf(&b, "- {kind: fail, when: &a%d {and: [*a%d]}}\n", i+1, i)
		}
		return b.String()
	}
	_, err := scenario.Parse("f.yaml", []byte(chain(8)))
	require.NoError(t, err)
	require.Equal(t, "f.yaml:12:33: more than 20 lists and mappings are within each other, aliases written out; use fewer aliases", parseBounded(t, []byte(chain(1000)), 64))

	const aliases = 15_000
	long := "watchers: [{}]\nassert: [&a \"" + strings.Repeat("x", 4000) + "\", " + strings.Repeat("*a,", aliases) + "*a]"
	require.Contains(t, parseBounded(t, []byte(long), 64),
		"the values and the paths to them have more than 4194304 bytes, aliases written out; use fewer aliases")
	deep := "watchers: [{}]\nfaults:\n- {kind: fail, when: &a {and: [" + strings.Repeat("{operation: list},", 30) + "]}}\n" +
		strings.Repeat("- {kind: fail, when: *a}\n", 2000)
	require.Contains(t, parseBounded(t, []byte(deep), 64), "aliases written out; use fewer aliases")
}

func TestParse_ErrorsShowLittleOfLongTexts(t *testing.T) {
	long := strings.Repeat("x", 4000)
	for _, c := range []struct{ text, says string }{
		{"about: " + long + long, "f.yaml:1:8: the value \"" + long[:40] + "…\" has 8000 bytes; the most is 4096"},
		{long[:200] + ": 3", "f.yaml:1:1: the name \"" + long[:40] + "…\" has 200 bytes; the most is 128"},
		{"\"" + long[:200] + "\": 3", "f.yaml:1:1: the name \"" + long[:40] + "…\" has 200 bytes; the most is 128"},
		{"{" + long[:200] + ": 3}", "f.yaml:1:2: the name \"" + long[:40] + "…\" has 200 bytes; the most is 128"},
		{"about: |\n  " + long + long, "has 8000 bytes"},
		{"duration: " + long, "\"" + long[:40] + "…\" is not a duration"},
		{"seed: 1" + strings.Repeat("0", 4000), "000… is too large"},
		{"about: !" + long + " x", "has the tag !" + long[:39] + "…;"},
		{"about: *" + long, "there is no anchor &" + long[:40] + "… above the alias *" + long[:40] + "…; write &" + long[:40] + "… before"},
		{"watchers: [{policy: " + long + "}]", "\"" + long[:40] + "…\" is not known"},
		{"watchers: [{name: " + long + "}]\nassert: [lost = 0, a.lost = 0]", "there is no group \"a\"; there are " + long[:40] + "…"},
		{"watchers: [{name: -" + long + "}]", "…\" is not a valid name"},
		{"watchers: [{labels: \"(" + long + "\"}]", "…\" does not parse: "},
		{"watchers: [{labels: \"" + long + "=3\"}]", "…\" does not parse: "},
		{"watchers: [{labels: \"" + long[:63] + "=3\"}]", "unknown label \"" + long[:40] + "…\"; objects have the labels (none)"},
		{"watchers: [{fields: " + long + "}]", "…\" does not parse: "},
		{"watchers: [{fields: " + long + "=3}]", "unknown field \"" + long[:40] + "…\"; objects have the fields (none)"},
		{"watchers: [{prefix: \"{" + long + "}\"}]", "unknown placeholder {" + long[:39] + "…; there are {i}, {namespace}"},
		{"watchers: [{prefix: \"/" + long + "\"}]", "…\" is not a valid key: "},
		{"writers: [{trace: " + long + "}]", "xx…: "},
		{"watchers: [{}]\nassert: [" + long + "]", "\"" + long[:40] + "…\" is not a comparison"},
		{"watchers: [{}]\nassert: [p99 < " + long + "]", "\"" + long[:40] + "…\" is not a duration"},
		{"watchers: [{}]\nassert: [" + long + " < 3]", "there is no metric \"" + long[:40] + "…\""},
		{"watchers: [{}]\nfaults: [{kind: panic, group: " + long + "}]", "\"" + long[:40] + "…\" is not a group of watchers; there are watchers-1"},
		{"watchers: [{}]\nobjects: {index: [" + long + "]}", "there is no field \"" + long[:40] + "…\""},
		{"about: >" + long, "f.yaml:1:"},
		{"%" + long, "f.yaml:1:"},
	} {
		require.Contains(t, parseBounded(t, []byte(c.text), 16), c.says, "%.40s", c.text)
	}
}

// A scenario in Go has no limits, but its errors are short, too.
func TestResolve_ErrorsShowLittleOfLongTexts(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, s := range []*scenario.Scenario{
		{Watchers: []scenario.Watcher{{}}, Assert: []scenario.Assertion{scenario.Assertion(long)}},
		{Watchers: []scenario.Watcher{{Name: "-" + long}}},
		{Watchers: []scenario.Watcher{{Prefix: "/" + long}}},
		{Watchers: []scenario.Watcher{{}}, Small: scenario.Small{Watchers: map[string]int{long: 3}}},
		{Writers: []scenario.Writer{{Trace: long}}},
	} {
		_, err := s.Resolve(scenario.Options{})
		require.ErrorIs(t, err, scenario.ErrInvalid)
		require.Less(t, len(err.Error()), 1500)
	}
}

func TestParse_ListsTheFirstErrorsOfMany(t *testing.T) {
	_, err := scenario.Parse("f.yaml", []byte("watchers:\n"+strings.Repeat("  - {selector: a}\n", 1000)))
	var errs scenario.Errors
	require.ErrorAs(t, err, &errs)
	require.Len(t, errs, 101)
	require.ErrorContains(t, errs[100], "f.yaml:102:6: watchers[100].selector: is wrong too, and maybe more: only 100 errors are listed; correct those first")

	_, err = scenario.Parse("f.yaml", []byte("watchers:\n"+strings.Repeat("  - {count: -1}\n", 1000)+"faults:\n  - {kind: fail, when: {and: [{}]}}\n"))
	require.ErrorAs(t, err, &errs)
	require.Len(t, errs, 101)

	var names strings.Builder
	for i := range 500 {
		fmt.Fprintf(&names, "  - {name: w%d}\n", i)
	}
	_, err = scenario.Parse("f.yaml", []byte("watchers:\n"+names.String()+"assert: [v.lost = 0]"))
	require.ErrorContains(t, err, "there are w0, w1, w2,")
	require.ErrorContains(t, err, "w19 and 480 more")
}
