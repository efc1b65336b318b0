package registry_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// A replica trusts no answer: each becomes an object with key, revision, labels and fields, or an error.
func TestFormat_DecodesWholeObjectsOrFails(t *testing.T) {
	format, err := registry.FormatOf(config())
	require.NoError(t, err)
	o, err := format.Decode([]byte(`{"metadata":{"namespace":"default","name":"a","resourceVersion":"7","labels":{"a":"b"}},"spec":{"size":1,"color":"red"}}`))
	require.NoError(t, err)
	require.Equal(t, "default/a", o.Key)
	require.Equal(t, engine.Revision(7), o.Revision)
	require.Equal(t, "b", o.Labels.Get("a"))
	require.Contains(t, o.Fields, "red")
	require.Empty(t, format.Meta(o).GetResourceVersion())
	for text, wrong := range map[string]string{
		`{"metadata":{"namespace":"default","name":"a"}}`:                                                                                       "there is no resourceVersion",
		`{"metadata":{"namespace":"default","name":"a","resourceVersion":"x"}}`:                                                                 `resourceVersion is "x"`,
		`{"metadata":{"namespace":"default","name":"a\u0000","resourceVersion":"7"}}`:                                                           "invalid key",
		`{"kind":"Gadget","metadata":{"namespace":"default","name":"a","resourceVersion":"7"}}`:                                                 "the body is of Gadget",
		`{"metadata":{"namespace":"default","name":"a","resourceVersion":"7"},"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: "nested more than 100 deep",
	} {
		_, err := format.Decode([]byte(text))
		require.ErrorContains(t, err, wrong)
	}
}
