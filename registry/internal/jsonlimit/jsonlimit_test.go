package jsonlimit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/registry/internal/jsonlimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nested returns lists or objects in one another.
func nested(open, end string, depth int) string {
	return strings.Repeat(open, depth) + strings.Repeat(end, depth)
}

func TestCheck_BoundsHowDeepJSONIsNested(t *testing.T) {
	for text, want := range map[string]error{
		nested("[", "]", 100): nil, nested("[", "]", 101): jsonlimit.ErrDepth,
		nested(`{"a":`, "}", 100): nil, nested(`[{"a":`, "}]", 51): jsonlimit.ErrDepth,
		`{"metadata":{"managedFields":` + nested("[", "]", 103) + `}}`:            nil,
		`{"metadata":{"managedFields":` + nested("[", "]", 104) + `}}`:            jsonlimit.ErrDepth,
		`{"metadata":{"managedFields":[],"labels":` + nested("[", "]", 99) + `}}`: jsonlimit.ErrDepth,
		`{"metadata":{"managedFields":[]},"spec":` + nested("[", "]", 100) + `}`:  jsonlimit.ErrDepth,
		`{"spec":{"managedFields":` + nested("[", "]", 99) + `}}`:                 jsonlimit.ErrDepth,
		`{"a":{"metadata":{"managedFields":` + nested("[", "]", 98) + `}}}`:       jsonlimit.ErrDepth,
		strings.Repeat("]", 200) + "}":                                            nil, `"`: nil, `"\`: nil, "": nil, `:::`: nil,
	} {
		require.Equal(t, want, jsonlimit.Check([]byte(text)), text)
		require.Equal(t, want, jsonlimit.CheckDepth([]byte(text)), text)
	}
}

// Only brackets outside of strings nest, wherever a string ends.
func TestCheck_BracketsInStringsAreNotNested(t *testing.T) {
	many := strings.Repeat("[", 200)
	for _, text := range []string{many, `\"` + many, many + `\\`, `\\\"` + many} {
		require.NoError(t, jsonlimit.Check([]byte(`{"text":"`+text+`"}`)), text)
	}
	for _, text := range []string{`\"`, `\\`} {
		require.Equal(t, jsonlimit.ErrDepth, jsonlimit.Check([]byte(`{"text":"`+text+`","other":`+nested("[", "]", 200)+"}")), text)
	}
}

// Lists and objects side by side are not nested, however many.
func TestCheck_WideBodiesAreNotNested(t *testing.T) {
	for _, one := range []string{`{}`, `[]`} {
		require.NoError(t, jsonlimit.Check([]byte(`{"other":[`+strings.TrimSuffix(strings.Repeat(one+",", 1000), ",")+`]}`)), one)
	}
}

func TestCheck_BoundsThePathsOfFieldsWithLongNames(t *testing.T) {
	var repeated strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&repeated, `"a%d":1,"a%d":1,`, i, i)
	}
	half := strings.Repeat("n", 8<<10)
	for text, want := range map[string]error{
		`{"` + half + `":{"` + half + `":1}}`:                                                       nil,
		`[{"` + half + half + `":[{` + repeated.String() + `"b":{}}]}]`:                             jsonlimit.ErrPaths,
		`{"` + half + `":{"a":1},"x` + half + `":{"b":[{"c":1},{"d":1}]}}`:                          nil,
		`{"a":"` + half + half + half + `","b":{"c":1}}`:                                            nil,
		`{"a":"\"` + half + half + `\\","b":1}`:                                                     nil,
		`{"metadata":{"managedFields":[{"` + half + half + `":{` + repeated.String() + `"b":1}}]}}`: jsonlimit.ErrPaths,
	} {
		text = `{"spec":` + text + `}`
		require.Equal(t, want, jsonlimit.Check([]byte(text)), "%.20s", text)
		require.NoError(t, jsonlimit.CheckDepth([]byte(text)), "%.20s", text)
	}
}

// Recorded names may use up as much again as those of the object.
func TestCheck_CountsThePathsOfManagedFieldsApart(t *testing.T) {
	long := func(fields int) string {
		return `{"` + strings.Repeat("n", 1<<20) + `":{` + strings.TrimSuffix(strings.Repeat(`"a":1,`, fields), ",") + "}}"
	}
	object := func(recorded, spec int) error {
		return jsonlimit.Check([]byte(`{"metadata":{"managedFields":[` + long(recorded) + `]},"spec":` + long(spec) + `}`))
	}
	require.NoError(t, object(14, 14))
	require.Equal(t, jsonlimit.ErrPaths, object(16, 1))
	require.Equal(t, jsonlimit.ErrPaths, object(1, 16))
}

func TestTooDeep_IsMoreThanCheckAllows(t *testing.T) {
	var list, object any
	for range jsonlimit.MaxDepth {
		list, object = []any{list}, map[string]any{"a": object}
	}
	for _, value := range []any{list, object} {
		require.False(t, jsonlimit.TooDeep(value))
		require.True(t, jsonlimit.TooDeep([]any{1, value}))
		require.True(t, jsonlimit.TooDeep(map[string]any{"a": value}))
	}
}

func TestLongest_CountsItemsAndFields(t *testing.T) {
	for text, want := range map[string][2]int{
		`[1,2,3]`: {3, 0}, `{"a":[1,[2,3]],"b":{"c":"[,,,]","d":1,"e":"\",,,,"}}`: {2, 3},
		`[{},{},{}]`: {3, 1}, `{"a":[],"b":[],"c":[]}`: {1, 3}, `[[],[],[]]`: {3, 0}, `1`: {0, 0}, `]}`: {1, 1}, `,"`: {0, 0},
	} {
		items, fields := jsonlimit.Longest([]byte(text))
		require.Equal(t, want, [2]int{items, fields}, text)
	}
}
