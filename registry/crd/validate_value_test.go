package crd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd"
)

// validation returns the rules of things whose spec has a schema.
func validation(t *testing.T, spec string) func(now, before map[string]any) field.ErrorList {
	t.Helper()
	all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "{type: object}", "{type: object, properties: {spec: "+spec+", status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}", 1)))
	require.NoError(t, err)
	validate := all[0].Config().Strategy.Validate
	thing := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	}
	return func(now, before map[string]any) field.ErrorList {
		if before == nil {
			return validate(t.Context(), thing(now), nil)
		}
		return validate(t.Context(), thing(now), thing(before))
	}
}

// An object that was stored before its schema became stricter can be changed, and lose its
// finalizers, while what is wrong with it stays.
func TestChange_OfAnObjectThatIsOlderThanARule(t *testing.T) {
	before := storeOf(t, "{type: object, properties: {size: {type: integer}, color: {type: string}}}")
	it, err := before.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":-1}}`), registry.WriteOptions{})
	require.NoError(t, err)
	old, err := before.Engine().Get(t.Context(), it.Key(), engine.GetOptions{})
	require.NoError(t, err)

	validate := validation(t, "{type: object, required: [owner], properties: {size: {type: integer, minimum: 0}, color: {type: string}, owner: {type: string}}}")
	spec := old.Value.Object["spec"].(map[string]any)
	require.Len(t, validate(spec, nil), 2)
	require.Empty(t, validate(spec, spec))
	wrong := validate(map[string]any{"size": int64(-1), "color": "red"}, spec)
	require.Len(t, wrong, 1, "the spec has changed, and has no owner still")
	require.Equal(t, "spec.owner", wrong[0].Field)
	require.Empty(t, validate(map[string]any{"size": int64(-1), "color": "red", "owner": "b"}, spec))
	require.Len(t, validate(map[string]any{"size": int64(-2), "owner": "b"}, spec), 1)
}

// A controller can say how an object is that is older than a rule, as in Kubernetes: what is wrong
// with the rest is not for it to correct.
func TestChange_OfTheStatusIsRefusedForThatAlone(t *testing.T) {
	rulesOf := func(subresources string) func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) field.ErrorList {
		all, err := crd.Parse(strings.NewReader(strings.Replace(plain, "schema: {openAPIV3Schema: {type: object}}",
			subresources+`schema: {openAPIV3Schema: {type: object, required: [spec], minProperties: 9, properties: {spec: {type: object},
      ref: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true},
      status: {type: object, required: [size], properties: {size: {type: integer, maximum: 9}, old: {type: integer}}}}}}`, 1)))
		require.NoError(t, err)
		return all[0].Config().Strategy.Validate
	}
	validate := rulesOf(`subresources: {status: {}}, `)
	with := func(status, ref any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"ref": ref, "status": status}}
	}
	bad := map[string]any{"kind": "no kind"}
	before := with(map[string]any{"size": int64(1), "old": "text"}, bad)
	require.Empty(t, validate(t.Context(), with(map[string]any{"size": int64(2), "old": "text"}, bad), before))
	without := with(nil, bad)
	delete(without.Object, "status")
	require.Empty(t, validate(t.Context(), without, before))
	for status, field := range map[string]string{`{"size":10,"old":"text"}`: "status.size", `{"size":1,"old":"other"}`: "status.old", `{"old":"text"}`: "status.size", `5`: "status"} {
		var now any
		require.NoError(t, json.Unmarshal([]byte(status), &now))
		wrong := validate(t.Context(), with(now, bad), before)
		require.Len(t, wrong, 1, status)
		require.Equal(t, field, wrong[0].Field)
	}
	require.Greater(t, len(validate(t.Context(), with(map[string]any{"size": int64(2)}, map[string]any{"kind": "worse kind"}), before)), 1, "more than the status has changed")
	require.Greater(t, len(rulesOf("")(t.Context(), with(map[string]any{"size": int64(2), "old": "text"}, bad), before)), 1, "without the subresource, the status is a field like any other")
}

// Items of a map replace those with their keys, wherever they are; those of other lists replace
// none.
func TestChange_OfListsGoesByTheirType(t *testing.T) {
	validate := validation(t, `{type: object, properties: {
		map: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}, size: {type: integer, minimum: 0}, color: {type: string}}}},
		list: {type: array, items: {type: integer, minimum: 0}}}}`)
	item := func(name string, size int64, color string) map[string]any {
		return map[string]any{"name": name, "size": size, "color": color}
	}
	before := map[string]any{"map": []any{item("a", -1, "red"), item("b", 1, "red")}, "list": []any{int64(-1), int64(1)}}
	require.Len(t, validate(before, nil), 2)
	require.Empty(t, validate(map[string]any{"map": []any{item("c", 1, "red"), item("a", -1, "blue")}, "list": []any{int64(-1), int64(1)}}, before))
	require.Len(t, validate(map[string]any{"map": []any{item("b", -1, "red"), item("c", -1, "red")}}, before), 2)
	require.Len(t, validate(map[string]any{"list": []any{int64(-1)}}, before), 1)
}

