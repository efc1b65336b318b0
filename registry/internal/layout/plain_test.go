package layout

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	kjson "sigs.k8s.io/json"
)

// fullMetadata has every field of metadata.
const fullMetadata = `{
	"name": "a", "generateName": "a-", "namespace": "default", "selfLink": "/a", "uid": "1", "resourceVersion": "7",
	"generation": 3, "deletionGracePeriodSeconds": 30,
	"creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:04:05.6+01:00",
	"labels": {"app": "web"}, "annotations": {"note": ""}, "finalizers": ["example.com/a", "b"],
	"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "2", "controller": true, "blockOwnerDeletion": false}],
	"managedFields": [{
		"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "subresource": "status",
		"time": "2026-01-02T03:04:05Z", "fieldsV1": {"f:spec": {"f:size": {}, "v:7": {}}}
	}]
}`

func metadataOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &fields))
	return fields
}

// Whatever metadata is, decoding it to a struct changes nothing of what is plain.
func TestMetadata_ThatIsPlainIsWhatDecodingLeaves(t *testing.T) {
	require.True(t, isPlain(metadataOf(t, fullMetadata)))
	require.False(t, isPlain(metadataOf(t, `{"managedFields": [{"fieldsV1": {"f:spec": {"f:size": null}}}]}`)))
	draw := rand.New(rand.NewPCG(1, 2))
	plain := 0
	for range 3_000 {
		fields := metadataOf(t, fullMetadata)
		for range draw.IntN(3) {
			change(draw, fields)
		}
		clean, unknown, err := Metadata(fields)
		wantClean, wantUnknown, wantErr := decodedMetadata(fields)
		text, marshalErr := json.Marshal(fields)
		require.NoError(t, marshalErr)
		require.Equal(t, wantErr, err, string(text))
		require.Equal(t, wantUnknown, unknown, string(text))
		require.Equal(t, wantClean, clean, string(text))
		if isPlain(fields) {
			plain++
		}
	}
	require.Greater(t, plain, 1_000)
	require.Less(t, plain, 2_800)
}

// change replaces, adds or removes a value somewhere in fields.
func change(draw *rand.Rand, fields map[string]any) {
	names := slices.Sorted(maps.Keys(fields))
	if len(names) == 0 {
		return
	}
	name := names[draw.IntN(len(names))]
	switch inner := fields[name].(type) {
	case map[string]any:
		if draw.IntN(3) > 0 {
			change(draw, inner)
			return
		}
	case []any:
		if draw.IntN(3) > 0 {
			i := draw.IntN(len(inner) + 1)
			if i == len(inner) {
				fields[name] = append(inner, anyValue(draw))
			} else if item, isObject := inner[i].(map[string]any); isObject {
				change(draw, item)
			} else {
				inner[i] = anyValue(draw)
			}
			return
		}
	}
	switch draw.IntN(4) {
	case 0:
		delete(fields, name)
	case 1:
		fields["more"] = anyValue(draw)
	default:
		fields[name] = anyValue(draw)
	}
}

func anyValue(draw *rand.Rand) any {
	values := []any{
		nil, "", "text", "2026-01-02T03:04:05Z", "2026-13-02T03:04:05Z", int64(7), 7.5, true,
		map[string]any{}, map[string]any{"a": "b"}, map[string]any{"a": nil}, map[string]any{"a": int64(1)},
		[]any{}, []any{"a"}, []any{nil}, []any{int64(1)}, []any{map[string]any{"name": "a"}}, []any{map[string]any{}},
	}
	return values[draw.IntN(len(values))]
}
