package strategic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/usercode"
)

// Gear has a field of each way to merge.
type Gear struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Teeth             []Tooth           `json:"teeth,omitempty" patchMergeKey:"name" patchStrategy:"merge"`
	Tags              []string          `json:"tags,omitempty" patchStrategy:"merge"`
	Order             []string          `json:"order,omitempty"`
	Box               map[string]string `json:"box,omitempty" patchStrategy:"retainKeys"`
	Serial            uint64            `json:"serial,omitempty"`
	Mass              float64           `json:"mass,omitempty"`
}

type Tooth struct {
	Name   string `json:"name"`
	Length int64  `json:"length,omitempty"`
	Metal  string `json:"metal,omitempty"`
}

const gear = `{
	"teeth":[{"name":"a","length":9007199254740993,"metal":"iron"},{"name":"b","length":2}],
	"tags":["x","y"],"order":["p","q"],"box":{"w":"1","h":"2"}
}`

func info(t *testing.T, edit ...func(*registry.Config[Gear])) *registry.Info {
	t.Helper()
	cfg := registry.Config[Gear]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear"}, StrategicMerge: strategic.New}
	for _, e := range edit {
		e(&cfg)
	}
	store, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	resources := store.Resources()
	return resources[len(resources)-1].Info()
}

func TestMerge_IsByTheTags(t *testing.T) {
	of := info(t)
	for patch, field := range map[string]string{
		`{"teeth":[{"name":"a","metal":"tin"}]}`:                                                   `"teeth":[{"name":"a","length":9007199254740993,"metal":"tin"},{"name":"b","length":2}]`,
		`{"teeth":[{"name":"c"}]}`:                                                                 `"teeth":[{"name":"c"},{"name":"a","length":9007199254740993,"metal":"iron"},{"name":"b","length":2}]`,
		`{"teeth":[{"name":"a","$patch":"delete"}]}`:                                               `"teeth":[{"name":"b","length":2}]`,
		`{"teeth":[{"$patch":"replace"},{"name":"z"}]}`:                                            `"teeth":[{"name":"z"}]`,
		`{"$setElementOrder/teeth":[{"name":"b"},{"name":"a"}],"teeth":[{"name":"b","length":3}]}`: `"teeth":[{"name":"b","length":3},{"name":"a","length":9007199254740993,"metal":"iron"}]`,
		`{"tags":["z"]}`: `"tags":["z","x","y"]`,
		`{"$deleteFromPrimitiveList/tags":["x"]}`: `"tags":["y"]`,
		`{"order":["r"]}`:                         `"order":["r"]`,
		`{"box":{"$retainKeys":["h"],"h":"3"}}`:   `"box":{"h":"3"}`,
		`{"order":null}`:                          ``,
		`{"mass":2.5}`:                            `"mass":2.5`,
	} {
		p, err := of.ParsePatch(registry.StrategicPatch, []byte(patch))
		require.NoError(t, err, patch)
		patched, err := p.Apply([]byte(gear))
		require.NoError(t, err, patch)
		var want, got map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte("{"+field+"}"), &want))
		require.NoError(t, json.Unmarshal(patched, &got))
		for name, value := range want {
			require.JSONEq(t, string(value), string(got[name]), patch)
			if name == "teeth" && len(value) > 60 {
				require.Contains(t, string(got[name]), "9007199254740993", "an integer keeps its digits")
			}
		}
		if field == "" {
			require.NotContains(t, got, "order")
		}
		again, err := p.Apply([]byte(gear))
		require.NoError(t, err)
		require.Equal(t, string(patched), string(again), "a patch is not changed by being applied")
	}
}

// Merging knows no integers of 2^63 or more. A field for them refuses what would be rounded, one
// for numbers takes it.
func TestMerge_RoundsNoInteger(t *testing.T) {
	p, err := info(t).ParsePatch(registry.StrategicPatch, []byte(`{"order":["r"]}`))
	require.NoError(t, err)
	patched, err := p.Apply([]byte(`{"serial":18446744073709551615}`))
	require.NoError(t, err)
	require.Error(t, json.Unmarshal(patched, &Gear{}), string(patched))
	patched, err = p.Apply([]byte(`{"mass":1e300}`))
	require.NoError(t, err)
	var g Gear
	require.NoError(t, json.Unmarshal(patched, &g))
	require.Equal(t, 1e300, g.Mass)
}

func TestMerge_WrongPatchesAreRefused(t *testing.T) {
	of := info(t)
	var bad *registry.BadRequestError
	var unfit *registry.PatchError
	for _, patch := range []string{`[]`, `null`, `{`, `5`} {
		_, err := of.ParsePatch(registry.StrategicPatch, []byte(patch))
		require.ErrorAs(t, err, &bad, patch)
	}
	apply := func(patch string) error {
		p, err := of.ParsePatch(registry.StrategicPatch, []byte(patch))
		require.NoError(t, err, patch)
		_, err = p.Apply([]byte(gear))
		return err
	}
	require.ErrorAs(t, apply(`{"box":{"$retainKeys":"h"}}`), &bad)
	require.ErrorAs(t, apply(`{"box":{"$retainKeys":["h"],"w":"1"}}`), &bad)
	require.ErrorAs(t, apply(`{"$setElementOrder/teeth":5,"teeth":[]}`), &unfit)
	require.ErrorAs(t, apply(`{"teeth":[{"length":3}]}`), &unfit, "an item without its key")
	require.ErrorAs(t, apply(`{"$patch":"explode"}`), &unfit)
}

