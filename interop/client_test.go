package interop_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func unstructuredWidget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"size": size},
	}}
}

func (s *server) dynamic(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(s.cfg)
	require.NoError(t, err)
	return client.Resource(widgetResource).Namespace("default")
}

// fill makes widgets in the process.
func (s *server) fill(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		w := Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("w%04d", i)}, Spec: WidgetSpec{Size: i}}
		_, err := s.widgets.Create(t.Context(), w, registry.WriteOptions{})
		require.NoError(t, err)
	}
}

func (s *server) resize(t *testing.T, name string, size int) {
	t.Helper()
	_, _, err := s.widgets.Update(t.Context(), "default/"+name, func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Spec.Size = size
		return w, nil
	}, registry.WriteOptions{})
	require.NoError(t, err)
}

func TestDiscovery_FindsEverythingInTwoRequests(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Audit = func(_ context.Context, e serve.Audited) {
			mu.Lock()
			defer mu.Unlock()
			paths = append(paths, e.Request.Path)
		}
	})
	client, err := discovery.NewDiscoveryClientForConfig(s.cfg)
	require.NoError(t, err)
	groups, resources, err := client.ServerGroupsAndResources()
	require.NoError(t, err)
	require.Len(t, groups, 2)
	// client-go returns the lists in the order of a map.
	found := make(map[string][]string)
	for _, list := range resources {
		found[list.GroupVersion] = resourceNames(list)
	}
	require.Equal(t, map[string][]string{
		"v1":             {},
		"example.com/v1": {"widgets", "widgets/scale", "widgets/status"},
	}, found)
	mu.Lock()
	require.ElementsMatch(t, []string{"/api", "/apis"}, paths)
	mu.Unlock()
	version, err := client.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, serve.ProtocolVersion, version.GitVersion)
	schema, err := client.OpenAPIV3().Paths()
	require.NoError(t, err)
	require.Contains(t, schema, "apis/example.com/v1")
}

func resourceNames(list *metav1.APIResourceList) []string {
	names := make([]string, 0, len(list.APIResources))
	for _, resource := range list.APIResources {
		names = append(names, resource.Name)
	}
	return names
}

func TestDynamic_WritesAndErrors(t *testing.T) {
	s := newServer(t)
	c, ctx := s.dynamic(t), t.Context()
	o, err := c.Create(ctx, unstructuredWidget("a", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.Create(ctx, unstructuredWidget("a", 1), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err))
	_, err = c.Get(ctx, "none", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	stale := o.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(o.Object, int64(2), "spec", "size"))
	o, err = c.Update(ctx, o, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, o.GetGeneration())
	require.NoError(t, unstructured.SetNestedField(stale.Object, int64(3), "spec", "size"))
	_, err = c.Update(ctx, stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err))
	o, err = c.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":7}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
	require.EqualValues(t, 7, size)
	_, err = c.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "B_"}}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err))
	wrong := types.UID("other")
	require.True(t, apierrors.IsConflict(c.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})))
	require.NoError(t, c.Delete(ctx, "a", metav1.DeleteOptions{}))
	require.NoError(t, c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// patient tries far more often than a few writers can conflict.
var patient = wait.Backoff{Steps: 10_000, Duration: time.Millisecond, Jitter: 1}

func TestDynamic_RetryOnConflictLosesNoUpdate(t *testing.T) {
	s := newServer(t)
	s.fill(t, 1)
	c := s.dynamic(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				err := retry.OnError(patient, apierrors.IsConflict, func() error {
					o, err := c.Get(t.Context(), "w0000", metav1.GetOptions{})
					if err != nil {
						return err
					}
					size, _, _ := unstructured.NestedInt64(o.Object, "spec", "size")
					_ = unstructured.SetNestedField(o.Object, size+1, "spec", "size")
					_, err = c.Update(t.Context(), o, metav1.UpdateOptions{})
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	o, err := s.widgets.Engine().Get(t.Context(), "default/w0000", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, 40, o.Value.Spec.Size)
}

func TestPager_ReadsEveryPage(t *testing.T) {
	s := newServer(t)
	s.fill(t, 57)
	c := s.dynamic(t)
	p := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, opts) })
	p.PageSize = 10
	n := 0
	require.NoError(t, p.EachListItem(t.Context(), metav1.ListOptions{}, func(runtime.Object) error { n++; return nil }))
	require.Equal(t, 57, n)
}

// informed runs an informer until it has synced, writes more, and requires that the
// informer ends with the engine's objects.
func (s *server) informed(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.Run(ctx.Done()) })
	defer running.Wait()
	defer stop()
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	require.Len(t, informer.GetStore().ListKeys(), 50)
	for i := range 100 {
		s.resize(t, fmt.Sprintf("w%04d", i%50), 1000+i)
	}
	_, _, err := s.widgets.Delete(t.Context(), "default/w0007", registry.DeleteOptions{})
	require.NoError(t, err)
	want := map[string]string{}
	list, err := s.widgets.Engine().List(t.Context(), engine.ListOptions{})
	require.NoError(t, err)
	for _, o := range list.Items {
		want[o.Key] = o.Revision.String()
	}
	require.Eventually(t, func() bool {
		got := map[string]string{}
		for _, o := range informer.GetStore().List() {
			m := o.(metav1.Object)
			got[m.GetNamespace()+"/"+m.GetName()] = m.GetResourceVersion()
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	}, patience, 5*time.Millisecond)
}

