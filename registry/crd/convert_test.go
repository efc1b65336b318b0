package crd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// versioned is a version of the cogs of a definition: the properties of their spec, in JSON.
type versioned struct {
	name, spec      string
	served, storage bool
}

// cogs returns the definitions of the versions that are served, by name.
func cogs(t require.TestingT, versions ...versioned) map[string]*crd.Definition {
	var all []string
	for _, v := range versions {
		all = append(all, fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"schema":{"openAPIV3Schema":
			{"type":"object","properties":{"metadata":{"type":"object"},"spec":{"type":"object","properties":{%s}}}}}}`, v.name, v.served, v.storage, v.spec))
	}
	of, err := crd.Parse(strings.NewReader(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"cogs.example.com"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"cogs","kind":"Cog"},"versions":[` + strings.Join(all, ",") + `]}}`))
	require.NoError(t, err)
	by := map[string]*crd.Definition{}
	for _, d := range of[0].Versions() {
		by[d.Kind.Version] = d
	}
	return by
}

// cog returns a cog of a version with that spec.
func cog(version, spec string) unstructured.Unstructured {
	o := unstructured.Unstructured{}
	if err := o.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"example.com/%s","kind":"Cog","metadata":{"name":"c","labels":{"a":"b"}},"spec":%s}`, version, spec)); err != nil {
		panic(err) // of a text of a test
	}
	return o
}

// specOf returns the spec of a cog as JSON.
func specOf(o unstructured.Unstructured) string {
	text, err := json.Marshal(o.Object["spec"])
	if err != nil {
		panic(err) // of what was JSON
	}
	return string(text)
}

const (
	older = `"size":{"type":"integer","default":1},"only1":{"type":"string"},"maybe":{"type":"string","nullable":true}`
	newer = `"size":{"type":"integer","default":2},"only2":{"type":"string","default":"x"},"maybe":{"type":"string"}`
)

func TestConversion_IsByTheSchemaOfTheVersionInStorage(t *testing.T) {
	of := cogs(t, versioned{"v1", older, true, true}, versioned{"v2", newer, true, false})
	for _, tc := range []struct {
		reader, stored, spec, want string
	}{
		{"v1", "v1", `{}`, `{"size":1}`},
		{"v1", "v1", `{"maybe":null,"only1":"a","only2":"b"}`, `{"maybe":null,"only1":"a","size":1}`},
		{"v2", "v1", `{"maybe":null,"only1":"a","only2":"b"}`, `{"size":1}`},
		{"v2", "v2", `{}`, `{"only2":"x","size":2}`},
		{"v1", "v2", `{"size":3,"only2":"b","maybe":"c"}`, `{"maybe":"c","size":3}`},
		{"v1", "v9", `{"only2":"b"}`, `{"size":1}`},
	} {
		stored := cog(tc.stored, tc.spec)
		shown, differs := of[tc.reader].Config().Conversion.FromStorage(stored)
		require.True(t, differs)
		require.Equal(t, tc.want, specOf(shown), "%+v", tc)
		require.Equal(t, "example.com/"+tc.reader, shown.GetAPIVersion())
		require.Equal(t, map[string]string{"a": "b"}, shown.GetLabels())
		require.Equal(t, cog(tc.stored, tc.spec), stored, "it is shared")
	}
}

func TestConversion_StoresTheStorageVersion(t *testing.T) {
	of := cogs(t, versioned{"v1", older, true, true}, versioned{"v2", newer, true, false})
	stored, differs := of["v2"].Config().Conversion.ToStorage(cog("v2", `{"only2":"x","maybe":"a"}`))
	require.True(t, differs)
	require.Equal(t, "example.com/v1", stored.GetAPIVersion())
	require.JSONEq(t, `{"maybe":"a"}`, specOf(stored), "defaults come with the read")
	_, differs = of["v1"].Config().Conversion.ToStorage(cog("v1", `{"size":5}`))
	require.False(t, differs)
}

// The version that is stored need not be served.
func TestVersions_WithoutTheOneThatIsStored(t *testing.T) {
	of := cogs(t, versioned{"v1", older, false, true}, versioned{"v2", newer, true, false}, versioned{"v3", newer, true, false})
	require.Len(t, of, 2)
	for _, version := range []string{"v2", "v3"} {
		cfg := of[version].Config()
		require.Equal(t, "v1", cfg.StorageVersion)
		stored, _ := cfg.Conversion.ToStorage(cog(version, `{"only2":"x"}`))
		require.Equal(t, "example.com/v1", stored.GetAPIVersion())
		shown, _ := cfg.Conversion.FromStorage(stored)
		require.JSONEq(t, `{"size":1}`, specOf(shown), "with the default of v1")
	}
}

func TestSchemas_AreOfAllVersionsThatDifferInThemAlone(t *testing.T) {
	by := cogs(t, versioned{name: "v1", served: true, storage: true}, versioned{name: "v2", spec: `"size":{"type":"integer"}`})
	require.Len(t, by, 1)
	schemas := by["v1"].Schemas()
	require.Len(t, schemas, 2, "also of the one that is not served")
	require.Contains(t, string(schemas["v2"]), "size")

	of, err := crd.Parse(strings.NewReader(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"cogs.example.com"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"cogs","kind":"Cog"},"conversion":{"strategy":"Webhook"},"versions":[
			{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},
			{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`))
	require.NoError(t, err)
	require.Empty(t, of[0].Schemas(), "one is not the other under another name")
}

