package patch_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry/internal/patch"
)

// randomValue returns JSON of few names, so that a patch meets the fields of a document.
func randomValue(r *rand.Rand, depth int) any {
	switch kind := r.IntN(8); {
	case depth == 0 || kind < 2:
		return []any{nil, true, "text", 7}[r.IntN(4)]
	case kind < 4:
		list := make([]any, r.IntN(3))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	return randomObject(r, depth)
}

func randomObject(r *rand.Rand, depth int) map[string]any {
	fields := map[string]any{}
	for range r.IntN(4) {
		fields[string(rune('a'+r.IntN(3)))] = randomValue(r, depth-1)
	}
	return fields
}

func mergePatch(t *testing.T, text string) *patch.Patch {
	t.Helper()
	p, err := patch.Merge([]byte(text))
	require.NoError(t, err)
	return &p
}

// A merge patch changes a document as it does by another implementation.
func TestMerge_PropertyAgreesWithAnother(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		document, err := json.Marshal(randomObject(r, 4))
		require.NoError(t, err)
		changes, err := json.Marshal(randomObject(r, 4))
		require.NoError(t, err)
		got, err := mergePatch(t, string(changes)).Apply(document)
		require.NoError(t, err)
		want, err := jsonpatch.MergePatch(document, changes)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got), "%s changed by %s", document, changes)
	}
}

func TestMerge_KeepsAllDigits(t *testing.T) {
	got, err := mergePatch(t, `{"b":0.10000000000000000001,"c":{"d":null}}`).Apply([]byte(`{"a":12345678901234567890}`))
	require.NoError(t, err)
	require.Equal(t, `{"a":12345678901234567890,"b":0.10000000000000000001,"c":{}}`, string(got))
	_, err = mergePatch(t, `{}`).Apply([]byte(`{`))
	require.Error(t, err)
}

// If each field were looked for among all others, a merge patch of that many would take most of an hour.
func TestMerge_MayHaveManyFields(t *testing.T) {
	object := func(value string) string {
		all := make([]string, 600_000)
		for i := range all {
			all[i] = fmt.Sprintf(`"k%06d":%s`, i, value)
		}
		return `{"labels":{` + strings.Join(all, ",") + `}}`
	}
	got, err := mergePatch(t, object("null")).Apply([]byte(object(`""`)))
	require.NoError(t, err)
	require.JSONEq(t, `{"labels":{}}`, string(got))
}
