package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
)

var (
	anyKey    = rapid.SampledFrom([]string{"a", "a/b", "a/bc", "ab", "ab/c", "a/b/c"})
	anyPrefix = rapid.SampledFrom([]string{"", "a", "a/", "a/b", "a/b/", "ab", "x"})
	anyName   = rapid.SampledFrom([]string{"p", "q", "r"})
	anyValue  = rapid.SampledFrom([]string{"", "1", "2", "3"})
	anySet    = rapid.MapOf(anyName, anyValue)
	// anyLabelTerm and anyFieldTerm are terms in selector syntax.
	anyLabelTerm = rapid.Custom(func(t *rapid.T) string {
		name, v := anyName.Draw(t, "name"), rapid.SliceOfN(anyValue, 1, 3).Draw(t, "values")
		return rapid.SampledFrom([]string{
			name + "=" + v[0], name + "==" + v[0], name + "!=" + v[0],
			name + " in (" + strings.Join(v, ",") + ")", name + " notin (" + strings.Join(v, ",") + ")",
			name, "!" + name, name + ">1", name + "<3",
		}).Draw(t, "term")
	})
	anyFieldTerm = rapid.Custom(func(t *rapid.T) string {
		op := rapid.SampledFrom([]string{"=", "==", "!="}).Draw(t, "operator")
		return anyName.Draw(t, "name") + op + anyValue.Draw(t, "value")
	})
)

func anyObject(t *rapid.T) *store.Object {
	return object(anyKey.Draw(t, "key"), anySet.Draw(t, "labels"), anySet.Draw(t, "fields"))
}

// fieldsOf returns an object's fields as selectors of the field's library want
// them.
func fieldsOf(o *store.Object) fields.Set {
	set := fields.Set{}
	for i, name := range storetest.Columns {
		set[name] = o.Field(i)
	}
	return set
}

// The filter takes selectors apart; the originals are the model.
func TestFilter_AgreesWithItsSelectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := anyPrefix.Draw(t, "prefix")
		l, err := labels.Parse(strings.Join(rapid.SliceOfN(anyLabelTerm, 0, 3).Draw(t, "labels"), ","))
		require.NoError(t, err)
		f, err := fields.ParseSelector(strings.Join(rapid.SliceOfN(anyFieldTerm, 0, 3).Draw(t, "fields"), ","))
		require.NoError(t, err)
		filter, err := store.NewFilter(storetest.Columns, store.FilterOptions{Prefix: prefix, LabelSelector: l, FieldSelector: f})
		require.NoError(t, err)
		for range 5 {
			o := anyObject(t)
			want := store.HasPrefix(o.Key, prefix) && l.Matches(o.Labels) && f.Matches(fieldsOf(o))
			require.Equal(t, want, store.Matches(filter, o), "%s on %+v", filter, o)
			for _, r := range filter.Exact() {
				if want {
					requireHas(t, o, r)
				}
			}
		}
	})
}

func requireHas(t *rapid.T, o *store.Object, r store.Requirement) {
	value, there := o.Field(r.Attribute.Column), true
	if r.Attribute.Kind == store.Label {
		value, there = o.Labels.Lookup(r.Attribute.Name)
	}
	require.True(t, there && value == r.Value, "%+v matches without %+v", o, r)
}

func TestFilter_CanonicalFormIgnoresOrderAndRepetition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SliceOfN(anyLabelTerm, 0, 3).Draw(t, "labels")
		f := rapid.SliceOfN(anyFieldTerm, 0, 3).Draw(t, "fields")
		parse := func(l, f []string) *store.Filter {
			filter, err := store.NewFilter(storetest.Columns, store.FilterOptions{Labels: strings.Join(l, ","), Fields: strings.Join(f, ",")})
			require.NoError(t, err)
			return filter
		}
		a := parse(l, f)
		b := parse(append(slices.Clone(l), rapid.Permutation(l).Draw(t, "shuffled labels")...), rapid.Permutation(f).Draw(t, "shuffled fields"))
		require.Equal(t, a.Canonical(), b.Canonical())
	})
}

func TestFilter_EqualCanonicalFormsSelectTheSame(t *testing.T) {
	// Few terms, so that equal forms come up often.
	terms := rapid.SampledFrom([]string{"p=1", "p==1", "p in (1)", "p in (1,1)", "p in (1,2)", "p in (2,1)", "p!=1", "p notin (1)", "p", "!p", "p=", "p=1,p=2"})
	equal := 0
	rapid.Check(t, func(t *rapid.T) {
		prefix := anyPrefix.Draw(t, "prefix")
		parse := func() *store.Filter {
			filter, err := store.NewFilter(storetest.Columns, store.FilterOptions{Labels: terms.Draw(t, "labels"), Prefix: prefix})
			require.NoError(t, err)
			return filter
		}
		a, b := parse(), parse()
		if a.Canonical() != b.Canonical() {
			return
		}
		equal++
		o := anyObject(t)
		require.Equal(t, store.Matches(a, o), store.Matches(b, o), "%s", a)
	})
	require.NotZero(t, equal, "no two equal filters were drawn")
}
