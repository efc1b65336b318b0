package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
)

func ExampleNewFilter() {
	declared := store.NewColumns("spec.nodeName", "status.phase")
	f, err := store.NewFilter(declared, store.FilterOptions{
		Prefix: "default/",
		Labels: "app=web,tier in (front)",
		Fields: "spec.nodeName=n7,status.phase!=Failed",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range f.Exact() {
		fmt.Println(r.Attribute, "is", r.Value)
	}

	_, err = store.NewFilter(declared, store.FilterOptions{Labels: "app in web"})
	var invalid *store.SelectorError
	fmt.Println(errors.Is(err, store.ErrInvalidSelector), errors.As(err, &invalid) && invalid.Field == "Labels")
	_, err = store.NewFilter(declared, store.FilterOptions{Fields: "spec.nodename=n7"})
	fmt.Println(errors.Is(err, store.ErrUnknownField))
	// Output:
	// field:spec.nodeName is n7
	// label:app is web
	// label:tier is front
	// true true
	// true
}

func ExampleMatches() {
	f, err := store.NewFilter(nil, store.FilterOptions{
		Prefix: "default", LabelSelector: labels.SelectorFromSet(labels.Set{"app": "web"}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	web := &store.Object{Key: "default/web-1", Labels: store.LabelsOf(labels.Set{"app": "web"})}
	other := &store.Object{Key: "default-2/web-1", Labels: store.LabelsOf(labels.Set{"app": "web"})}
	fmt.Println(store.Matches(f, web), store.Matches(f, other))
	// Output: true false
}

// object is what most tests match on.
func object(key string, l labels.Set, f fields.Set) *store.Object {
	return storetest.NewThing(store.Object{Key: key, Labels: store.LabelsOf(l), Fields: storetest.Row(f)})
}

// selecting returns the filter of selectors that were parsed.
func selecting(t *testing.T, l labels.Selector, f fields.Selector) *store.Filter {
	t.Helper()
	filter, err := store.NewFilter(storetest.Columns, store.FilterOptions{LabelSelector: l, FieldSelector: f})
	require.NoError(t, err)
	return filter
}

func TestFilter_NilAndEmptyWantEverything(t *testing.T) {
	empty, err := store.NewFilter(storetest.Columns, store.FilterOptions{})
	require.NoError(t, err)
	for name, f := range map[string]*store.Filter{
		"nil":               nil,
		"no options":        empty,
		"nil selectors":     selecting(t, nil, nil),
		"empty selectors":   selecting(t, labels.Everything(), fields.Everything()),
		"nested everything": selecting(t, nil, fields.AndSelectors(fields.Everything(), fields.Everything())),
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, f.Everything())
			require.False(t, f.Nothing())
			require.False(t, f.HasSelector())
			require.Empty(t, f.Canonical())
			require.Equal(t, "everything", f.String())
			require.Empty(t, f.Key()+f.Prefix())
			require.Empty(t, f.Exact())
			require.True(t, store.Matches(f, object("a", nil, nil)))
			require.False(t, store.Matches(f, nil), "there is no object to want")
		})
	}
}

func TestFilter_ErrorsNameTheOptionAndShowHowToWriteIt(t *testing.T) {
	for name, c := range map[string]struct {
		opts    store.FilterOptions
		field   string
		mention string
	}{
		"key and prefix":     {store.FilterOptions{Key: "a/b", Prefix: "a"}, "Prefix", "leave one of them empty"},
		"bad key":            {store.FilterOptions{Key: "a//b"}, "Key", "default/web-1"},
		"bad prefix":         {store.FilterOptions{Prefix: "/a"}, "Prefix", "default/"},
		"bad labels":         {store.FilterOptions{Labels: "app in web"}, "Labels", "tier in (a,b)"},
		"label value":        {store.FilterOptions{Labels: "app=a:b"}, "Labels", `"app=a:b"`},
		"no field operator":  {store.FilterOptions{Fields: "spec.nodeName"}, "Fields", "spec.nodeName=n7"},
		"no field name":      {store.FilterOptions{Fields: "=n7"}, "Fields", "no field name"},
		"space before field": {store.FilterOptions{Fields: "a=1, b=2"}, "Fields", `" b"`},
		"space after field":  {store.FilterOptions{Fields: "a = 1"}, "Fields", `"a "`},
		"bad field escape":   {store.FilterOptions{Fields: `a=\x`}, "Fields", "escape"},
		"unknown field":      {store.FilterOptions{Fields: "spec.nodename!=n7"}, "Fields", `did you mean "spec.nodeName"?`},
		"unknown parsed":     {store.FilterOptions{FieldSelector: fields.OneTermEqualSelector("z", "1")}, "FieldSelector", `unknown field "z"`},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := store.NewFilter(storetest.Columns, c.opts)
			require.Nil(t, f)
			require.ErrorIs(t, err, store.ErrInvalidSelector)
			var invalid *store.SelectorError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, c.field, invalid.Field)
			require.ErrorContains(t, err, c.mention)
			require.Error(t, errors.Unwrap(err))
		})
	}
}

