package kube

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	restful "github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/apis/example/install"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/watchmill/watchmill/bench"
)

// server is the API server's own handlers over a Cacher.
type server struct {
	*store
	handler http.Handler
}

func openServer(ctx context.Context, warmUp time.Duration) (bench.Server, error) {
	opened, err := open(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	s := opened.(*store)
	handler, err := handlerOf(s)
	if err != nil {
		return nil, err
	}
	return server{s, handler}, nil
}

// handlerOf installs pods as the API server does, with one filter, that which
// parses the request: neither authentication, nor limits, nor audit.
func handlerOf(s *store) (http.Handler, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	scheme.AddKnownTypes(examplev1.SchemeGroupVersion, &examplev1.PodList{})
	scheme.AddKnownTypes(example.SchemeGroupVersion, &example.PodList{})
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)
	group := &endpoints.APIGroupVersion{
		Storage: map[string]rest.Storage{"pods": pods{s, rest.NewDefaultTableConvertor(schema.GroupResource{Resource: "pods"})}},
		Root:    "/apis", GroupVersion: examplev1.SchemeGroupVersion,
		Serializer: codecs, ParameterCodec: runtime.NewParameterCodec(scheme),
		Typer: scheme, Creater: scheme, Convertor: scheme, ConvertabilityChecker: scheme, Defaulter: scheme,
		UnsafeConvertor: runtime.UnsafeObjectConvertor(scheme), Namer: runtime.Namer(namer{}),
		TypeConverter: managedfields.NewDeducedTypeConverter(), EquivalentResourceRegistry: runtime.NewEquivalentResourceRegistry(),
		MinRequestTimeout: time.Hour,
	}
	container := restful.NewContainer()
	if _, _, err := group.InstallREST(container); err != nil {
		return nil, fmt.Errorf("install: %w", err)
	}
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString()}
	return filters.WithRequestInfo(container, resolver), nil
}

// namer names objects, for what the handlers say of them.
type namer struct{}

func (namer) Name(o runtime.Object) (string, error) { return o.(metav1.Object).GetName(), nil }

func (namer) Namespace(o runtime.Object) (string, error) {
	return o.(metav1.Object).GetNamespace(), nil
}

func (s server) Handler() http.Handler { return s.handler }
func (s server) Path() string          { return "/apis/" + examplev1.GroupName + "/v1/pods" }

func (s server) Write(_ context.Context, o bench.Object) (uint64, error) {
	pod := newPod(o)
	pod.Annotations = map[string]string{bench.SeqAnnotation: strconv.FormatInt(o.Seq, 10)}
	return s.memory.put(pod), nil
}

// pods is the storage that the handlers read.
type pods struct {
	store *store
	rest.TableConvertor
}

var (
	_ rest.Lister  = pods{}
	_ rest.Watcher = pods{}
)

func (pods) New() runtime.Object     { return &example.Pod{} }
func (pods) NewList() runtime.Object { return &example.PodList{} }
func (pods) NamespaceScoped() bool   { return true }
func (pods) GetSingularName() string { return "pod" }
func (pods) Destroy()                {}

func (p pods) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	list := &example.PodList{}
	return list, p.store.delegator.GetList(ctx, prefix, options(bench.Selection{}, o.ResourceVersion), list)
}

func (p pods) Watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	opts := options(bench.Selection{}, o.ResourceVersion)
	opts.Predicate.AllowWatchBookmarks = o.AllowWatchBookmarks
	return p.store.delegator.Watch(ctx, prefix, opts)
}