// A map is as it was whatever the order of its items, and so is what it is in.
func TestChange_OfTheOrderOfAMapIsNone(t *testing.T) {
	const keyed = `{type: array, maxItems: 1, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}, inner: {type: array, maxItems: 1}}}}`
	validate := validation(t, `{type: object, properties: {size: {type: integer}, one: {type: object, maxProperties: 1, properties: {map: `+keyed+`, list: {type: array, items: {type: object}}}},
		many: {type: object, additionalProperties: `+keyed+`}}}`)
	a, b := map[string]any{"name": "a", "inner": []any{int64(1), int64(2)}}, map[string]any{"name": "b"}
	spec := func(size int64, one, two, three any) map[string]any {
		return map[string]any{"size": size, "one": map[string]any{"map": []any{one, two}, "list": []any{three, one}}, "many": map[string]any{"x": []any{two, one}}}
	}
	before := spec(1, a, b, a)
	require.Len(t, validate(before, nil), 5)
	changed := spec(2, b, a, a)
	changed["one"].(map[string]any)["list"] = []any{a, a}
	require.Empty(t, validate(changed, before))
	require.NotEmpty(t, validate(spec(2, b, map[string]any{"name": "a", "inner": []any{int64(2), int64(1)}}, a), before))
	require.NotEmpty(t, validate(spec(2, b, map[string]any{"name": "c"}, a), before))
	require.NotEmpty(t, validate(spec(2, a, b, b), before), "the order of other lists counts")

	validate = validation(t, `{type: object, properties: {map: {type: array, minItems: 2, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}}}}}}`)
	require.Len(t, validate(map[string]any{"map": []any{b}}, map[string]any{"map": []any{b, map[string]any{"name": "c"}}}), 1, "an item is gone")

	validate = validation(t, `{type: object, maxProperties: 0, properties: {map: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]}}}`)
	unsaid := map[string]any{"map": []any{a}}
	require.Empty(t, validate(unsaid, unsaid), "of whose items nothing is said")
}

// What an update of a large list costs grows with its length, not with the square of it.
func TestChange_OfALargeListTakesNoLongerThanItHasTo(t *testing.T) {
	validate := validation(t, `{type: object, properties: {size: {type: integer}, map: {type: array,
		x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}}}}}}`)
	cost := func(length int) float64 {
		items := make([]any, length)
		for i := range items {
			items[i] = map[string]any{"name": strconv.Itoa(i)}
		}
		now, before := map[string]any{"size": "large", "map": items}, map[string]any{"size": int64(1), "map": items}
		return testing.AllocsPerRun(1, func() { require.Len(t, validate(now, before), 1) })
	}
	require.Less(t, cost(800), 5*cost(200))
}

// A format that is not known must not keep a value from having the type that its schema demands.
func TestValidate_OfAFormatThatIsNotKnown(t *testing.T) {
	validate := validation(t, `{type: object, properties: {text: {type: string, format: odd}, flag: {type: boolean, format: odd}, many: {type: array, items: {type: object, format: odd}},
		either: {x-kubernetes-int-or-string: true, format: odd}, number: {type: integer, format: odd}, mail: {type: string, format: email}}}`)
	for value, wrong := range map[string]string{
		`{"text":"a","flag":true,"many":[{}],"either":5,"number":5,"mail":"a@b.c"}`: "", `{"either":"a"}`: "",
		`{"text":["a"]}`: "spec.text", `{"text":5}`: "spec.text", `{"flag":"yes"}`: "spec.flag", `{"flag":[]}`: "spec.flag", `{"many":["a"]}`: "spec.many[0]",
		`{"either":["a"]}`: "spec.either", `{"number":"a"}`: "spec.number", `{"mail":"a"}`: "spec.mail",
	} {
		var spec map[string]any
		require.NoError(t, json.Unmarshal([]byte(value), &spec))
		found := validate(spec, nil)
		if wrong == "" {
			require.Empty(t, found, value)
			continue
		}
		require.Len(t, found, 1, value)
		require.Equal(t, wrong, found[0].Field, value)
	}
}

// An object with very many errors is refused with the first of them, in time that
// grows with its length, not with the square of it.
func TestValidate_OfManyErrorsTellsTheFirst(t *testing.T) {
	validate := validation(t, `{type: object, properties: {list: {type: array, items: {type: integer}}, map: {type: object, additionalProperties: {type: integer}},
		set: {type: array, x-kubernetes-list-type: set, items: {type: integer}}}}`)
	list, set, fields := []any{}, []any{}, map[string]any{}
	for i := range 100_000 {
		list, set = append(list, "a"), append(set, int64(1))
		fields[strconv.Itoa(i)] = "a"
	}
	for name, value := range map[string]any{"list": list, "map": fields, "set": set} {
		for _, before := range []map[string]any{nil, {}} {
			wrong := validate(map[string]any{name: value}, before)
			require.Len(t, wrong, 101, name)
			require.Equal(t, "Too many: the object has more errors than these 100", wrong[100].ErrorBody(), name)
		}
	}
}

