package registry_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

func TestResource_BodiesAreDecodedByTheRules(t *testing.T) {
	s := newStore(t, config())
	r := s.Resources()[0]
	post := func(text string, opts registry.WriteOptions) (registry.Item, error) {
		return r.Create(t.Context(), "default", []byte(text), opts)
	}
	var warnings []string
	opts := registry.WriteOptions{Warn: func(text string) { warnings = append(warnings, text) }}
	it, err := post(`{"metadata":{"name":"a"},"spec":{"size":2000,"colour":"x","size":2000}}`, opts)
	require.NoError(t, err)
	require.Equal(t, "default/a", it.Key())
	require.Equal(t, []string{`duplicate field "spec.size"`, "this is large", `unknown field "spec.colour"`}, sorted(warnings))
	text := body(t, it)
	require.JSONEq(t, `{"size":2000,"color":"grey"}`, part(t, text, "spec"))
	require.Contains(t, text, `"resourceVersion":"`+it.Revision().String()+`"`)
	require.Contains(t, text, `"apiVersion":"example.com/v1"`)
	require.Equal(t, []any{2000}, it.AppendCells(nil))

	strict := registry.WriteOptions{Validation: registry.RefuseUnknown}
	refused := map[string]registry.WriteOptions{
		`{"metadata":{"name":"b"},"spec":{"colour":"x"}}`:         strict,
		`{"metadata":{"name":"b"},"spec":{"size":"big"}}`:         {},
		`{"metadata":{"name":"b","namespace":"other"}}`:           {},
		`{"kind":"Gadget","metadata":{"name":"b"}}`:               {},
		`{"apiVersion":"example.com/v2","metadata":{"name":"b"}}`: {},
		`{"apiVersion":"example.com/","metadata":{"name":"b"}}`:   {},
		`{"apiVersion":"a/b/c","metadata":{"name":"b"}}`:          {},
		`[]`:           {},
		`{"metadata":`: {},
		strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101):          {},
		`{"metadata":{"name":"b","labels":{"a":1}}}`:                           {},
		`{"metadata":{"name":"b"},"spec":{"size":99999999999999999999999999}}`: {},
	}
	for text, opts := range refused {
		_, err := post(text, opts)
		require.ErrorAs(t, err, new(*registry.BadRequestError), text)
	}
	_, err = post(`{"metadata":{"name":"b"},"spec":{"size":1,"colour":"x"}}`, registry.WriteOptions{Validation: registry.IgnoreUnknown})
	require.NoError(t, err)
}

// The parser puts the names of the fields around together for each field that is there twice, even where
// nothing is told of it: a body has room for one name of a megabyte and for many fields below it.
func TestResource_FieldsOfLongNamesAreRefused(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{Kind: config().Kind})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := s.Resources()[0]
	var repeated strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&repeated, `"a%d":1,"a%d":1,`, i, i)
	}
	spec := `{"` + strings.Repeat("long", 1<<16) + `":{` + repeated.String() + `"b":1}}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = r.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":`+spec+`}`), registry.WriteOptions{Validation: registry.IgnoreUnknown})
	runtime.ReadMemStats(&after)
	require.ErrorAs(t, err, new(*registry.BadRequestError))
	require.ErrorContains(t, err, "more than 16777216 bytes")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(50<<20))
	_, err = r.Info().ParsePatch(registry.MergePatch, []byte(`{"spec":`+spec+`}`))
	require.ErrorContains(t, err, "more than 16777216 bytes")
}

// Fields that the kind does not have are removed from what the process writes, as from bodies.
func TestPrune_OfWritesInTheProcess(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{
		Kind: config().Kind,
		Prune: func(o *unstructured.Unstructured) (gone []string) {
			if _, has := o.Object["old"]; has {
				delete(o.Object, "old")
				gone = []string{"old"}
			}
			return gone
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	value := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default"}, "old": int64(1)}}
	strict := registry.WriteOptions{Validation: registry.RefuseUnknown}
	_, err = s.Create(t.Context(), value, strict)
	var bad *registry.BadRequestError
	require.ErrorAs(t, err, &bad)
	var warned []string
	warn := registry.WriteOptions{Warn: func(text string) { warned = append(warned, text) }}
	o, err := s.Create(t.Context(), value, warn)
	require.NoError(t, err)
	require.NotContains(t, o.Value.Object, "old")
	add := func(old *engine.Object[unstructured.Unstructured]) (unstructured.Unstructured, error) {
		next := *old.Value.DeepCopy()
		next.Object["old"] = int64(2)
		return next, nil
	}
	_, _, err = s.Update(t.Context(), "default/a", add, strict)
	require.ErrorAs(t, err, &bad)
	o, _, err = s.Update(t.Context(), "default/a", add, warn)
	require.NoError(t, err)
	require.NotContains(t, o.Value.Object, "old")
	require.Equal(t, []string{`unknown field "old"`, `unknown field "old"`}, warned)
	require.Contains(t, value.Object, "old", "it is the caller's")
}