func TestInfo_SaysWhichTakeStrategicMergePatches(t *testing.T) {
	without := info(t, func(cfg *registry.Config[Gear]) { cfg.StrategicMerge = nil })
	require.Nil(t, without.StrategicMerge)
	var bad *registry.BadRequestError
	_, err := without.ParsePatch(registry.StrategicPatch, []byte(`{}`))
	require.ErrorAs(t, err, &bad)
	_, err = without.ParsePatch(registry.MergePatch, []byte(`{}`))
	require.NoError(t, err)
	_, err = registry.ParsePatch(registry.StrategicPatch, []byte(`{}`))
	require.ErrorAs(t, err, &bad)

	scale := info(t, func(cfg *registry.Config[Gear]) {
		cfg.Scale = &registry.Scale[Gear]{
			Replicas:    func(g *Gear) (int32, bool) { return int32(len(g.Teeth)), true },
			SetReplicas: func(*Gear, int32) {},
		}
	})
	require.Equal(t, "scale", scale.Subresource)
	p, err := scale.ParsePatch(registry.StrategicPatch, []byte(`{"spec":{"replicas":3}}`))
	require.NoError(t, err)
	patched, err := p.Apply([]byte(`{"spec":{"replicas":1},"status":{"replicas":1}}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"spec":{"replicas":3},"status":{"replicas":1}}`, string(patched))
}

// The objects of a kind whose fields are known only at run time have no tags.
func TestNew_TakesStructsAlone(t *testing.T) {
	_, err := registry.New(registry.Config[unstructured.Unstructured]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear"}, StrategicMerge: strategic.New,
	})
	var wrong *engine.ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "StrategicMerge", wrong.Field)
	for _, of := range []any{nil, 5, Gear{}, new(int)} {
		_, err := strategic.New(of)
		require.ErrorContains(t, err, "struct")
	}
}

func TestMerge_PanicsAreContained(t *testing.T) {
	of := info(t, func(cfg *registry.Config[Gear]) {
		cfg.StrategicMerge = func(any) (registry.Merge, error) {
			return func(map[string]any, map[string]any) (map[string]any, error) { panic("merge") }, nil
		}
	})
	p, err := of.ParsePatch(registry.StrategicPatch, []byte(`{}`))
	require.NoError(t, err)
	_, err = p.Apply([]byte(`{}`))
	var panicked *usercode.PanicError
	require.ErrorAs(t, err, &panicked)
}

// A list below a field without tags has none, whatever it is called.
func TestUntagged_MergesByTheTagsOfTheMetadataAlone(t *testing.T) {
	merge, err := strategic.Untagged(new(unstructured.Unstructured))
	require.NoError(t, err)
	const object = `{"metadata":{"labels":{"a":"1"},"finalizers":["a/b"]},"spec":{"names":{"kind":"Gear","shortNames":["g"]},"metadata":{"finalizers":["x"]},"teeth":[{"name":"a","length":1}]}}`
	for patch, want := range map[string]string{
		`{"metadata":{"labels":{"b":"2"},"finalizers":["c/d"]}}`:                 `{"metadata":{"labels":{"a":"1","b":"2"},"finalizers":["c/d","a/b"]}}`,
		`{"metadata":{"finalizers":[]}}`:                                         `{"metadata":{"labels":{"a":"1"},"finalizers":["a/b"]}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a/b"]}}`:           `{"metadata":{"labels":{"a":"1"},"finalizers":[]}}`,
		`{"metadata":{"labels":null}}`:                                           `{"metadata":{"finalizers":["a/b"]}}`,
		`{"spec":{"names":{"shortNames":["h"]}}}`:                                `{"spec":{"names":{"kind":"Gear","shortNames":["h"]},"metadata":{"finalizers":["x"]},"teeth":[{"name":"a","length":1}]}}`,
		`{"spec":{"metadata":{"finalizers":["y"]},"teeth":[{"name":"b"}]}}`:      `{"spec":{"names":{"kind":"Gear","shortNames":["g"]},"metadata":{"finalizers":["y"]},"teeth":[{"name":"b"}]}}`,
		`{"spec":{"names":{"$patch":"replace","kind":"Cog"},"metadata":null}}`:   `{"spec":{"names":{"kind":"Cog"},"teeth":[{"name":"a","length":1}]}}`,
		`{"spec":{"$retainKeys":["names"],"names":{"kind":"Cog"},"teeth":null}}`: `{"spec":{"names":{"kind":"Cog","shortNames":["g"]}}}`,
	} {
		var live, changes, wanted map[string]any
		require.NoError(t, json.Unmarshal([]byte(object), &live))
		require.NoError(t, json.Unmarshal([]byte(patch), &changes))
		require.NoError(t, json.Unmarshal([]byte(want), &wanted))
		merged, err := merge(live, changes)
		require.NoError(t, err, patch)
		for name, field := range wanted {
			require.Equal(t, field, merged[name], patch)
		}
	}
}
