package interop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/serve"
)

// newCoreServer serves Kubernetes' own ConfigMaps and Events.
func newCoreServer(t *testing.T) *rest.Config {
	t.Helper()
	maps, err := registry.New(registry.Config[core.ConfigMap]{
		Kind:           registry.Kind{Version: "v1", Kind: "ConfigMap", ShortNames: []string{"cm"}},
		StrategicMerge: strategic.New, Decoders: protobuf.Decoders[core.ConfigMap]("ConfigMap"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, maps.Close()) })
	recorded, err := registry.New(registry.Config[events.Event]{
		Kind:           registry.Kind{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
		StrategicMerge: strategic.New, Decoders: protobuf.Decoders[events.Event]("Event"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, recorded.Close()) })
	_, cfg := served(t, serve.Config{Resources: []serve.Provider{maps, recorded}})
	return cfg
}

// A controller of Kubernetes' own kinds needs no cluster: it sends protobuf and strategic merge
// patches, and records events, as it does there.
func TestControllerRuntime_ReconcilesConfigMaps(t *testing.T) {
	cfg := newCoreServer(t)
	scheme := runtime.NewScheme()
	require.NoError(t, core.AddToScheme(scheme))
	require.NoError(t, events.AddToScheme(scheme))
	log.SetLogger(log.Log.WithSink(nil))
	manager, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	c, recorder := manager.GetClient(), manager.GetEventRecorder("counter")
	err = ctrl.NewControllerManagedBy(manager).For(&core.ConfigMap{}).Named(t.Name()).WithOptions(controller.Options{SkipNameValidation: new(true)}).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			var m core.ConfigMap
			if err := c.Get(ctx, req.NamespacedName, &m); err != nil || m.Annotations["seen"] != "" {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			before := m.DeepCopy()
			m.Annotations = map[string]string{"seen": "yes"}
			if err := c.Patch(ctx, &m, client.StrategicMergeFrom(before)); err != nil {
				return reconcile.Result{}, err
			}
			recorder.Eventf(&m, nil, core.EventTypeNormal, "Seen", "See", "it has %d keys", len(m.Data))
			return reconcile.Result{}, nil
		}))
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()

	direct, err := client.New(cfg, client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, direct.Create(ctx, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"x": "y"}}))
	var m core.ConfigMap
	require.Eventually(t, func() bool {
		err := direct.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, &m)
		return err == nil && m.Annotations["seen"] == "yes"
	}, patience, 10*time.Millisecond)
	require.Equal(t, map[string]string{"x": "y"}, m.Data)
	var seen events.EventList
	require.Eventually(t, func() bool {
		err := direct.List(ctx, &seen, client.InNamespace("default"))
		return err == nil && len(seen.Items) == 1
	}, patience, 10*time.Millisecond)
	require.Equal(t, "it has 1 keys", seen.Items[0].Note)
	require.NoError(t, direct.Delete(ctx, &m, client.Preconditions{UID: &m.UID}))
	stop()
	require.NoError(t, <-ended)
}

// kubectl knows Kubernetes' own kinds: it makes them by commands of their own, and changes them by
// strategic merge patches.
func TestKubectl_KnowsConfigMaps(t *testing.T) {
	for _, program := range kubectls {
		t.Run(program.minor, func(t *testing.T) {
			k := newKubectl(t, program, newCoreServer(t).Host)
			manifest := func(data string) string {
				return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata: " + data + "\n"
			}
			require.Equal(t, "configmap/a created\n", k.run("create", "configmap", "a", "--from-literal=x=y"))
			require.Equal(t, "configmap/a patched\n", k.run("patch", "configmap", "a", "-p", `{"data":{"z":"1"}}`), "a strategic merge patch")
			require.Equal(t, `{"x":"y","z":"1"}`, k.run("get", "configmap", "a", "-o", "jsonpath={.data}"))
			require.Equal(t, "configmap/b created\n", k.with(manifest("{color: red, size: large}"), "apply", "-f", "-"))
			require.Equal(t, "configmap/b configured\n", k.with(manifest("{color: blue}"), "apply", "-f", "-"))
			require.Equal(t, `{"color":"blue"}`, k.run("get", "configmap", "b", "-o", "jsonpath={.data}"))
			require.Equal(t, "configmap/b unchanged\n", k.with(manifest("{color: blue}"), "apply", "-f", "-"))
			require.Equal(t, "configmap/b labeled\n", k.run("label", "configmap", "b", "app=web"))
			require.Equal(t, "configmap/b\n", k.run("get", "cm", "-l", "app=web", "-o", "name"))
			require.Contains(t, k.run("explain", "configmap.data"), "FIELD: data")
			require.Regexp(t, `configmaps +cm +v1 +true +ConfigMap`, k.run("api-resources"))
			require.Equal(t, "configmap \"a\" deleted from default namespace\n", k.run("delete", "configmap", "a"))
		})
	}
}
