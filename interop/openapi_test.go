package interop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/util/proto/validation"
	"k8s.io/kubectl/pkg/util/openapi"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/watchmill/watchmill/serve/apiextensions"
)

// openAPIV2 reads the document of OpenAPI v2 of a server of widgets, which are of a Go type, and
// of gadgets, which a client has defined.
func openAPIV2(t *testing.T) (openapi.Resources, proto.Models) {
	t.Helper()
	s := newServer(t)
	definitions, err := apiextensions.New(t.Context(), apiextensions.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, definitions.Close()) })
	require.NoError(t, s.handler.Add(definitions))
	require.NoError(t, definitions.Start(t.Context(), s.handler))
	file := filepath.Join(t.TempDir(), "gadgets.yaml")
	gadgets := strings.NewReplacer("widgets", "gadgets", "Widget", "Gadget", "wd", "gd").Replace(definedWidgets)
	require.NoError(t, os.WriteFile(file, []byte(gadgets), 0o600))
	_, err = envtest.InstallCRDs(s.cfg, envtest.CRDInstallOptions{Paths: []string{file}, ErrorIfPathMissing: true})
	require.NoError(t, err)

	client, err := discovery.NewDiscoveryClientForConfig(s.cfg)
	require.NoError(t, err)
	doc, err := client.OpenAPISchema()
	require.NoError(t, err)
	resources, err := openapi.NewOpenAPIData(doc)
	require.NoError(t, err)
	models, err := proto.NewOpenAPIData(doc)
	require.NoError(t, err)
	return resources, models
}

// kubectl before 1.27 and Helm validate by OpenAPI v2, and Argo CD compares by it.
func TestOpenAPIV2_ClientsValidateBoth(t *testing.T) {
	resources, models := openAPIV2(t)
	types, err := managedfields.NewGVKParser(models, false)
	require.NoError(t, err)
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "example.com", Version: "v1", Kind: "Widget"}, {Group: "example.com", Version: "v1", Kind: "Gadget"}, {Group: "example.com", Version: "v1beta1", Kind: "Gadget"},
	} {
		model := resources.LookupResource(gvk)
		require.NotNil(t, model, gvk)
		require.Equal(t, "How large it is.", field(t, model, "spec", "size").GetDescription())
		require.NotEmpty(t, field(t, model, "metadata", "labels").GetDescription())
		object := func(spec map[string]any) map[string]any {
			return map[string]any{
				"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "spec": spec,
				"metadata": map[string]any{"name": "a", "labels": map[string]any{"a": "b"}, "finalizers": []any{"a.example.com/b"}},
			}
		}
		require.Empty(t, validation.ValidateModel(object(map[string]any{"size": 1}), model, gvk.Kind))
		require.NotEmpty(t, validation.ValidateModel(object(map[string]any{"size": "large"}), model, gvk.Kind))
		require.NotEmpty(t, validation.ValidateModel(object(map[string]any{"size": 1, "colour": "red"}), model, gvk.Kind))
		require.NotNil(t, types.Type(gvk))
		_, err := types.Type(gvk).FromUnstructured(object(map[string]any{"size": int64(1)}))
		require.NoError(t, err)
	}
}

// field returns the model of a field within an object.
func field(t *testing.T, model proto.Schema, names ...string) proto.Schema {
	t.Helper()
	for _, name := range names {
		if reference, refers := model.(proto.Reference); refers {
			model = reference.SubSchema()
		}
		kind, isKind := model.(*proto.Kind)
		require.True(t, isKind, "%s is in a %T", name, model)
		model = kind.Fields[name]
		require.NotNil(t, model, name)
	}
	return model
}

// kubectl before 1.26 makes strategic merge patches by OpenAPI v2: without the keys of lists the
// patch would not remove an item.
func TestOpenAPIV2_ClientsMakeStrategicMergePatches(t *testing.T) {
	resources, _ := openAPIV2(t)
	widget := resources.LookupResource(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	of := func(types ...string) []byte {
		for i, one := range types {
			types[i] = `{"type":"` + one + `","status":"True"}`
		}
		return []byte(`{"status":{"conditions":[` + strings.Join(types, ",") + `]}}`)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(of("a", "b"), of("a"), of("a", "b", "c"), strategicpatch.PatchMetaFromOpenAPI{Schema: widget}, true)
	require.NoError(t, err)
	require.JSONEq(t, `{"status":{"$setElementOrder/conditions":[{"type":"a"}],"conditions":[{"$patch":"delete","type":"b"}]}}`, string(patch))
}
