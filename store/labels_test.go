package store_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
)

func ExampleLabelsOf() {
	l := store.LabelsOf(labels.Set{"tier": "db", "app": "web"})
	fmt.Println(l, l.Get("app"), l.Has("zone"), l.Len())
	for name, value := range l.All() {
		fmt.Println(name, "is", value)
	}
	selector, _ := labels.Parse("app in (web,api)")
	fmt.Println(selector.Matches(l))
	// Output:
	// app=web,tier=db web false 2
	// app is web
	// tier is db
	// true
}

// Objects share the names, and an update the values that it does not change.
func ExampleLabelNames_Labels() {
	names := &store.LabelNames{"app", "tier"}
	first := names.Labels([]string{"web", ""}, store.Labels{})
	second := names.Labels([]string{"web", "db"}, first)
	fmt.Println(first)
	fmt.Println(second, first.Equal(second))
	// Output:
	// app=web
	// app=web,tier=db false
}

// labelForms are the labels of set in each form that has them: values of names cannot be "".
func labelForms(set labels.Set) map[string]store.Labels {
	forms := map[string]store.Labels{"map": store.LabelsOf(set)}
	if slices.Contains(slices.Collect(maps.Values(set)), "") {
		return forms
	}
	names, values := &store.LabelNames{}, []string(nil)
	for _, name := range []string{"a", "app", "b", "tier", "x"} {
		*names, values = append(*names, name), append(values, set[name])
	}
	forms["values"] = names.Labels(values, store.Labels{})
	return forms
}

// anyLabels draws labels of a few names and values.
func anyLabels(t *rapid.T, name string) labels.Set {
	return rapid.MapOf(
		rapid.SampledFrom([]string{"a", "app", "b", "tier", "x"}),
		rapid.SampledFrom([]string{"", "1", "db", "web"}),
	).Draw(t, name)
}

func TestLabels_AreAsTheMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, other := anyLabels(t, "labels"), anyLabels(t, "others")
		selector, err := labels.Parse(rapid.SampledFrom([]string{"", "app=web", "app!=web", "tier", "!tier", "app in (1,web),x", "x>0"}).Draw(t, "selector"))
		require.NoError(t, err)
		for form, l := range labelForms(set) {
			require.Equal(t, len(set), l.Len(), form)
			require.Equal(t, set, labels.Set(maps.Collect(l.All())), form)
			require.Equal(t, len(set) > 0, l.Set() != nil, form)
			require.True(t, maps.Equal(set, l.Set()), form)
			require.Equal(t, set.String(), l.String(), form)
			require.Equal(t, selector.Matches(set), selector.Matches(l), form)
			for _, name := range []string{"a", "app", "zone"} {
				value, there := set[name]
				got, has := l.Lookup(name)
				require.Equal(t, []any{value, there}, []any{got, has}, form)
				require.Equal(t, []any{value, there}, []any{l.Get(name), l.Has(name)}, form)
			}
			for otherForm, o := range labelForms(other) {
				require.Equal(t, maps.Equal(set, other), l.Equal(o), "%s and %s", form, otherForm)
			}

			text, err := json.Marshal(l)
			require.NoError(t, err)
			var read store.Labels
			require.NoError(t, json.Unmarshal(text, &read))
			require.True(t, l.Equal(read), "%s as %s", form, text)
		}
	})
}

func TestLabels_AllIsInTheOrderOfNamesAndEndsWithTheLoop(t *testing.T) {
	for form, l := range labelForms(labels.Set{"tier": "db", "app": "web", "b": "1"}) {
		var seen []string
		for name := range l.All() {
			if seen = append(seen, name); len(seen) == 2 {
				break
			}
		}
		require.Equal(t, []string{"app", "b"}, seen, form)
	}
}

func TestLabels_ThatAreNoneSelectAsNone(t *testing.T) {
	var none store.Labels
	require.Zero(t, none.Len())
	require.Nil(t, none.Set())
	require.Empty(t, none.AppendTo(nil))
	require.True(t, none.Equal(store.LabelsOf(labels.Set{})))
	require.True(t, none.Equal((&store.LabelNames{"app"}).Labels([]string{""}, none)))
	require.False(t, store.LabelsOf(labels.Set{"a": ""}).Equal(store.LabelsOf(labels.Set{"b": ""})), "a label without a value is one")
	for text, matches := range map[string]bool{"app": false, "!app": true, "app!=web": true} {
		filter, err := store.NewFilter(storetest.Columns, store.FilterOptions{Labels: text})
		require.NoError(t, err)
		require.Equal(t, matches, store.Matches(filter, &store.Object{}), text)
	}
}

func TestLabels_OfAnotherKindThanLabelsAreNoJSON(t *testing.T) {
	l := store.LabelsOf(labels.Set{"app": "web"})
	require.Error(t, json.Unmarshal([]byte(`{"app":1}`), &l))
	require.Equal(t, "web", l.Get("app"), "it is as it was")
}

func TestLabelNames_KeepTheLabelsBeforeIfTheyAreTheSame(t *testing.T) {
	names, same := &store.LabelNames{"app", "tier"}, &store.LabelNames{"app", "tier"}
	before := names.Labels([]string{"web", "db"}, store.Labels{})
	object := func(l store.Labels) *store.Object { return &store.Object{Labels: l} }
	shared := func(l store.Labels) bool { return store.SharesAttributes(object(before), object(l)) }

	require.True(t, shared(names.Labels([]string{"web", "db"}, before)))
	require.True(t, shared(same.Labels([]string{"web", "db"}, before)), "as after another Open of the same storage")
	require.False(t, shared(names.Labels([]string{"web", "cache"}, before)))
	require.False(t, shared((&store.LabelNames{"app", "zone"}).Labels([]string{"web", "db"}, before)))
	require.False(t, shared(names.Labels([]string{"web", "db"}, store.LabelsOf(before.Set()))), "a map is another form")
	require.Zero(t, testing.AllocsPerRun(100, func() { names.Labels([]string{"web", "db"}, before) }))
}

func TestLabels_AreReadWithoutAllocating(t *testing.T) {
	filter, err := store.NewFilter(storetest.Columns, store.FilterOptions{Labels: "app=web,tier!=db,x notin (1,2),b"})
	require.NoError(t, err)
	room := make([]store.LabelPair, 0, 8)
	for form, l := range labelForms(labels.Set{"app": "web", "b": "1"}) {
		o := &store.Object{Labels: l}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if !store.Matches(filter, o) {
				panic("it matches")
			}
			room = l.AppendTo(room[:0])
		}), form)
	}
}

// Every update compares the object's labels with those that it had before.
func TestLabels_AreComparedWithoutAllocating(t *testing.T) {
	set := labels.Set{"app": "web", "b": "1"}
	for form, l := range labelForms(set) {
		for otherForm, other := range labelForms(maps.Clone(set)) {
			require.Zero(t, testing.AllocsPerRun(100, func() {
				if !l.Equal(other) {
					panic("they are equal")
				}
			}), "%s and %s", form, otherForm)
		}
	}
}
