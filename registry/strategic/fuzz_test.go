package strategic_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/usercode"
)

// A patch from anywhere makes an object, or an error that is the client's.
func FuzzMerge(f *testing.F) {
	for _, patch := range []string{
		`{"teeth":[{"name":"a","$patch":"delete"},{"$patch":"replace"}]}`, `{"$setElementOrder/teeth":[{"name":"b"},{"name":"a"}],"teeth":[{"name":"b"}]}`,
		`{"$deleteFromPrimitiveList/tags":["x"],"$setElementOrder/tags":["y"]}`, `{"box":{"$retainKeys":["h"],"h":null}}`, `{"$patch":"merge","order":null}`,
		`{"metadata":{"labels":{"$patch":"replace"},"finalizers":["a"],"ownerReferences":[{"uid":"u"}]}}`,
	} {
		f.Add(patch)
	}
	merge, err := strategic.New(new(Gear))
	require.NoError(f, err)
	of := &registry.Info{StrategicMerge: merge}
	f.Fuzz(func(t *testing.T, patch string) {
		p, err := of.ParsePatch(registry.StrategicPatch, []byte(patch))
		if err != nil {
			return
		}
		patched, err := p.Apply([]byte(gear))
		require.NotErrorIs(t, err, usercode.ErrPanic)
		require.Equal(t, err == nil, json.Valid(patched))
	})
}
