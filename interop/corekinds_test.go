package interop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	newrecord "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/corekinds"
)

// newCoreKinds serves the kinds of package corekinds.
func newCoreKinds(t *testing.T) *rest.Config {
	t.Helper()
	kinds, err := corekinds.New(t.Context(), corekinds.Config{OnError: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kinds.Close()) })
	server, cfg := served(t, serve.Config{Resources: []serve.Provider{kinds}})
	require.NoError(t, kinds.Start(t.Context(), server))
	return cfg
}

func clientset(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	return client
}

// A typed client, which sends protobuf, finds the rules and the errors of a cluster.
func TestCoreKinds_TypedClient(t *testing.T) {
	ctx, client := t.Context(), clientset(t, newCoreKinds(t))
	secrets := client.CoreV1().Secrets("shop")
	_, err := client.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	made, err := secrets.Create(ctx, &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, StringData: map[string]string{"x": "y"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"x": []byte("y")}, made.Data)
	require.Equal(t, core.SecretTypeOpaque, made.Type)
	stale := made.DeepCopy()
	made.Data["z"], made.Immutable = []byte{0, 255}, new(true)
	made, err = secrets.Update(ctx, made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, []byte{0, 255}, made.Data["z"])
	_, err = secrets.Update(ctx, stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), err)
	made.Data["z"] = nil
	_, err = secrets.Update(ctx, made, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), err)
	_, err = secrets.Create(ctx, &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Type: core.SecretTypeTLS}, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), err)
	applied, err := client.CoreV1().ConfigMaps("shop").Apply(ctx, coreapply.ConfigMap("a", "shop").WithData(map[string]string{"x": "1"}), metav1.ApplyOptions{FieldManager: "me"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"x": "1"}, applied.Data)

	require.NoError(t, client.CoreV1().Namespaces().Delete(ctx, "shop", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := client.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, 10*time.Millisecond)
	left, err := secrets.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, left.Items)
}

func TestCoreKinds_DynamicClient(t *testing.T) {
	ctx := t.Context()
	client, err := dynamic.NewForConfig(newCoreKinds(t))
	require.NoError(t, err)
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	of := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": data}}
	}
	_, err = maps.Create(ctx, of(map[string]any{"x": "1"}), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = maps.Apply(ctx, "a", of(map[string]any{"y": "2"}), metav1.ApplyOptions{FieldManager: "me"})
	require.NoError(t, err)
	_, err = maps.Apply(ctx, "a", of(map[string]any{"y": "3"}), metav1.ApplyOptions{FieldManager: "other"})
	require.True(t, apierrors.IsConflict(err), err)
	now, err := maps.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"x": "1", "y": "2"}, now.Object["data"])
	_, err = maps.Create(ctx, of(map[string]any{"a/b": "1"}), metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), err)
}

// requireEvents waits until each group has these events, by their reasons.
func requireEvents(t *testing.T, client *kubernetes.Clientset, reasons ...string) {
	t.Helper()
	for _, reason := range reasons {
		require.Eventually(t, func() bool {
			older, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
			if err != nil || len(older.Items) == 0 {
				return false
			}
			newer, err := client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
			return err == nil && len(newer.Items) == len(older.Items) && newer.Items[0].Note == older.Items[0].Message
		}, patience, 10*time.Millisecond, reason)
	}
}

// The recorders of both groups of events count repetitions: one by patches, one by a series.
func TestCoreKinds_RecordersOfBothGroups(t *testing.T) {
	cfg := newCoreKinds(t)
	client := clientset(t, cfg)
	about := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "u"}}

	older := record.NewBroadcaster()
	defer older.Shutdown()
	older.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := older.NewRecorder(scheme.Scheme, core.EventSource{Component: "older"})
	newer := newrecord.NewBroadcaster(&newrecord.EventSinkImpl{Interface: client.EventsV1()})
	defer newer.Shutdown()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	require.NoError(t, newer.StartRecordingToSinkWithContext(ctx))
	newRecorder := newer.NewRecorder(scheme.Scheme, "example.com/newer")
	for range 3 {
		recorder.Event(about, core.EventTypeNormal, "Old", "it is old")
		newRecorder.Eventf(about, nil, core.EventTypeWarning, "New", "Renew", "it is new")
	}
	requireEvents(t, client, "Old", "New")
	require.Eventually(t, func() bool {
		old, err := client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Old,regarding.name=a"})
		if err != nil || len(old.Items) != 1 || old.Items[0].DeprecatedCount != 3 {
			return false
		}
		late, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=New,involvedObject.name=a"})
		return err == nil && len(late.Items) == 1 && late.Items[0].Series != nil
	}, patience, 10*time.Millisecond)
}

