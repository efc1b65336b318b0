package conformance

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// informersOfMetadata are the informers of a garbage collector.
type informersOfMetadata struct {
	metadatainformer.SharedInformerFactory
}

func (i informersOfMetadata) ForResource(r schema.GroupVersionResource) (informers.GenericInformer, error) {
	return i.SharedInformerFactory.ForResource(r), nil
}

// collectGarbage runs Kubernetes' garbage collector against a server until the test ends.
func collectGarbage(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	objects, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	observed := informersOfMetadata{metadatainformer.NewSharedInformerFactory(objects, 0)}
	started := make(chan struct{})
	close(started)
	ctx, cancel := context.WithCancel(context.Background())
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, objects, mapper, garbagecollector.DefaultIgnoredResources(), observed, started)
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() { collector.Run(ctx, 2, time.Minute) })
	running.Go(func() { collector.Sync(ctx, client.Discovery(), time.Second) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		observed.Shutdown()
	})
}

// maps are the objects of a server by which a garbage collector is tested.
type maps struct {
	*testing.T
	client kubernetes.Interface
}

// make makes an object, which the owner, if any, owns.
func (m maps) make(name string, owner *core.ConfigMap) *core.ConfigMap {
	m.Helper()
	o := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if owner != nil {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true)}}
	}
	o, err := m.client.CoreV1().ConfigMaps("default").Create(m.Context(), o, metav1.CreateOptions{})
	require.NoError(m, err)
	return o
}

// remove deletes an object by a policy for its dependents.
func (m maps) remove(o *core.ConfigMap, policy metav1.DeletionPropagation) {
	m.Helper()
	require.NoError(m, m.client.CoreV1().ConfigMaps("default").Delete(m.Context(), o.Name, metav1.DeleteOptions{PropagationPolicy: &policy}))
}

// awaitGone waits until an object is gone.
func (m maps) awaitGone(o *core.ConfigMap) {
	m.Helper()
	w, err := m.client.CoreV1().ConfigMaps("default").Watch(m.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + o.Name, ResourceVersion: o.ResourceVersion,
	})
	require.NoError(m, err)
	defer w.Stop()
	for ev := range w.ResultChan() {
		if ev.Type == watch.Deleted {
			return
		}
	}
	require.FailNow(m, "the watch has ended", o.Name)
}

// A garbage collector does with dependents what the deletion of their owner has asked for if the kind is
// configured for one.
func TestGarbageCollector_DoesWithDependentsWhatIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		collected, stays bool
		policy           metav1.DeletionPropagation
	}{
		"orphans them":       {true, true, metav1.DeletePropagationOrphan},
		"deletes them first": {true, false, metav1.DeletePropagationForeground},
		"deletes them":       {true, false, metav1.DeletePropagationBackground},
		"knows no better where the kind is not configured": {false, false, metav1.DeletePropagationOrphan},
	} {
		t.Run(name, func(t *testing.T) {
			handler, err := serve.New(serve.Config{Resources: []serve.Provider{
				open(t, "", "ConfigMap", namespaced, func(cfg *registry.Config[core.ConfigMap]) { cfg.GarbageCollection = c.collected }),
			}})
			require.NoError(t, err)
			server := httptest.NewServer(handler)
			t.Cleanup(func() {
				server.CloseClientConnections()
				server.Close()
			})
			config := &rest.Config{Host: server.URL, QPS: -1}
			client, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			collectGarbage(t, config)

			m := maps{t, client}
			if c.collected { // else no object waits for the collector
				first := m.make("first", nil)
				m.remove(first, metav1.DeletePropagationForeground)
				m.awaitGone(first) // then the collector has each change in order
			}
			owner := m.make("owner", nil)
			dependent := m.make("dependent", owner)
			m.remove(owner, c.policy)
			m.awaitGone(owner)
			if c.policy == metav1.DeletePropagationBackground || !c.collected {
				m.awaitGone(dependent)
			}
			left, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), dependent.Name, metav1.GetOptions{})
			require.Equal(t, c.stays, !apierrors.IsNotFound(err), "%v", err)
			if c.stays {
				require.Empty(t, left.OwnerReferences)
			}
		})
	}
}
