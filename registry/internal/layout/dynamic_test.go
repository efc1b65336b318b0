package layout_test

import (
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/watchmill/watchmill/registry/internal/layout"
)

// open has fields of interface types, whose values may be of any type.
type open struct {
	Any    any
	By     map[string]any
	Shaped interface{ String() string }
}

func TestEquality_ComparesWhatInterfacesHold(t *testing.T) {
	same := layout.Equality(reflect.TypeFor[open]())
	at := time.Unix(1_000_000_000, 0)
	for name, tc := range map[string]struct {
		a, b  any
		equal bool
	}{
		"nothing":                        {nil, nil, true},
		"nothing and a text":             {nil, "a", false},
		"a text":                         {"a", "a", true},
		"another text":                   {"a", "b", false},
		"a number of another type":       {int64(1), 1.0, false},
		"a time in another zone":         {at, at.UTC(), true},
		"another time":                   {at, at.Add(1), false},
		"a pointer to the same time":     {&at, new(at.UTC()), true},
		"a pointer to another time":      {&at, new(at.Add(1)), false},
		"a list with the same time":      {[]any{1, at}, []any{1, at.UTC()}, true},
		"a list with another time":       {[]any{1, at}, []any{1, at.Add(1)}, false},
		"a longer list":                  {[]any{at}, []any{at, at}, false},
		"no list and an empty one":       {[]any(nil), []any{}, true},
		"a map with the same time":       {map[string]any{"at": at}, map[string]any{"at": at.UTC()}, true},
		"a map with another time":        {map[string]any{"at": at}, map[string]any{"at": at.Add(1)}, false},
		"a map with another key":         {map[string]any{"a": nil}, map[string]any{"b": nil}, false},
		"no map and an empty one":        {map[string]any(nil), map[string]any{}, true},
		"a struct with the same time":    {open{Any: at}, open{Any: at.UTC()}, true},
		"a struct with another time":     {open{Any: at}, open{Any: at.Add(1)}, false},
		"a struct with a hidden field":   {opaque{"a", []int{1}}, opaque{"a", []int{1}}, true},
		"a struct with another such":     {opaque{"a", []int{1}}, opaque{"a", []int{2}}, false},
		"an amount in another unit":      {resource.MustParse("1"), resource.MustParse("1000m"), true},
		"types that cannot be compared":  {[]string{"a"}, map[string]string{}, false},
		"another amount of another unit": {resource.MustParse("1"), resource.MustParse("2000m"), false},
	} {
		require.Equal(t, tc.equal, same.DeepEqual(open{Any: tc.a}, open{Any: tc.b}), name)
		require.Equal(t, tc.equal, same.DeepEqual(open{Any: tc.b}, open{Any: tc.a}), name)
		require.Equal(t, tc.equal, same.DeepEqual(open{By: map[string]any{"k": tc.a}}, open{By: map[string]any{"k": tc.b}}), name)
	}
	link := func(path string) open { return open{Shaped: &url.URL{Path: path, User: url.User("u")}} }
	require.True(t, same.DeepEqual(link("/a"), link("/a")))
	require.False(t, same.DeepEqual(link("/a"), link("/b")))
	require.False(t, same.DeepEqual(link("/a"), open{}))
}
