package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

// descending returns names, the last in their order first.
func descending(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("example.com/a%06d", n-i)
	}
	return all
}

// The library puts members in order one by one, which takes minutes for those that a body has room for.
// A write that has too many is done without saying who owns its fields.
func TestUpdate_OfTooManyMembersIsNotRecorded(t *testing.T) {
	const many = 25_000
	limits, labels := map[string]int{}, map[string]string{}
	for _, name := range descending(2 * many) {
		limits[name], labels[strings.TrimPrefix(name, "example.com/")] = 1, ""
	}
	teeth := make([]Tooth, many)
	for i, name := range descending(many) {
		teeth[i].Name = name
	}
	for what, gear := range map[string]Gear{
		"a set": {Spec: GearSpec{Tags: descending(many)}}, "a list with keys": {Spec: GearSpec{Teeth: teeth}}, "a map": {Spec: GearSpec{Limits: limits}},
		"finalizers": {ObjectMeta: metav1.ObjectMeta{Finalizers: descending(many)}}, "labels": {ObjectMeta: metav1.ObjectMeta{Labels: labels}},
	} {
		g := newGears(t)
		gear.Namespace, gear.Name = "default", "a"
		var warnings []string
		opts := registry.WriteOptions{Manager: "m", Warn: func(text string) { warnings = append(warnings, text) }}
		o, err := g.store.Create(t.Context(), gear, opts)
		require.NoError(t, err, what)
		require.Empty(t, o.Value.ManagedFields, what)
		require.Len(t, warnings, 1, what)
		require.Contains(t, warnings[0], "metadata.managedFields stay as they were: there are too many items", what)
		_, err = g.try("n", `"spec":{"size":1}`)
		var bad *registry.BadRequestError
		require.ErrorAs(t, err, &bad, "what there is cannot be merged either")
	}
}

func TestApply_OfTooManyMembersIsRefused(t *testing.T) {
	_, err := newGears(t).try("m", `"spec":{"tags":["`+strings.Join(descending(25_000), `","`)+`"]}`)
	var bad *registry.BadRequestError
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "too many")
}

// A list merges also by the strategy of strategic merge patches, if its schema gives it no list type.
func TestApply_OfTooManyItemsOfAListWithAPatchStrategyIsRefused(t *testing.T) {
	for keywords, refused := range map[string]bool{
		`"x-kubernetes-patch-strategy":"merge"`:                                     true,
		`"x-kubernetes-patch-strategy":"merge,retainKeys"`:                          true,
		`"x-kubernetes-patch-strategy":"retainKeys"`:                                false,
		`"x-kubernetes-patch-strategy":"merge","x-kubernetes-list-type":"atomic"`:   false,
		`"x-kubernetes-patch-strategy":"retainKeys","x-kubernetes-list-type":"set"`: true,
	} {
		g := newGears(t, func(c *registry.Config[Gear]) {
			c.Schema = specSchema(`"tags":{"type":"array","items":{"type":"string"},` + keywords + `}`)
		})
		_, err := g.try("m", `"spec":{"tags":["`+strings.Join(descending(25_000), `","`)+`"]}`)
		require.Equal(t, refused, errors.As(err, new(*registry.BadRequestError)), "%s: %v", keywords, err)
	}
}

// What is recorded of owners does not count with the fields that they own.
func TestApply_ToWhatHasBeenCreated(t *testing.T) {
	g := newGears(t)
	limits := make([]string, 33_000)
	for i, name := range descending(len(limits)) {
		limits[i] = fmt.Sprintf("%q:1", name)
	}
	whole := `"spec":{"limits":{` + strings.Join(limits, ",") + `}}`
	g.apply("first", whole)
	g.apply("second", whole)
	g.apply("second", `"spec":{"size":1}`)
}

// The library puts the items of lists that are recorded in order, too.
func TestApply_ToALongListWithManyOwnersIsRefused(t *testing.T) {
	applier, err := apply.New(config().Kind, []byte(`{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}}}`))
	require.NoError(t, err)
	items := map[string]any{}
	for i := range 20_000 {
		items[fmt.Sprint("v:", i)] = map[string]any{}
	}
	entry := map[string]any{"manager": "m", "fieldsV1": map[string]any{"f:tags": items}}
	live := map[string]any{"metadata": map[string]any{"uid": "u", "managedFields": []any{entry, entry, entry, entry, entry}}}
	_, err = applier.Apply(live, map[string]any{}, registry.Manager{Name: "m"}, false)
	require.ErrorAs(t, err, new(*registry.BadRequestError))
	require.ErrorContains(t, err, "four owners")
	_, err = applier.Update(live, map[string]any{}, registry.Manager{Name: "m"})
	require.ErrorContains(t, err, "four owners")
}

