package registry_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
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
