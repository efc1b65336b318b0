package patch_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/registry/internal/patch"
	"github.com/watchmill/watchmill/usercode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// RFC 6902 allows neither, and Kubernetes both.
func TestOperations_MayReplaceWhatIsMissingAndCountFromTheEnd(t *testing.T) {
	for operation, want := range map[string]string{
		`{"op":"replace","path":"/b","value":1}`:          `{"a":{"0":1},"b":1,"l":[1,2,3]}`,
		`{"op":"replace","path":"/a/b~1c~0","value":[1]}`: `{"a":{"0":1,"b/c~":[1]},"l":[1,2,3]}`,
		`{"op":"replace","path":"/b","value":null}`:       `{"a":{"0":1},"b":null,"l":[1,2,3]}`,
		`{"op":"replace","path":"/a","value":1}`:          `{"a":1,"l":[1,2,3]}`,
		`{"op":"replace","path":"/a/0","value":2}`:        `{"a":{"0":2},"l":[1,2,3]}`,
		`{"op":"replace","path":"/l/1","value":9}`:        `{"a":{"0":1},"l":[1,9,3]}`,
		`{"op":"replace","path":"/l/-1","value":9}`:       `{"a":{"0":1},"l":[1,2,9]}`,
		`{"op":"replace","path":"","value":{"c":1}}`:      `{"c":1}`,
		`{"op":"remove","path":"/l/-3"}`:                  `{"a":{"0":1},"l":[2,3]}`,
		`{"op":"add","path":"/l/-1","value":4}`:           `{"a":{"0":1},"l":[1,2,3,4]}`,
		`{"op":"test","path":"/l/-1","value":3}`:          `{"a":{"0":1},"l":[1,2,3]}`,
		`{"op":"replace","path":"/none/deep","value":1}`:  "",
		`{"op":"replace","path":"/l/3","value":1}`:        "",
		`{"op":"replace","path":"/l/-","value":1}`:        "",
		`{"op":"replace","path":"/l/x","value":1}`:        "",
		`{"op":"replace","path":"/l/-4","value":1}`:       "",
		`{"op":"replace","path":"/a/0/deep","value":1}`:   "",
		`{"op":"remove","path":"/b"}`:                     "",
		`{"op":"move","from":"/b","path":"/c"}`:           "",
	} {
		p, err := patch.Operations([]byte("[" + operation + "]"))
		require.NoError(t, err, operation)
		for range 2 { // a patch is applied to each state that comes in between
			got, err := p.Apply([]byte(`{"a":{"0":1},"l":[1,2,3]}`))
			if want == "" {
				require.Error(t, err, operation)
				continue
			}
			require.NoError(t, err, operation)
			require.JSONEq(t, want, string(got), operation)
		}
	}
}

// The library that applies patches panics where it compares lists with null in them.
func TestOperations_TestsOfListsWithNullFail(t *testing.T) {
	for _, text := range []string{
		`[{"op":"test","path":"/a","value":[1,null]}]`, `[{"op":"test","path":"/a","value":[1,2]}]`, `[{"op":"test","path":"","value":{"a":[1,null]}}]`,
	} {
		p, err := patch.Operations([]byte(text))
		require.NoError(t, err)
		_, err = p.Apply([]byte(`{"a":[1,null]}`))
		require.ErrorContains(t, err, "an operation cannot be evaluated", text)
		require.NotErrorIs(t, err, usercode.ErrPanic)
	}
}

func TestPatch_OfAnotherFormIsASyntaxError(t *testing.T) {
	unused := func(_, _ map[string]any) (map[string]any, error) { return nil, errors.New("no") }
	for text, read := range map[string]func([]byte) (patch.Patch, error){
		`[]`: patch.Merge, `null`: patch.Merge, `{`: patch.Merge, `"x"`: patch.Merge, `{}`: patch.Operations, `[{`: patch.Operations,
		`7`: func(body []byte) (patch.Patch, error) { return patch.Strategic(body, unused) },
		`[` + strings.Repeat(`{"op":"remove","path":"/a"},`, 10_000) + `{"op":"remove","path":"/a"}]`: patch.Operations,
	} {
		_, err := read([]byte(text))
		require.ErrorAs(t, err, new(*patch.SyntaxError), text[:min(len(text), 40)])
	}
}

func TestPatch_StrictFindsFieldsThatAreRepeatedOrUnknown(t *testing.T) {
	operations, err := patch.Operations([]byte(`[{"op":"add","path":"/a","value":{"b":1},"old":2}]`))
	require.NoError(t, err)
	strict, err := operations.Strict()
	require.NoError(t, err)
	require.Len(t, strict, 1)
	require.ErrorContains(t, strict[0], `unknown field "[0].old"`)
	merge, err := patch.Merge([]byte(`{"a":1,"b":{"c":1,"c":2}}`))
	require.NoError(t, err)
	strict, err = merge.Strict()
	require.NoError(t, err)
	require.Len(t, strict, 1)
	require.ErrorContains(t, strict[0], `duplicate field "b.c"`)
}

// The function gets objects of its own, however often the patch is applied.
func TestStrategic_MergesByTheFunction(t *testing.T) {
	merge := func(object, changes map[string]any) (map[string]any, error) {
		for name, value := range changes {
			object[name] = value
			delete(changes, name)
		}
		return object, nil
	}
	p, err := patch.Strategic([]byte(`{"b":12345678901234567}`), merge)
	require.NoError(t, err)
	for range 2 {
		got, err := p.Apply([]byte(`{"a":1}`))
		require.NoError(t, err)
		require.Equal(t, `{"a":1,"b":12345678901234567}`, string(got))
	}
	_, err = p.Apply([]byte(`[]`))
	require.ErrorAs(t, err, new(*patch.SyntaxError))
}

func TestStrategic_ReturnsTheErrorOfTheFunction(t *testing.T) {
	refused := errors.New("no")
	apply := func(by patch.Merging) error {
		p, err := patch.Strategic([]byte(`{}`), by)
		require.NoError(t, err)
		_, err = p.Apply([]byte(`{}`))
		return err
	}
	require.Equal(t, refused, apply(func(_, _ map[string]any) (map[string]any, error) { return nil, refused }))
	require.ErrorIs(t, apply(func(_, _ map[string]any) (map[string]any, error) { panic("no") }), usercode.ErrPanic)
}

// Merging has made a floating-point number of an integer that it does not know: a field for integers must not take
// that for the integer.
func TestEncodeMerged_ShowsThatALargeIntegerWasRounded(t *testing.T) {
	text, rounds, err := patch.EncodeMerged(map[string]any{"a": []any{float64(1 << 63)}, "b": map[string]any{"c": -1e30, "d": 1.5}, "e": int64(math.MaxInt64)})
	require.NoError(t, err)
	require.True(t, rounds)
	require.Equal(t, `{"a":[9.223372036854776e+18],"b":{"c":-1e+30,"d":1.5},"e":9223372036854775807}`, string(text))
	text, rounds, err = patch.EncodeMerged(map[string]any{"a": []any{1e18}})
	require.NoError(t, err)
	require.False(t, rounds)
	require.Equal(t, `{"a":[1000000000000000000]}`, string(text))
}
