package registry_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
)

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}

// part returns one field of a JSON object as JSON, "{}" if it is not there.
func part(t *testing.T, text, name string) string {
	t.Helper()
	fields := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal([]byte(text), &fields))
	if fields[name] == nil {
		return "{}"
	}
	return string(fields[name])
}

func FuzzPatch(f *testing.F) {
	f.Add(`{"a":null}`, `{"a":1}`, true)
	f.Add(`[{"op":"add","path":"/a/-","value":1}]`, `{"a":[]}`, false)
	f.Add(`[{"op":"move","from":"/a","path":"/b"}]`, `{"a":[]}`, false)
	f.Add(`[{"op":"test","path":"/a","value":[null]}]`, `{"a":[null]}`, false)
	f.Fuzz(func(t *testing.T, patch, document string, merge bool) {
		kind := registry.JSONPatch
		if merge {
			kind = registry.MergePatch
		}
		if !json.Valid([]byte(document)) {
			return
		}
		p, err := registry.ParsePatch(kind, []byte(patch))
		if err != nil {
			require.ErrorAs(t, err, new(*registry.BadRequestError))
			return
		}
		out, err := p.Apply([]byte(document))
		if err != nil {
			require.ErrorAs(t, err, new(*registry.PatchError))
			return
		}
		require.True(t, json.Valid(out), "%s", out)
	})
}

func FuzzBody(f *testing.F) {
	s, err := registry.New(config())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	r := s.Resources()[0]
	f.Add(`{"metadata":{"generateName":"a-"},"spec":{"size":1}}`)
	f.Add(`{"metadata":{"name":"b","finalizers":["x/y"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		it, err := r.Create(t.Context(), "default", []byte(text), registry.WriteOptions{DryRun: true})
		if err != nil {
			return
		}
		out, err := it.JSON()
		require.NoError(t, err)
		_, err = r.Create(t.Context(), "default", out, registry.WriteOptions{DryRun: true})
		require.NoError(t, err, "what was taken is taken again: %s", out)
	})
}

// What a format decodes it encodes to what it decodes to the same, and nothing makes it
// panic.
func FuzzFormat(f *testing.F) {
	format, err := registry.FormatOf(config())
	require.NoError(f, err)
	f.Add([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"default","name":"a","resourceVersion":"7"},"spec":{"size":3}}`))
	f.Add([]byte(`{"metadata":{"name":"..","resourceVersion":"-1"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := format.Decode(body)
		if err != nil {
			return
		}
		require.NotZero(t, o.Revision)
		again, err := format.Encode(o, o.Revision.String())
		require.NoError(t, err)
		same, err := format.Decode(again)
		require.NoError(t, err)
		require.Equal(t, o.Key, same.Key)
		require.Equal(t, o.Revision, same.Revision)
		schema := format.Schema()
		require.True(t, schema.Equal(o, same), "%s", again)
	})
}
