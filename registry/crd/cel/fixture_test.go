package cel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/registry/crd/cel"
)

// manifest returns a definition of gears, in one version for each schema: its fields beside the
// type, in YAML's flow style.
func manifest(schemas ...string) string {
	var text strings.Builder
	text.WriteString(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gears, kind: Gear}
  versions:
`)
	for i, schema := range schemas {
		fmt.Fprintf(&text, `  - name: v%d
    served: true
    storage: %t
    subresources: {status: {}, scale: {specReplicasPath: .spec.teeth, statusReplicasPath: .status.teeth}}
    schema: {openAPIV3Schema: {type: object, %s}}
`, i+1, i == 0, schema)
	}
	return text.String()
}

// inJSON returns YAML as JSON.
func inJSON(t *testing.T, text string) json.RawMessage {
	t.Helper()
	out, err := yaml.YAMLToJSONStrict([]byte(text))
	require.NoError(t, err, text)
	return out
}

// object returns a gear of those fields, in YAML's flow style.
func object(t *testing.T, fields string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(inJSON(t, "{apiVersion: example.com/v1, kind: Gear, metadata: {name: a}, "+fields+"}")))
	return o
}

// gears opens a store of gears with that schema, and returns its resources: of the object, the
// status and the scale.
func gears(t *testing.T, schema string) []registry.Resource {
	t.Helper()
	all, err := crd.Options{Rules: cel.Rules{}}.Parse(strings.NewReader(manifest(schema)))
	require.NoError(t, err)
	require.Empty(t, all[0].Notes)
	cfg := all[0].Config()
	cfg.Apply = apply.New
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.Resources()
}
