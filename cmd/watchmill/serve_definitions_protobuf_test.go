package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// sendProtobuf sends a request with an object as typed clients of Go do, and returns the answer's object.
func sendProtobuf(t *testing.T, method, url string, o runtime.Object, kind schema.GroupVersionKind) *extensions.CustomResourceDefinition {
	t.Helper()
	o.GetObjectKind().SetGroupVersionKind(kind)
	var body bytes.Buffer
	require.NoError(t, protobuf.NewSerializer(nil, nil).Encode(o, &body))
	req, err := http.NewRequestWithContext(t.Context(), method, url, &body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", runtime.ContentTypeProtobuf)
	req.Header.Set("Accept", runtime.ContentTypeProtobuf+",application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Less(t, resp.StatusCode, 300, "%s", text)
	answer := &extensions.CustomResourceDefinition{}
	require.NoError(t, json.Unmarshal(text, answer))
	return answer
}

// Typed clients of Go send definitions in protobuf, to a replica as well.
func TestServe_TakesDefinitionsInProtobuf(t *testing.T) {
	definition := extensions.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	origin, stopOrigin := servingShown(t)
	defer stopOrigin()
	replica, stopReplica := serving(t, server.Options{Data: "memory", Upstream: origin})
	defer stopReplica()

	var given extensions.CustomResourceDefinition
	require.NoError(t, json.Unmarshal([]byte(`{"metadata": {"name": "gears.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
		"names": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}, "conversion": {"strategy": "None"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
			"size": {"type": "integer", "default": 0, "minimum": 0}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			"teeth": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}}}}}}]}}`), &given))
	created := sendProtobuf(t, http.MethodPost, origin+definitionsPath, &given, definition)
	require.Equal(t, given.Spec, created.Spec)

	one := definitionsPath + "/gears.example.com"
	answer := ""
	for !strings.Contains(answer, `"type":"Established"`) { // later, the server does not change it
		_, answer = call(t, "GET", origin+one, "", "")
	}
	var established extensions.CustomResourceDefinition
	require.NoError(t, json.Unmarshal([]byte(answer), &established))
	established.Labels = map[string]string{"team": "a"}
	updated := sendProtobuf(t, http.MethodPut, replica+one, &established, definition)
	require.Equal(t, established.Labels, updated.Labels)
	require.Equal(t, given.Spec, updated.Spec)

	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(created.UID))}
	sendProtobuf(t, http.MethodDelete, origin+one, options, extensions.SchemeGroupVersion.WithKind("DeleteOptions"))
}
