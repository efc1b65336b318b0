package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// A list starts at a key, itself included, wherever it is read from.
func TestList_StartsAtAKey(t *testing.T) {
	for name, noCache := range map[string]bool{"cache": false, "no cache": true} {
		t.Run(name, func(t *testing.T) {
			e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache = noCache })
			var at engine.Revision
			for _, p := range []pod{{"a/1", "web", 0}, {"a/2", "db", 0}, {"b/1", "web", 0}, {"b/2", "web", 0}, {"c/1", "db", 0}} {
				o, err := e.Create(ctx, p)
				require.NoError(t, err)
				at = o.Revision
			}
			_, err := e.Delete(ctx, "b/2", engine.DeleteOptions{})
			require.NoError(t, err)
			for _, test := range []struct {
				opts engine.ListOptions
				want []string
			}{
				{engine.ListOptions{Start: "a/2"}, []string{"a/2", "b/1", "c/1"}},
				{engine.ListOptions{Start: "a/3"}, []string{"b/1", "c/1"}},
				{engine.ListOptions{Start: "b/"}, []string{"b/1", "c/1"}},
				{engine.ListOptions{Start: "a/2", Limit: 1}, []string{"a/2", "b/1", "c/1"}},
				{engine.ListOptions{Start: "a/2", Limit: 2, Read: engine.Exactly(at)}, []string{"a/2", "b/1", "b/2", "c/1"}},
				{engine.ListOptions{Start: "a/2", Labels: "app=web", Limit: 1, Read: engine.Exactly(at)}, []string{"b/1", "b/2"}},
				{engine.ListOptions{Start: "a/2", Prefix: "a"}, []string{"a/2"}},
				{engine.ListOptions{Start: "c/2"}, nil},
			} {
				require.Equal(t, test.want, pagesOf(t, e, test.opts), "%+v", test.opts)
			}
		})
	}
}

// pagesOf returns the keys of all pages.
func pagesOf(t *testing.T, e *engine.Engine[pod], opts engine.ListOptions) (keys []string) {
	t.Helper()
	for {
		page, err := e.List(t.Context(), opts)
		require.NoError(t, err)
		for _, o := range page.Items {
			keys = append(keys, o.Key)
		}
		if page.Continue == "" {
			return keys
		}
		opts.Continue, opts.Read = page.Continue, engine.Latest()
	}
}

func TestList_RefusesWrongStarts(t *testing.T) {
	e, ctx := newEngine(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		_, err := e.Create(ctx, pod{Name: name})
		require.NoError(t, err)
	}
	_, err := e.List(ctx, engine.ListOptions{Start: "a//"})
	require.ErrorIs(t, err, engine.ErrInvalidKey)
	_, err = e.List(ctx, engine.ListOptions{Start: "a", Key: "a"})
	wanted{engine.ErrInvalidList, []string{"Start", "Key"}}.require(t, err)
	page, err := e.List(ctx, engine.ListOptions{Limit: 1})
	require.NoError(t, err)
	_, err = e.List(ctx, engine.ListOptions{Start: "b", Continue: page.Continue})
	require.ErrorIs(t, err, engine.ErrInvalidContinue)
}
