package interop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// definedWidgets is a definition of widgets in two versions.
const definedWidgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 10, description: How large it is.}
  - name: v1beta1
    served: true
    storage: false
    schema: *schema
`

// definitionServer serves the kinds that clients define.
func definitionServer(t *testing.T) *rest.Config {
	t.Helper()
	definitions, err := apiextensions.New(t.Context(), apiextensions.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, definitions.Close()) })
	handler, cfg := served(t, serve.Config{Resources: []serve.Provider{definitions}})
	require.NoError(t, definitions.Start(t.Context(), handler))
	return cfg
}

func TestKubectl_DefinesKinds(t *testing.T) {
	for _, program := range kubectls {
		t.Run(program.minor, func(t *testing.T) {
			k := newKubectl(t, program, definitionServer(t).Host)
			require.Equal(t, "customresourcedefinition.apiextensions.k8s.io/widgets.example.com created\n", k.with(definedWidgets, "apply", "-f", "-"))
			require.Contains(t, k.run("wait", "--for=condition=Established", "crd/widgets.example.com"), "condition met\n")
			require.Regexp(t, `^NAME +SCOPE +VERSIONS +CREATED AT\nwidgets.example.com +Namespaced +v1\(storage\),v1beta1 +\S+Z\n$`, k.run("get", "crds"))
			require.Equal(t, "widget.example.com/a created\n", k.with(manifest("a", "5"), "apply", "-f", "-"))
			require.Regexp(t, `^NAME +SIZE\na +5\n$`, k.run("get", "wd"))
			require.Contains(t, k.run("get", "widgets.v1beta1.example.com", "a", "-o", "yaml"), "apiVersion: example.com/v1beta1\n")
			require.Contains(t, k.run("explain", "widget.spec.size"), "How large it is.")
			require.Contains(t, k.run("explain", "crd.spec.scope"), "Whether the objects are in namespaces.")
			refused, err := k.try(manifest("b", "11"), "apply", "-f", "-")
			require.Error(t, err)
			require.Contains(t, refused, "should be less than or equal to 10")

			require.Equal(t, "customresourcedefinition.apiextensions.k8s.io/widgets.example.com unchanged\n", k.with(definedWidgets, "apply", "-f", "-"))
			require.Equal(t, "customresourcedefinition.apiextensions.k8s.io/widgets.example.com configured\n", k.with(strings.ReplaceAll(definedWidgets, "maximum: 10", "maximum: 20"), "apply", "-f", "-"))
			for {
				if _, err := k.try(manifest("b", "11"), "apply", "-f", "-"); err == nil {
					break
				}
			}
			require.Equal(t, "customresourcedefinition.apiextensions.k8s.io/widgets.example.com serverside-applied\n", k.with(definedWidgets, "apply", "--server-side", "--force-conflicts", "-f", "-"))

			require.Contains(t, k.run("delete", "crd", "widgets.example.com"), "\"widgets.example.com\" deleted\n")
			gone, err := k.try("", "get", "widgets")
			require.Error(t, err)
			require.Contains(t, gone, "could not find the requested resource")
		})
	}
}

// The environment of controller-runtime's tests installs definitions, and waits until their kinds
// are served.
func TestControllerRuntime_InstallsDefinitions(t *testing.T) {
	cfg := definitionServer(t)
	file := filepath.Join(t.TempDir(), "widgets.yaml")
	require.NoError(t, os.WriteFile(file, []byte(definedWidgets), 0o600))
	options := envtest.CRDInstallOptions{Paths: []string{file}, ErrorIfPathMissing: true, CleanUpAfterUse: true}
	installed, err := envtest.InstallCRDs(cfg, options)
	require.NoError(t, err)
	require.Len(t, installed, 1)

	c, err := client.New(cfg, client.Options{})
	require.NoError(t, err)
	w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
	w.SetAPIVersion("example.com/v1")
	w.SetKind("Widget")
	w.SetNamespace("default")
	w.SetName("a")
	require.NoError(t, c.Create(t.Context(), w))
	older := &unstructured.Unstructured{}
	older.SetAPIVersion("example.com/v1beta1")
	older.SetKind("Widget")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(w), older))
	require.Equal(t, w.GetUID(), older.GetUID())
	require.Equal(t, w.Object["spec"], older.Object["spec"])

	_, err = envtest.InstallCRDs(cfg, options)
	require.NoError(t, err, "again")
	require.NoError(t, envtest.UninstallCRDs(cfg, options))
}