// A definition of a client may have no version that is served; a file of manifests is there to be
// served.
func TestVersions_MayBeNoneOfADefinition(t *testing.T) {
	o := unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"cogs.example.com"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"cogs","kind":"Cog"},"versions":[{"name":"v1","served":false,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)))
	d, err := crd.Define(&o)
	require.NoError(t, err)
	require.Empty(t, d.Versions())
	require.Equal(t, "v1", d.Kind.Version)
	text, err := o.MarshalJSON()
	require.NoError(t, err)
	_, err = crd.Parse(bytes.NewReader(text))
	require.ErrorIs(t, err, crd.ErrManifest)
	require.ErrorContains(t, err, "spec.versions needs one that is served")
}

// newStore returns a store of a definition over storage.
func newStore(t *testing.T, d *crd.Definition, b backend.Backend) *registry.Store[unstructured.Unstructured] {
	t.Helper()
	cfg := d.Config()
	cfg.Engine.Backend, cfg.Engine.FreshnessTimeout = b, time.Hour // however long a machine stands still
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// Objects are in memory once, whether the kind has defaults or not: a cache takes over storage's own
// objects, as long as they have what the schema says.
func TestConversion_SharesWhatItDoesNotChange(t *testing.T) {
	d := cogs(t, versioned{"v1", older, true, true})["v1"]
	b, err := memory.New(registry.Schema(d.Config()), memory.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	s := newStore(t, d, b)
	made, err := s.Create(t.Context(), cog("v1", `{}`), registry.WriteOptions{})
	require.NoError(t, err)
	require.JSONEq(t, `{"size":1}`, specOf(made.Value))
	read, err := s.Engine().Get(t.Context(), "c", engine.GetOptions{})
	require.NoError(t, err)
	require.Same(t, made, read)

	later := newStore(t, cogs(t, versioned{"v1", older + `,"late":{"type":"string","default":"a"}`, true, true})["v1"], b)
	require.NoError(t, later.Engine().WaitForRevision(t.Context(), made.Revision))
	read, err = later.Engine().Get(t.Context(), "c", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, made.Revision, read.Revision)
	require.JSONEq(t, `{"late":"a","size":1}`, specOf(read.Value))
	require.JSONEq(t, `{"size":1}`, specOf(made.Value), "others read it")
	again, err := later.Engine().Get(t.Context(), "c", engine.GetOptions{})
	require.NoError(t, err)
	require.Same(t, read, again, "it is converted once")
}

// aSchema draws the schema of a field, nested at most so deep.
func aSchema(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		s := map[string]any{"type": "string"}
		kinds := []string{"string", "object", "map", "any map", "array", "open array", "open", "embedded"}
		if depth == 0 {
			kinds = kinds[:1]
		}
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "object":
			s = map[string]any{"type": "object", "properties": properties(t, depth-1)}
		case "map":
			s = map[string]any{"type": "object", "additionalProperties": aSchema(depth-1).Draw(t, "values")}
		case "any map":
			s = map[string]any{"type": "object", "additionalProperties": true}
		case "open array":
			s = map[string]any{"type": "array", "items": aSchema(depth-1).Draw(t, "items"), "x-kubernetes-preserve-unknown-fields": true}
		case "array":
			s = map[string]any{"type": "array", "items": aSchema(depth-1).Draw(t, "items")}
		case "open":
			s = map[string]any{"type": "object", "properties": properties(t, depth-1), "x-kubernetes-preserve-unknown-fields": true}
		case "embedded":
			s = map[string]any{"type": "object", "properties": properties(t, depth-1), "x-kubernetes-embedded-resource": true}
		}
		if rapid.Bool().Draw(t, "nullable") {
			s["nullable"] = true
		}
		if rapid.Bool().Draw(t, "default") {
			s["default"] = map[string]any{"string": "d", "object": map[string]any{}, "array": []any{}}[s["type"].(string)]
		}
		if s["x-kubernetes-embedded-resource"] == true {
			delete(s, "default") // which needs a kind
		}
		return s
	})
}

