package apiextensions_test

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry/crd"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// widgetManifests are the definitions of the widgets of package crd.
func widgetManifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open("../../registry/crd/testdata/widgets.yaml")
	require.NoError(t, err)
	defer file.Close()
	defined, err := crd.Parse(file)
	require.NoError(t, err)
	require.Len(t, defined, 1)
	return []*unstructured.Unstructured{defined[0].Manifest}
}

// newStatic returns static definitions, and a cluster whose server has them.
func newStatic(t *testing.T, cfg apiextensions.StaticConfig) *cluster {
	t.Helper()
	s, err := apiextensions.NewStatic(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	server, err := serve.New(serve.Config{Resources: []serve.Provider{s}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return &cluster{t: t, server: server}
}

func TestStatic_ADefinitionIsThatOfAKindThatIsServed(t *testing.T) {
	at := time.Date(2024, time.May, 6, 7, 8, 9, 10, time.UTC)
	host, err := engine.NewHost(engine.HostConfig{Clock: clock.NewVirtual(at)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	manifest := widgetManifests(t)[0].DeepCopy()
	manifest.SetLabels(map[string]string{"team": "tools"})
	manifest.SetAnnotations(map[string]string{"about": "tools"})
	manifest.SetUID("of another server")
	manifest.SetResourceVersion("17")
	require.NoError(t, unstructured.SetNestedField(manifest.Object, false, "status", "old"))
	given := manifest.DeepCopy()
	c := newStatic(t, apiextensions.StaticConfig{Manifests: []*unstructured.Unstructured{manifest}, Host: host})
	require.Equal(t, given, manifest, "it is not changed")

	o := c.get(widgetsName)
	require.Equal(t, "apiextensions.k8s.io/v1, Kind=CustomResourceDefinition", o.GroupVersionKind().String())
	require.Equal(t, "widgets.example.com map[team:tools] map[about:tools] 2024-05-06T07:08:09Z 1", fmt.Sprint(
		o.GetName(), " ", o.GetLabels(), " ", o.GetAnnotations(), " ", o.GetCreationTimestamp().UTC().Format(time.RFC3339), " ", o.GetGeneration()))
	require.NotEqual(t, manifest.GetUID(), o.GetUID())
	names := o.Object["spec"].(map[string]any)["names"].(map[string]any)
	require.Equal(t, "WidgetList", names["listKind"], "defaults are set")
	status := o.Object["status"].(map[string]any)
	require.Equal(t, names, status["acceptedNames"])
	require.Equal(t, []any{"v1"}, status["storedVersions"])
	require.NotContains(t, status, "old")
	require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(o))
}

// Replicas take a definition with another UID for that of another kind.
func TestStatic_ADefinitionHasTheSameUIDAfterARestart(t *testing.T) {
	uid := func() types.UID {
		return newStatic(t, apiextensions.StaticConfig{Manifests: widgetManifests(t)}).get(widgetsName).GetUID()
	}
	first := uid()
	require.NotEmpty(t, first)
	require.Equal(t, first, uid())
}

func TestStatic_ClientsChangeNothing(t *testing.T) {
	c := newStatic(t, apiextensions.StaticConfig{Manifests: widgetManifests(t)})
	c.must(405, "POST", definitionsPath, lamps)
	c.must(405, "DELETE", definitionsPath+"/"+widgetsName, "")
	c.must(405, "PUT", definitionsPath+"/"+widgetsName+"/status", lamps)
	require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(c.get(widgetsName)))
}

func TestStatic_WrongSettingsAreRefused(t *testing.T) {
	for name, manifests := range map[string][]*unstructured.Unstructured{
		"Manifests has nil at 0":          {nil},
		"give a CustomResourceDefinition": {{Object: map[string]any{"kind": "Widget"}}},
		"already exists":                  append(widgetManifests(t), widgetManifests(t)...),
	} {
		_, err := apiextensions.NewStatic(t.Context(), apiextensions.StaticConfig{Manifests: manifests})
		require.ErrorContains(t, err, name)
	}
	_, err := apiextensions.NewStatic(t.Context(), apiextensions.StaticConfig{Host: &engine.Host{}})
	require.ErrorIs(t, err, engine.ErrConfig)
}
