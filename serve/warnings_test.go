package serve_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// A body may have a hundred thousand fields that its kind does not have, each of which is warned of. If each
// was compared with all before it, a million would take most of an hour.
func TestWarnings_MayBeMany(t *testing.T) {
	var texts []string
	for i := range 1_000_000 {
		texts = append(texts, fmt.Sprintf("unknown field %06d", i))
	}
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Strategy.Warn = func(context.Context, *Widget, *Widget) []string { return texts }
	})
	require.Equal(t, 201, s.do("POST", inDefault, `{"metadata":{"name":"a"}}`).code)
}

// A kind may have more to warn of than the headers of an answer can hold. Characters are counted,
// not bytes.
func TestWarnings_AreEachOnceAndBounded(t *testing.T) {
	var texts []string
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Strategy.Warn = func(context.Context, *Widget, *Widget) []string { return texts }
	})
	warned := func(of ...string) []string {
		t.Helper()
		texts = of
		a := s.do("POST", inDefault+"?dryRun=All", `{"metadata":{"name":"a"}}`)
		require.Equal(t, 201, a.code, a.body)
		var all []string
		for _, header := range a.header.Values("Warning") {
			text, err := strconv.Unquote(strings.TrimPrefix(header, "299 - "))
			require.NoError(t, err, header)
			all = append(all, text)
		}
		return all
	}
	require.Equal(t, []string{"one", "two"}, warned("one", "two", "one", "one"))
	long := strings.Repeat("ä", 4096)
	require.Equal(t, []string{long}, warned(long), "alone it is whole")
	cut := long[:2*256]
	require.Equal(t, []string{"short", cut, "short too"}, warned("short", long, "short too"))
	var many, want []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("%02d%s", i, long[:2*298]))
	}
	for i := range 16 {
		want = append(want, fmt.Sprintf("%02d%s", i, long[:2*254]))
	}
	require.Equal(t, want, warned(many...), "the rest is left out")
	require.Equal(t, []string{"of two lines"}, warned("of\x01two\nlines"))
}