func properties(t *rapid.T, depth int) map[string]any {
	all := map[string]any{}
	for _, name := range []string{"a", "b"} {
		if rapid.Bool().Draw(t, name) {
			all[name] = aSchema(depth).Draw(t, name)
		}
	}
	return all
}

// aValue draws a value, nested at most so deep.
func aValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := []string{"string", "null", "object", "object", "array"}
		if depth == 0 {
			kinds = kinds[:2]
		}
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "object":
			o := map[string]any{}
			for _, name := range []string{"a", "b", "c", "apiVersion", "metadata"} {
				if rapid.Bool().Draw(t, name) {
					o[name] = aValue(depth-1).Draw(t, name)
				}
			}
			return o
		case "array":
			return rapid.SliceOfN(aValue(depth-1), 0, 3).Draw(t, "items")
		case "null":
			return nil
		}
		return "s"
	})
}

// What a conversion leaves alone is what pruning and defaults, as of writes, leave alone; and what
// it has made it leaves alone.
func TestConversion_IsWhatAWriteDoes(t *testing.T) {
	for schema, value := range map[string]string{
		`{"type":"array","items":{"type":"string","default":"d"}}`:                          `[null]`,
		`{"type":"object","additionalProperties":{"type":"string"}}`:                        `{"x":null}`,
		`{"type":"object","additionalProperties":{"type":"string","default":"d"}}`:          `{"x":null}`,
		`{"type":"object","default":{},"properties":{"b":{"type":"string","default":"d"}}}`: `null`,
	} {
		requireWhatAWriteDoes(t, schema, value)
	}
	rapid.Check(t, func(t *rapid.T) {
		schema, err := json.Marshal(aSchema(3).Draw(t, "schema"))
		require.NoError(t, err)
		value, err := json.Marshal(aValue(3).Draw(t, "value"))
		require.NoError(t, err)
		requireWhatAWriteDoes(t, string(schema), string(value))
	})
}

// requireWhatAWriteDoes requires that reading a stored value shows what a write of it would store.
func requireWhatAWriteDoes(t require.TestingT, schema, value string) {
	spec := `{"a":` + value + `}`
	stored := cog("v1", spec)
	written := *stored.DeepCopy()
	cfg := cogs(t, versioned{"v1", `"a":` + schema, true, true})["v1"].Config()
	cfg.Prune(&written)
	cfg.Strategy.Default(&written)
	shown, differs := cfg.Conversion.FromStorage(stored)
	if differs {
		require.Equal(t, written, shown)
	} else {
		require.Equal(t, withoutMetadata(written.Object["spec"]), withoutMetadata(stored.Object["spec"]))
	}
	again, differs := cfg.Conversion.FromStorage(shown)
	require.False(t, differs, "%v became %v", shown, again)
	_, differs = cfg.Conversion.ToStorage(shown)
	require.False(t, differs)
	require.Equal(t, cog("v1", spec), stored, "it is shared")
}

// Versions of one schema differ only in their names, and readers of all versions share the stored object.
func TestConversion_LeavesTheVersionInStorageAlone(t *testing.T) {
	of := cogs(t, versioned{"v1", older, true, true}, versioned{"v2", older, true, false})
	stored := cog("v1", `{"size":1}`)
	shown, differs := of["v2"].Config().Conversion.FromStorage(stored)
	require.True(t, differs)
	require.Equal(t, "example.com/v2", shown.GetAPIVersion())
	require.Equal(t, cog("v1", `{"size":1}`), stored)
	again, differs := of["v2"].Config().Conversion.ToStorage(shown)
	require.True(t, differs)
	require.Equal(t, stored, again)
	require.Equal(t, "example.com/v2", shown.GetAPIVersion())
}

// withoutMetadata returns a value without metadata, which only a write cleans.
func withoutMetadata(value any) any {
	value = runtime.DeepCopyJSONValue(value)
	var drop func(any)
	drop = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			delete(v, "metadata")
			for _, member := range v {
				drop(member)
			}
		case []any:
			for _, item := range v {
				drop(item)
			}
		}
	}
	drop(value)
	return value
}
