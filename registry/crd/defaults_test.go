package crd_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
)

// A body has room for many items that lack fields, whose defaults are larger than they are. What fits is set.
func TestDefaults_OfManyItemsAreBounded(t *testing.T) {
	text := strings.Repeat("x", 1000)
	s, err := registry.New(cogs(t, versioned{"v1", `"list":{"type":"array","items":{"type":"object","default":{"b":"` + text + `"},"properties":{"a":{"type":"string","default":"` + text + `"},"b":{"type":"string"}}}},
		"map":{"type":"object","additionalProperties":{"type":"object","default":{},"properties":{"a":{"type":"string","default":"` + text + `"}}}}`, true, true})["v1"].Config())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	object := s.Resources()[0]
	items := func(one string, n int) string {
		return `{"list":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`
	}
	fields := func(n int) string {
		return `{"map":{` + strings.TrimSuffix(manyNulls(n), ",") + `}}`
	}
	for name, spec := range map[string]string{"objects": items("{}", 500_000), "nulls": items("null", 400_000), "fields": fields(200_000), "a few too many": items("{}", 4000)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":`+spec+`}`), registry.WriteOptions{})
		runtime.ReadMemStats(&after)
		require.ErrorAs(t, err, new(*registry.InvalidError), name)
		require.ErrorContains(t, err, "defaults", name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30), name)
	}
	it, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":`+items("{}", 2000)+`}`), registry.WriteOptions{})
	require.NoError(t, err)
	stored, err := it.JSON()
	require.NoError(t, err)
	require.Equal(t, 2000, strings.Count(string(stored), `"a":"`+text))
	large := items(`{"a":"`+text+`"}`, 4000)
	_, err = object.Create(t.Context(), "default", []byte(`{"metadata":{"name":"large"},"spec":`+large+`}`), registry.WriteOptions{})
	require.NoError(t, err, "what is given counts for nothing")
}

// An object may be small though defaults are missing, if those are large.
func TestDefaults_ThatAreMissingAreNoticedInASmallObject(t *testing.T) {
	large := `{type: string, default: "` + strings.Repeat("x", 2<<20) + `"}`
	s := storeOf(t, `{type: object, properties: {list: {type: array, items: {type: object, properties: {a: `+large+`}}}}}`)
	create := func(items string) (registry.Item, error) {
		return s.Resources()[0].Create(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"list":[`+items+`]}}`), registry.WriteOptions{DryRun: true})
	}
	it, err := create("{},{}")
	require.NoError(t, err)
	stored, err := it.JSON()
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(stored), `"a":"x`))
	_, err = create("{},{},{}")
	require.ErrorContains(t, err, "defaults")
}

// manyNulls returns that many fields, each with a comma behind it.
func manyNulls(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(`"f` + strconv.Itoa(i) + `":null,`)
	}
	return all.String()
}