// Objects are merged in the versions that are recorded, too, in which lists may have other types.
func TestApply_ToAListThatMergesInAnotherVersionIsRefused(t *testing.T) {
	const list = `"tags":{"type":"array","items":{"type":"string"}`
	both := map[string]json.RawMessage{"v1": specSchema(list + `}`), "v2": specSchema(list + `,"x-kubernetes-list-type":"set"}`)}
	items := make([]any, 25_000)
	for i := range items {
		items[i] = fmt.Sprint(i)
	}
	live := in("v1", map[string]any{"tags": items}).Object
	one := registry.Manager{Name: "m"}
	for version := range both {
		a, err := apply.Versions(both)(registry.Kind{Group: "example.com", Version: version, Kind: "Gear"}, both[version])
		require.NoError(t, err)
		_, err = a.Apply(live, in(version, nil).Object, one, false)
		require.ErrorAs(t, err, new(*registry.BadRequestError), version)
		_, err = a.Update(live, live, one)
		require.ErrorContains(t, err, "too many items", version)
	}
	a, err := apply.New(registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear"}, both["v1"])
	require.NoError(t, err)
	_, err = a.Update(live, live, one)
	require.NoError(t, err, "there is no other version")
}

// A list that is one field is one, however long it is.
func TestUpdate_ALongListThatIsOneFieldIsRecorded(t *testing.T) {
	for _, applies := range []func(registry.Kind, json.RawMessage) (registry.Applier, error){apply.New, apply.Deduced} {
		g := newGears(t, func(c *registry.Config[Gear]) { c.Apply = applies })
		o, err := g.store.Create(t.Context(), Gear{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: GearSpec{Order: descending(50_000)}}, registry.WriteOptions{Manager: "m"})
		require.NoError(t, err)
		require.Contains(t, owners(t, &o.Value), "m Update: spec.order")
	}
}

// The parser puts the names of the fields around together for each field that is there twice.
func TestApply_OfLongNamesIsRefused(t *testing.T) {
	g := newGears(t)
	for text, mention := range map[string]string{
		`"spec":{"` + strings.Repeat("long", 1<<13) + `":[` + strings.Repeat(`{"a":1},`, 600) + `1]}`: "more than 16777216 bytes",
		`"spec":` + strings.Repeat(`{"a":`, 101) + strings.Repeat("}", 101):                           "nested more than 100 deep",
	} {
		_, err := g.try("m", text)
		var bad *registry.BadRequestError
		require.ErrorAs(t, err, &bad)
		require.ErrorContains(t, err, mention)
	}
	g.apply("m", `"spec":{"limits":{"`+strings.Repeat("long", 1<<10)+`":1}}`)
}

// An item of a set may be long: managed fields, which patches and applies read again, have it as a name.
func TestApply_OfLongItemsOfASetCanBeRepeated(t *testing.T) {
	g := newGears(t)
	item := strings.Repeat("long", 1<<13)
	g.apply("m", `"spec":{"tags":["`+item+`"]}`)
	g.apply("m", `"spec":{"tags":["`+item+`","b"]}`)
	g.apply("other", `"spec":{"tags":["c"]}`)
}

// The key of an item is a value in a body, and a name around the item's fields in managed fields. What a parser
// would refuse is not recorded, so that the object can be sent back.
func TestUpdate_FieldsBelowTooManyLongKeysAreNotRecorded(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{
		Kind: config().Kind, Apply: apply.New,
		Schema: json.RawMessage(`{"type":"object","properties":{"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["key"],
			"items":{"type":"object","properties":{"key":{"type":"string"}},"x-kubernetes-preserve-unknown-fields":true}}}}`),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := s.Resources()[0]
	for n, recorded := range map[int]bool{780: true, 820: false} {
		item := `{"key":"` + strings.Repeat("long", 5<<10) + `"`
		for i := range n {
			item += fmt.Sprintf(`,"f%d":1`, i)
		}
		var warnings []string
		opts := registry.WriteOptions{Manager: "m", Warn: func(text string) { warnings = append(warnings, text) }}
		o, err := r.Create(t.Context(), "default", []byte(`{"metadata":{"generateName":"a-"},"items":[`+item+`}]}`), opts)
		require.NoError(t, err)
		text, err := o.JSON()
		require.NoError(t, err)
		require.Equal(t, recorded, strings.Contains(string(text), "managedFields"))
		require.Equal(t, recorded, len(warnings) == 0, "%q", warnings)
		_, _, err = r.Update(t.Context(), o.Key(), func(registry.Item) ([]byte, error) { return text, nil }, opts)
		require.NoError(t, err)
	}
}

// Names around fields count for the object and for what is recorded of it, each for itself.
func TestUpdate_LongNamesAreSentBack(t *testing.T) {
	s, err := registry.New(registry.Config[unstructured.Unstructured]{Kind: config().Kind, Apply: apply.New, Schema: json.RawMessage(`{"type":"object"}`)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := s.Resources()[0]
	var fields []string
	for i := range 780 {
		fields = append(fields, fmt.Sprintf(`"f%d":1`, i))
	}
	o, err := r.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"`+strings.Repeat("long", 5<<10)+`":{`+strings.Join(fields, ",")+`}}}`), registry.WriteOptions{Manager: "m"})
	require.NoError(t, err)
	text, err := o.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), "managedFields")
	_, _, err = r.Update(t.Context(), o.Key(), func(registry.Item) ([]byte, error) { return text, nil }, registry.WriteOptions{Manager: "m"})
	require.NoError(t, err)
}

func TestDecode_RefusesWhatIsNoConfiguration(t *testing.T) {
	applier, err := apply.New(config().Kind, []byte(`{"type":"object"}`))
	require.NoError(t, err)
	for text, why := range map[string]string{
		"":      "it is empty",
		"null":  "it is empty",
		"# no":  "it is empty",
		"a: [":  "did not find expected node content",
		"a: *b": "unknown anchor 'b' referenced",
		"a: &a " + strings.Repeat("x", 100<<10) + "\nb: [" + strings.Repeat("*a, ", 40) + "]": "alias",
	} {
		_, _, err := applier.Decode([]byte(text))
		require.ErrorContains(t, err, why, "%.60s", text)
	}
}