func TestFilter_ErrorOfAKeyIsAKeyErrorToo(t *testing.T) {
	_, err := store.NewFilter(storetest.Columns, store.FilterOptions{Key: "a/../b"})
	require.ErrorIs(t, err, store.ErrInvalidKey)
	var invalid *store.KeyError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "a/../b", invalid.Key)
}

// A selector in text form and a parsed one hold both.
func TestFilter_TextAndParsedSelectorsHoldTogether(t *testing.T) {
	both, err := store.NewFilter(storetest.Columns, store.FilterOptions{
		Labels: "app=web", LabelSelector: labels.SelectorFromSet(labels.Set{"tier": "front"}),
		Fields: "x=1", FieldSelector: fields.OneTermEqualSelector("y", "2"),
	})
	require.NoError(t, err)
	text, err := store.NewFilter(storetest.Columns, store.FilterOptions{Labels: "tier=front,app=web", Fields: "y=2,x=1"})
	require.NoError(t, err)
	require.Equal(t, text.Canonical(), both.Canonical())

	contradiction, err := store.NewFilter(storetest.Columns, store.FilterOptions{
		Labels: "app=web", LabelSelector: labels.SelectorFromSet(labels.Set{"app": "db"}),
	})
	require.NoError(t, err)
	require.True(t, contradiction.Nothing())
}

func TestFilter_ErrorOfAnUnknownFieldIsOneToo(t *testing.T) {
	_, err := store.NewFilter(storetest.Columns, store.FilterOptions{Fields: "spec.nodename=n7"})
	require.ErrorIs(t, err, store.ErrInvalidSelector)
	require.ErrorIs(t, err, store.ErrUnknownField)
	require.EqualError(t, err, `invalid Fields "spec.nodename=n7": unknown field "spec.nodename": did you mean "spec.nodeName"? declared are `+
		`a, app, b, p, q, r, spec.nodeName, status.phase, x, y`)
	_, err = store.NewFilter(nil, store.FilterOptions{FieldSelector: fields.OneTermEqualSelector("a", "1")})
	require.EqualError(t, err, `invalid FieldSelector "a=1": unknown field "a": no fields are declared`)
}

// A conjunction with fields.Nothing lists its other terms as if they could be
// met; sharing by them would show a reader what it did not select.
func TestFilter_RecognisesSelectorsThatSelectNothing(t *testing.T) {
	both := func(v ...string) labels.Selector {
		s := labels.Everything()
		for _, value := range v {
			r, err := labels.NewRequirement("app", selection.Equals, []string{value})
			require.NoError(t, err)
			s = s.Add(*r)
		}
		return s
	}
	a := fields.OneTermEqualSelector("a", "1")
	notA := fields.OneTermNotEqualSelector("a", "1")
	for name, f := range map[string]*store.Filter{
		"labels.Nothing":            selecting(t, labels.Nothing(), nil),
		"fields.Nothing":            selecting(t, nil, fields.Nothing()),
		"labels.Nothing and terms":  selecting(t, labels.Nothing(), fields.AndSelectors(a, fields.OneTermEqualSelector("b", "1"))),
		"nothing and a term":        selecting(t, nil, fields.AndSelectors(fields.Nothing(), a)),
		"nothing and a not-term":    selecting(t, nil, fields.AndSelectors(notA, fields.Nothing())),
		"two values of a label":     selecting(t, both("web", "db"), nil),
		"two values of a field":     selecting(t, nil, fields.AndSelectors(a, fields.OneTermEqualSelector("a", "2"))),
		"a value and not the value": selecting(t, nil, fields.AndSelectors(a, notA)),
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, f.Nothing())
			require.True(t, f.HasSelector())
			require.False(t, f.Everything())
			require.Equal(t, "nothing", f.Canonical())
			require.Empty(t, f.Exact())
			require.False(t, store.Matches(f, object("a", labels.Set{"app": "web"}, fields.Set{"a": "1"})))
		})
	}
	require.False(t, selecting(t, both("web", "web"), notA).Nothing(), "a repetition is not a contradiction")
}

func TestFilter_MatchingDoesNotAllocate(t *testing.T) {
	f, err := store.NewFilter(storetest.Columns, store.FilterOptions{
		Prefix: "default", Labels: "app=web,tier in (a,b),!legacy", Fields: "spec.nodeName=n7,status.phase!=Failed",
	})
	require.NoError(t, err)
	o := object("default/web-1", labels.Set{"app": "web", "tier": "b"}, fields.Set{"spec.nodeName": "n7"})
	require.True(t, store.Matches(f, o))
	require.Zero(t, testing.AllocsPerRun(100, func() { store.Matches(f, o) }))
}

func BenchmarkMatches(b *testing.B) {
	o := object("default/web-1", labels.Set{"app": "web", "tier": "b"}, fields.Set{"spec.nodeName": "n7", "status.phase": "Running"})
	for name, opts := range map[string]store.FilterOptions{
		"everything": {},
		"prefix":     {Prefix: "default"},
		"label":      {Labels: "app=web"},
		"four terms": {Labels: "app=web,tier in (a,b)", Fields: "spec.nodeName=n7,status.phase!=Failed"},
	} {
		f, err := store.NewFilter(storetest.Columns, opts)
		require.NoError(b, err)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				store.Matches(f, o)
			}
		})
	}
}
