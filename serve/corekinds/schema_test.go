package corekinds_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"

	"github.com/watchmill/watchmill/serve/corekinds"
)

// kubectl explain shows the texts of Kubernetes.
func TestKinds_AreDescribedAsInKubernetes(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	described := map[string]interface{ SwaggerDoc() map[string]string }{
		"v1/ConfigMap": core.ConfigMap{}, "v1/Secret": core.Secret{}, "v1/Namespace": core.Namespace{}, "v1/Event": core.Event{},
		"events.k8s.io/v1/Event": events.Event{}, "coordination.k8s.io/v1/Lease": coordination.Lease{},
	}
	seen := 0
	for _, r := range c.server.Resources() {
		kind := r.Info().Kind
		of := described[strings.TrimPrefix(kind.Group+"/", "/")+kind.Version+"/"+kind.Kind]
		if of == nil {
			require.Equal(t, "Widget", kind.Kind)
			continue
		}
		seen++
		var schema struct {
			Description string
			Properties  map[string]struct{ Description string }
		}
		require.NoError(t, json.Unmarshal(r.Info().Schema, &schema))
		for name, text := range of.SwaggerDoc() {
			told := schema.Description
			if name != "" {
				told = schema.Properties[name].Description
			}
			require.Equal(t, text, told, "%s %s", kind.Kind, name)
		}
	}
	require.Len(t, described, seen)
	document := c.do("GET", "/openapi/v3/api/v1", "").Body.String()
	require.Contains(t, document, "The stringData field is never output when reading from the API.")
	require.Contains(t, document, "Phase is the current lifecycle phase of the namespace", "of a field within others")
}
