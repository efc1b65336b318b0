package keywords_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/internal/keywords"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUnknown_FindsEachThatSchemasDoNotHave(t *testing.T) {
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"type":"object","x-mine":1,"properties":{"maxLenght":{"type":"string","maxLenght":5},
		"b":{"type":"array","items":{"minimun":1},"anyOf":[{},{"requierd":[]}]},"c":{"additionalProperties":true,"not":{"enumm":[]}}}}`), &schema))
	var found []string
	keywords.Unknown(schema, nil, func(in map[string]any, keyword string, at *field.Path) {
		require.Contains(t, in, keyword)
		delete(in, keyword)
		found = append(found, at.String())
	})
	require.Equal(t, []string{
		"properties.b.anyOf[1].requierd", "properties.b.items.minimun", "properties.c.not.enumm", "properties.maxLenght.maxLenght", "x-mine",
	}, found)
	keywords.Unknown(schema, nil, func(_ map[string]any, keyword string, _ *field.Path) { require.Fail(t, "it is gone", keyword) })
}

func TestUnknown_ShortensNames(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	keywords.Unknown(map[string]any{"properties": map[string]any{long: map[string]any{long: 1}}}, field.NewPath("schema"),
		func(_ map[string]any, keyword string, at *field.Path) {
			require.Equal(t, long, keyword)
			require.Less(t, len(at.String()), 500)
		})
}
