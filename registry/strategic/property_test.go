package strategic_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/usercode"
)

// patchNames are the names of fields, and of the directives that patches have.
var patchNames = []string{
	"teeth", "tags", "order", "box", "serial", "mass", "metadata", "name", "length", "metal", "labels", "finalizers", "ownerReferences", "uid", "h", "w", "unknown",
	"$patch", "$retainKeys", "$setElementOrder/teeth", "$setElementOrder/tags", "$setElementOrder/order", "$deleteFromPrimitiveList/tags", "$deleteFromPrimitiveList/teeth",
}

// randomValue returns any JSON, with the names that mean something.
func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(9); {
	case n < 3 && depth > 0:
		fields := map[string]any{}
		for range r.IntN(4) {
			fields[patchNames[r.IntN(len(patchNames))]] = randomValue(r, depth-1)
		}
		return fields
	case n < 5 && depth > 0:
		items := []any{}
		for range r.IntN(4) {
			items = append(items, randomValue(r, depth-1))
		}
		return items
	default:
		return []any{nil, true, 1, -2.5, "a", "x", "delete", "replace", "merge", ""}[r.IntN(10)]
	}
}

// Whatever a patch and an object are, the result is an object, or an error of the client's.
func TestProperty_AnyPatchMakesAnObjectOrAnError(t *testing.T) {
	merge, err := strategic.New(new(Gear))
	require.NoError(t, err)
	of := &registry.Info{StrategicMerge: merge}
	r := rand.New(rand.NewPCG(1, 2))
	document, merged := []byte(gear), 0
	for range 20_000 {
		fields := map[string]any{}
		for range 1 + r.IntN(3) {
			fields[patchNames[r.IntN(len(patchNames))]] = randomValue(r, 3)
		}
		patch, err := json.Marshal(fields)
		require.NoError(t, err)
		p, err := of.ParsePatch(registry.StrategicPatch, patch)
		require.NoError(t, err)
		patched, err := p.Apply(document)
		require.NotErrorIs(t, err, usercode.ErrPanic, "%s\non %s", patch, document)
		require.Equal(t, err == nil, json.Valid(patched), "%s", patch)
		if err == nil {
			document, merged = patched, merged+1
		}
		if err == nil && r.IntN(5) == 0 {
			document = []byte(gear)
		}
	}
	require.Greater(t, merged, 5_000, "hardly any patch is good")
}