// A manager elects itself by a lease, and records that; its two recorders write to the two groups of events.
func TestCoreKinds_ManagerWithLeaderElection(t *testing.T) {
	cfg := newCoreKinds(t)
	log.SetLogger(log.Log.WithSink(nil))
	known := runtime.NewScheme()
	require.NoError(t, core.AddToScheme(known))
	require.NoError(t, events.AddToScheme(known))
	m, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: known, Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "controller", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
	})
	require.NoError(t, err)
	about := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	require.NoError(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		m.GetEventRecorderFor("leader").Event(about, core.EventTypeNormal, "Old", "it leads") // which most controllers have
		m.GetEventRecorder("leader").Eventf(about, nil, core.EventTypeNormal, "New", "Lead", "it leads")
		<-ctx.Done()
		return nil
	})))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	client := clientset(t, cfg)
	requireEvents(t, client, "Old", "New", "LeaderElection")
	held, err := client.CoordinationV1().Leases("default").Get(t.Context(), "controller", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, *held.Spec.HolderIdentity)
	stop()
	require.NoError(t, <-ended)
}

// kubectl has commands for these kinds, which print what they do in a cluster.
func TestCoreKinds_Kubectl(t *testing.T) {
	for _, program := range kubectls {
		t.Run(program.minor, func(t *testing.T) {
			cfg := newCoreKinds(t)
			k := newKubectl(t, program, cfg.Host)
			require.Equal(t, "namespace/shop created\n", k.run("create", "namespace", "shop"))
			require.Regexp(t, `^NAME +STATUS +AGE\nshop +Active +\S+\n$`, k.run("get", "ns", "shop"))
			require.Equal(t, "secret/a created\n", k.run("-n", "shop", "create", "secret", "generic", "a", "--from-literal=user=me"))
			require.Equal(t, "secret/r created\n", k.run("-n", "shop", "create", "secret", "docker-registry", "r", "--docker-server=x", "--docker-username=y", "--docker-password=z"))
			require.Regexp(t, `^NAME +TYPE +DATA +AGE\na +Opaque +1 +\S+\nr +kubernetes.io/dockerconfigjson +1 +\S+\n$`, k.run("-n", "shop", "get", "secrets"))
			require.Contains(t, k.run("-n", "shop", "describe", "secret", "a"), "user:  2 bytes")
			require.Equal(t, "secret/a patched\n", k.run("-n", "shop", "patch", "secret", "a", "-p", `{"stringData":{"user":"you"}}`))
			require.Equal(t, "eW91", k.run("-n", "shop", "get", "secret", "a", "-o", "jsonpath={.data.user}"))
			of := func(value string) string {
				return "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData: {x: " + value + "}\n"
			}
			require.Equal(t, "secret/b created\n", k.with(of("one"), "-n", "shop", "apply", "-f", "-"))
			require.Equal(t, "secret/b configured\n", k.with(of("two"), "-n", "shop", "apply", "-f", "-"))
			require.Equal(t, "dHdv", k.run("-n", "shop", "get", "secret", "b", "-o", "jsonpath={.data.x}"))
			require.Equal(t, "configmap/m created\n", k.run("-n", "shop", "create", "configmap", "m", "--from-literal=x=y"))
			wrong, err := k.try("", "-n", "shop", "create", "configmap", "n", "--from-literal=x!=y")
			require.Error(t, err)
			require.NotEmpty(t, wrong)

			event := `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},"eventTime":"2026-01-02T03:04:05.000000Z","type":"Normal","reason":"Made","action":"Make",
				"reportingController":"maker","reportingInstance":"one","regarding":{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"m","uid":"` + k.run("-n", "shop", "get", "configmap", "m", "-o", "jsonpath={.metadata.uid}") + `"},"note":"it was made"}`
			require.Equal(t, "event.events.k8s.io/e created\n", k.with(event, "-n", "shop", "create", "-f", "-"))
			require.Regexp(t, `^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n\S+ +Normal +Made +configmap/m +it was made\n$`, k.run("-n", "shop", "get", "events"))
			require.Regexp(t, `Normal +Made +ConfigMap/m +it was made`, k.run("-n", "shop", "events"))
			require.Regexp(t, `Normal +Made +\S+ +maker +it was made`, k.run("-n", "shop", "describe", "configmap", "m"))
			require.Contains(t, k.run("delete", "namespace", "shop"), "namespace \"shop\" deleted\n") // it waits
			require.Contains(t, k.run("-n", "shop", "get", "secrets,configmaps,events"), "No resources found")
			immortal, err := k.try("", "delete", "namespace", "default")
			require.Error(t, err)
			require.Contains(t, immortal, "this namespace may not be deleted")
		})
	}
}
