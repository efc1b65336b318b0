package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry/internal/patch"
)

// applyRepeated applies a JSON patch to a document that has its operations several times.
func applyRepeated(t *testing.T, document []byte, operations string, times int) error {
	t.Helper()
	p, err := patch.Operations([]byte("[" + strings.TrimSuffix(strings.Repeat(operations+",", times), ",") + "]"))
	require.NoError(t, err)
	_, err = p.Apply(document)
	return err
}

// An operation that inserts an item moves those after it: ten thousand of them in a list of a million took
// minutes.
func TestOperations_OfManyItemsOfALongListIsRefused(t *testing.T) {
	document := func(items int) []byte {
		return []byte(`{"a":"[,],","l":[` + strings.TrimSuffix(strings.Repeat(`[],`, items), ",") + `],"m":[{"n":1},{}],"100":{}}`)
	}
	long := document(150_000)
	for _, operation := range []string{`{"op":"add","path":"/l/0","value":1}`, `{"op":"add","path":"/l/+7","value":1}`, `{"op":"remove","path":"/l/7"}`, `{"op":"move","from":"/l/3","path":"/b"}`, `{"op":"copy","from":"/m","path":"/l/10"}`} {
		err := applyRepeated(t, long, operation, 1500)
		require.ErrorContains(t, err, "it would take too long", operation)
		require.NoError(t, applyRepeated(t, long, operation, 20), operation)
	}
	require.NoError(t, applyRepeated(t, long, `{"op":"replace","path":"/l/0","value":1}`, 1500), "it moves no items")
	require.NoError(t, applyRepeated(t, long, `{"op":"add","path":"/l/-","value":1}`, 1500), "nor does this")
	require.NoError(t, applyRepeated(t, document(10_000), `{"op":"add","path":"/l/0","value":1}`, 3000))
}

// The library looks the name of a field up by going through the fields.
func TestOperations_OfManyFieldsOfALargeObjectIsRefused(t *testing.T) {
	document := func(fields int) []byte {
		text := []byte(`{"l":[1,2,{"a":"{,}"}],"m":{`)
		for i := range fields - 1 {
			text = fmt.Appendf(text, `"%d":0,`, i)
		}
		return append(text, `"last":0}}`...)
	}
	large := document(150_000)
	for _, operation := range []string{
		`{"op":"replace","path":"/m/last","value":1}`,
		`{"op":"replace","path":"/m/99","value":1}`,
		`{"op":"add","path":"/m/a","value":1}`,
		`{"op":"copy","from":"/l","path":"/m/a"}`,
		`{"op":"remove","path":"/m/last"},{"op":"add","path":"/m/last","value":0}`,
		`{"op":"move","from":"/m/last","path":"/m/a"},{"op":"move","from":"/m/a","path":"/m/last"}`,
	} {
		err := applyRepeated(t, large, operation, 5000)
		require.ErrorContains(t, err, "it would take too long", operation)
		require.NoError(t, applyRepeated(t, large, operation, 20), operation)
	}
	brought := `{"op":"add","path":"/a","value":` + string(large) + `},` + strings.TrimSuffix(strings.Repeat(`{"op":"replace","path":"/a/m/last","value":1},`, 5000), ",")
	require.ErrorContains(t, applyRepeated(t, []byte(`{}`), brought, 1), "it would take too long", "the object may be in the patch")
	require.NoError(t, applyRepeated(t, large, `{"op":"test","path":"/m/last","value":0}`, 5000), "it compares no names")
	require.NoError(t, applyRepeated(t, document(1000), `{"op":"replace","path":"/m/last","value":1}`, 10_000))
}