// A name of a field is in the path of each value below it: a body has room for a million values below
// one name of a megabyte.
func TestValidate_BelowALongNameTakesNoMoreThanItHasTo(t *testing.T) {
	validate := validation(t, `{type: object, additionalProperties: {type: array, x-kubernetes-list-type: set, items: {type: integer, minimum: 0}}}`)
	name := strings.Repeat("n", 100<<10)
	for item, want := range map[int64]field.ErrorType{1: field.ErrorTypeDuplicate, -1: field.ErrorTypeInvalid} {
		list := make([]any, 5000)
		for i := range list {
			list[i] = item
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		wrong := validate(map[string]any{name: list}, nil)
		runtime.ReadMemStats(&after)
		require.Len(t, wrong, 101)
		require.Equal(t, want, wrong[0].Type)
		require.True(t, strings.HasPrefix(wrong[0].Field, "spec.nnn"), wrong[0].Field)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(50<<20))
	}
}

// Errors of an alternative that is not taken are none of the object, and are not counted.
func TestValidate_CountsNoErrorsOfAlternatives(t *testing.T) {
	validate := validation(t, `{type: object, properties: {after: {type: integer, minimum: 0}, before: {type: array, items: {type: integer}, anyOf: [{items: {maximum: 0}}, {items: {minimum: 0}}]}}}`)
	list := make([]any, 200)
	for i := range list {
		list[i] = int64(1)
	}
	require.Empty(t, validate(map[string]any{"before": list, "after": int64(1)}, nil))
	for range 10 { // fields have no order
		require.Len(t, validate(map[string]any{"before": list, "after": int64(-1)}, nil), 1)
	}
	list[0] = int64(-1)
	require.NotEmpty(t, validate(map[string]any{"before": list}, nil))
}

// What the enums and the alternatives of a schema make of a large object has a bound: it would take minutes, or hours.
// An object that was stored before can be changed elsewhere.
func TestValidate_OfEnumsAndAlternativesIsBounded(t *testing.T) {
	var values, alternatives []string
	for i := range 20_000 {
		values = append(values, strconv.Itoa(i))
	}
	for range 1000 {
		alternatives = append(alternatives, "{items: {minimum: 9}}")
	}
	list := make([]any, 20_000)
	for i := range list {
		list[i] = int64(19_999)
	}
	for name, schema := range map[string]string{
		"enum":              "{type: array, items: {type: integer, enum: [" + strings.Join(values, ",") + "]}}",
		"enum in one of it": "{type: array, items: {type: integer, anyOf: [{minimum: 100000}, {not: {enum: [-1]}, enum: [" + strings.Join(values, ",") + "]}]}}",
		"alternatives":      "{type: array, items: {type: integer}, anyOf: [" + strings.Join(alternatives, ",") + ", {}]}",
		"fields":            "{type: array, items: {type: integer}, allOf: [{items: {allOf: [" + strings.Join(alternatives, ",") + "]}}]}",
	} {
		validate := validation(t, "{type: object, properties: {other: {type: integer, minimum: 0}, list: "+schema+"}}")
		large := map[string]any{"list": list, "other": int64(1)}
		wrong := validate(large, nil)
		require.Len(t, wrong, 1, name)
		require.Contains(t, wrong[0].Detail, "too long to validate", name)
		require.Empty(t, validate(map[string]any{"list": list, "other": int64(2)}, large), name)
		require.Empty(t, validate(map[string]any{"list": list[:100]}, nil), name)
	}
}

// Of independent fields, those that are wrong and have changed are errors, and no others.
func TestChange_PropertyOnlyWhatChangesIsAnError(t *testing.T) {
	const fields = 6
	var properties []string
	for i := range fields {
		properties = append(properties, fmt.Sprintf("f%d: {type: object, properties: {in: {type: integer, minimum: 0}}}", i))
	}
	validate := validation(t, "{type: object, properties: {"+strings.Join(properties, ", ")+"}}")
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func() map[string]any {
		spec := map[string]any{}
		for i := range fields {
			if rng.IntN(4) > 0 {
				spec[fmt.Sprintf("f%d", i)] = map[string]any{"in": rng.Int64N(4) - 2}
			}
		}
		return spec
	}
	for range 500 {
		now, before := draw(), draw()
		var want []string
		for name, value := range now {
			in := value.(map[string]any)["in"].(int64)
			old, found := before[name].(map[string]any)
			if in < 0 && (!found || old["in"] != in) {
				want = append(want, "spec."+name+".in")
			}
		}
		var got []string
		for _, err := range validate(now, before) {
			got = append(got, err.Field)
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got, "%v after %v", now, before)
	}
}