func TestInformer_Dynamic(t *testing.T) {
	s := newServer(t)
	s.fill(t, 50)
	client, err := dynamic.NewForConfig(s.cfg)
	require.NoError(t, err)
	s.informed(t, dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(widgetResource).Informer())
}

func TestInformer_Metadata(t *testing.T) {
	s := newServer(t)
	s.fill(t, 50)
	client, err := metadata.NewForConfig(s.cfg)
	require.NoError(t, err)
	s.informed(t, metadatainformer.NewSharedInformerFactory(client, 0).ForResource(widgetResource).Informer())
}

// DeepCopyObject makes Widget a runtime.Object, for the typed client.
func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &c
}

// WidgetList is a list of widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject makes WidgetList a runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]Widget, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Widget)
	}
	return &c
}

func TestInformer_Typed(t *testing.T) {
	s := newServer(t)
	s.fill(t, 50)
	scheme, gv := widgetScheme(), schema.GroupVersion{Group: "example.com", Version: "v1"}
	cfg := rest.CopyConfig(s.cfg)
	cfg.APIPath, cfg.GroupVersion = "/apis", &gv
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(cfg)
	require.NoError(t, err)
	params := runtime.NewParameterCodec(scheme)
	get := func(o metav1.ListOptions) *rest.Request {
		return client.Get().Resource("widgets").VersionedParams(&o, params)
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &WidgetList{}
			return list, get(o).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.Watch = true
			return get(o).Watch(ctx)
		},
	}
	s.informed(t, cache.NewSharedIndexInformer(lw, &Widget{}, 0, cache.Indexers{}))
}

func TestRetryWatcher_ResumesAfterEveryCut(t *testing.T) {
	s := newServer(t)
	s.fill(t, 1)
	c := s.dynamic(t)
	list, err := c.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	short := int64(1)
	w, err := toolswatch.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.TimeoutSeconds = &short // every watch ends soon, and is resumed
			return c.Watch(ctx, o)
		},
	})
	require.NoError(t, err)
	defer func() { w.Stop(); <-w.Done() }()
	next := 1
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for sent := 0; next <= 300; {
		select {
		case <-tick.C:
			if sent < 300 {
				sent++
				s.resize(t, "w0000", sent)
			}
		case ev := <-w.ResultChan():
			require.Equal(t, apiwatch.Modified, ev.Type)
			size, _, _ := unstructured.NestedInt64(ev.Object.(*unstructured.Unstructured).Object, "spec", "size")
			require.EqualValues(t, next, size, "no event is lost or repeated")
			next++
		}
	}
}

// It takes an event alone for the end. After a refusal, with whatever status, it sends the same request for
// ever, and what it watches for seems not to change any more.
func TestRetryWatcher_EndsAtARevisionThatIsGone(t *testing.T) {
	s := newServer(t)
	s.fill(t, 1)
	c := s.dynamic(t)
	w, err := toolswatch.NewRetryWatcherWithContext(t.Context(), "1", &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) { return c.Watch(ctx, o) },
	})
	require.NoError(t, err)
	defer w.Stop()
	select {
	case ev := <-w.ResultChan():
		require.Equal(t, apiwatch.Error, ev.Type)
		require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(ev.Object)), "%v", ev.Object)
	case <-time.After(patience):
		t.Fatal("it still tries")
	}
	<-w.Done()
}

// An informer comes back to a server that has shut down and refuses it, and waits between
// its attempts.
func TestInformer_SendsNoStormToAServerThatHasShutDown(t *testing.T) {
	var requests atomic.Int64
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = 1, 1
		c.Audit = func(context.Context, serve.Audited) { requests.Add(1) }
	})
	s.comesBackSlowly(t, &requests, func() { require.NoError(t, s.handler.Shutdown(t.Context())) })
}

// The same where storage has ended for good, though reads from the cache go on.
func TestInformer_SendsNoStormToAServerWhoseStorageHasEnded(t *testing.T) {
	var requests atomic.Int64
	var storage *memory.Backend
	s := newServer(t, func(w *registry.Config[Widget], c *serve.Config) {
		var err error
		storage, err = memory.New(registry.Schema(*w), memory.Options{})
		require.NoError(t, err)
		w.Engine.Backend = storage
		c.Audit = func(context.Context, serve.Audited) { requests.Add(1) }
	})
	s.comesBackSlowly(t, &requests, func() {
		require.NoError(t, storage.Close())
		require.Eventually(t, func() bool { return s.widgets.Engine().Stats().Ended }, patience, time.Millisecond)
	})
}

// comesBackSlowly has an informer follow the widgets, and requires that it comes back in less than 20 requests
// within 3 seconds from when end returns.
func (s *server) comesBackSlowly(t *testing.T, requests *atomic.Int64, end func()) {
	t.Helper()
	s.fill(t, 50)
	client, err := dynamic.NewForConfig(s.cfg)
	require.NoError(t, err)
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(widgetResource).Informer()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.Run(ctx.Done()) })
	defer running.Wait()
	defer stop()
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	end()
	before := requests.Load()
	since := func() int64 { return requests.Load() - before }
	pause(3 * time.Second)
	require.Less(t, since(), int64(20), "it waits between attempts")
	require.Eventually(t, func() bool { return since() > 0 }, patience, 10*time.Millisecond, "it comes back")
}
