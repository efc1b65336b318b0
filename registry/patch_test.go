package registry_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

func TestResource_PatchesAreAppliedToTheLiveObject(t *testing.T) {
	s := newStore(t, config())
	create(t, s, widget("a", 1))
	r := s.Resources()[0]
	patch := func(r registry.Resource, kind registry.PatchType, text string) (registry.Item, error) {
		return patchA(t, r, kind, text)
	}
	it, err := patch(r, registry.MergePatch, `{"metadata":{"labels":{"app":"web"}},"spec":{"size":7},"status":{"phase":"No"}}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"size":7,"color":"grey"}`, part(t, body(t, it), "spec"))
	require.JSONEq(t, `{}`, part(t, body(t, it), "status"))
	it, err = patch(s.Resources()[1], registry.JSONPatch, `[{"op":"add","path":"/status","value":{"phase":"Ready"}},{"op":"replace","path":"/spec/size","value":0}]`)
	require.NoError(t, err)
	require.JSONEq(t, `{"phase":"Ready"}`, part(t, body(t, it), "status"))
	require.JSONEq(t, `{"size":7,"color":"grey"}`, part(t, body(t, it), "spec"))
	_, err = patch(r, registry.JSONPatch, `[{"op":"test","path":"/spec/size","value":1}]`)
	require.ErrorAs(t, err, new(*registry.PatchError))
	_, err = patch(r, registry.MergePatch, `{"metadata":{"resourceVersion":"1"},"spec":{"size":8}}`)
	if err != nil { // 1 may be the revision of the object
		require.ErrorIs(t, err, engine.ErrConflict)
	}
}

// RFC 6902 allows neither, and Kubernetes both.
func TestPatch_OperationsMayReplaceWhatIsMissingAndCountFromTheEnd(t *testing.T) {
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
		p, err := registry.ParsePatch(registry.JSONPatch, []byte("["+operation+"]"))
		require.NoError(t, err, operation)
		for range 2 { // a patch is applied to each state that comes in between
			got, err := p.Apply([]byte(`{"a":{"0":1},"l":[1,2,3]}`))
			if want == "" {
				require.ErrorAs(t, err, new(*registry.PatchError), operation)
				continue
			}
			require.NoError(t, err, operation)
			require.JSONEq(t, want, string(got), operation)
		}
	}
}

func TestPatch_MalformedOnesAreRefused(t *testing.T) {
	for text, kind := range map[string]registry.PatchType{
		`[]`: registry.MergePatch, `null`: registry.MergePatch, `{`: registry.MergePatch, `"x"`: registry.MergePatch,
		`{}`: registry.JSONPatch, `[{`: registry.JSONPatch, `{"spec":{}}`: "application/json",
		`[` + strings.Repeat(`{"op":"remove","path":"/a"},`, 10_000) + `{"op":"remove","path":"/a"}]`: registry.JSONPatch,
	} {
		_, err := registry.ParsePatch(kind, []byte(text))
		require.ErrorAs(t, err, new(*registry.BadRequestError), text[:min(len(text), 40)])
	}
	bomb, err := registry.ParsePatch(registry.JSONPatch, []byte(`[`+strings.Repeat(`{"op":"copy","from":"/a","path":"/a/-"},`, 40)+`{"op":"copy","from":"/a","path":"/a/-"}]`))
	require.NoError(t, err)
	_, err = bomb.Apply([]byte(`{"a":["` + strings.Repeat("x", 1000) + `"]}`))
	require.ErrorAs(t, err, new(*registry.PatchError), "doubling forty times must not be tried")
}

// The library that applies patches panics where it compares lists with null in them.
func TestPatch_TestsOfListsWithNullFail(t *testing.T) {
	for _, text := range []string{
		`[{"op":"test","path":"/a","value":[1,null]}]`, `[{"op":"test","path":"/a","value":[1,2]}]`, `[{"op":"test","path":"","value":{"a":[1,null]}}]`,
	} {
		p, err := registry.ParsePatch(registry.JSONPatch, []byte(text))
		require.NoError(t, err)
		_, err = p.Apply([]byte(`{"a":[1,null]}`))
		require.ErrorAs(t, err, new(*registry.PatchError), text)
		require.NotErrorIs(t, err, usercode.ErrPanic)
	}
}

// patchA patches the object default/a.
func patchA(t *testing.T, r registry.Resource, kind registry.PatchType, text string) (registry.Item, error) {
	t.Helper()
	p, err := registry.ParsePatch(kind, []byte(text))
	require.NoError(t, err)
	it, _, err := r.Update(t.Context(), "default/a", func(live registry.Item) ([]byte, error) {
		now, err := live.JSON()
		if err != nil {
			return nil, err
		}
		return p.Apply(now)
	}, registry.WriteOptions{})
	return it, err
}
