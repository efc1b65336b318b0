package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// definitionOf returns a definition with these versions.
func definitionOf(t *testing.T, versions string) *object {
	t.Helper()
	o := &object{}
	require.NoError(t, json.Unmarshal([]byte(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.com"},
		"spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "gears", "kind": "Gear"},
			"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1/convert"}}},
			"versions": [`+versions+`]}
	}`), &o.Object))
	return o
}

const gearVersions = `
	{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
	{"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}},
		"subresources": {"status": {}}, "additionalPrinterColumns": [{"name": "Teeth", "type": "integer", "jsonPath": ".spec.teeth"}]},
	{"name": "v3", "served": false, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
	{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}`

// The origin converts, so a replica has the version that clients prefer, and not the one that is stored.
func TestOriginKind_IsOfThePreferredVersion(t *testing.T) {
	definition := definitionOf(t, gearVersions)
	before := definition.DeepCopy()
	k, err := originKind(definition)
	require.NoError(t, err)
	require.Len(t, k.versions, 1)
	require.Equal(t, "v2", k.versions[0].Kind.Version)
	require.True(t, k.versions[0].Kind.Status)
	require.Equal(t, "Teeth", k.versions[0].Columns[0].Name)
	require.Nil(t, k.versions[0].Prune, "the origin prunes")
	require.Equal(t, before, definition, "which is shared")
}

func TestOriginKind_NeedsAVersionThatIsServed(t *testing.T) {
	_, err := originKind(definitionOf(t, strings.ReplaceAll(gearVersions, `"served": true`, `"served": false`)))
	require.ErrorContains(t, err, "gears.example.com serves no version")
}
