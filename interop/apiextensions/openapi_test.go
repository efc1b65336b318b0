package apiextensions

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	definition "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// oddities is a kind whose schema has what OpenAPI v2 cannot say, where the kinds of the script
// have not.
const oddities = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oddities.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: oddities, singular: oddity, kind: Oddity, listKind: Oddments}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: Odd.
        properties:
          spec:
            type: object
            required: [must, may]
            properties:
              must: {type: string}
              may: {type: string, nullable: true}
              items: {type: array, nullable: true, items: {type: string}}
              fields: {type: object, nullable: true, properties: {a: {type: string}}}
              map: {type: object, required: [a], additionalProperties: {type: string, nullable: true}}
              open: {type: object, x-kubernetes-preserve-unknown-fields: true, additionalProperties: {type: string}}
              list: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}
              port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], maximum: 9}
              embedded: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}
              some: {type: string, allOf: [{minLength: 1}], not: {enum: [a]}, title: Some, example: b}
`

// openAPIV2 is the part of the document that is compared.
type openAPIV2 struct {
	Paths       map[string]map[string]any
	Definitions map[string]any
}

// What clients that read OpenAPI v2 see of the kinds is what they see of them in Kubernetes, but
// for texts, and paths that it has and does not describe.
func TestOpenAPIV2_IsThatOfKubernetes(t *testing.T) {
	t.Parallel()
	manifests, err := os.ReadFile(kindsFile)
	require.NoError(t, err)
	manifests = append(manifests, oddities...)
	var ours openAPIV2
	server := serveKinds(t, manifests)
	response, err := server.client.Get(server.url + "/openapi/v2")
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&ours))

	compared := 0
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), len(manifests)); ; {
		of := &definition.CustomResourceDefinition{}
		err := documents.Decode(of)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		built, err := builder.BuildOpenAPIV2(of, "v1", builder.Options{V2: true})
		require.NoError(t, err)
		text, err := json.Marshal(built)
		require.NoError(t, err)
		var original openAPIV2
		require.NoError(t, json.Unmarshal(text, &original))
		for name := range original.Definitions {
			if strings.HasPrefix(name, "com.example.") {
				require.Equal(t, untold(original.Definitions[name]), untold(ours.Definitions[name]), name)
				compared++
			}
		}
		for path, methods := range original.Paths {
			for method, operation := range methods {
				if method != "parameters" {
					require.Equal(t, actionOf(operation), actionOf(ours.Paths[path][method]), "%s %s", method, path)
				}
			}
		}
	}
	require.Equal(t, 8, compared, "four kinds and their lists")
}

func actionOf(operation any) any {
	fields, _ := operation.(map[string]any)
	return fields["x-kubernetes-action"]
}

// untold returns a schema without its descriptions.
func untold(schema any) any {
	switch s := schema.(type) {
	case map[string]any:
		if _, isText := s["description"].(string); isText {
			delete(s, "description")
		}
		for name, part := range s {
			s[name] = untold(part)
		}
	case []any:
		for i, part := range s {
			s[i] = untold(part)
		}
	}
	return schema
}
