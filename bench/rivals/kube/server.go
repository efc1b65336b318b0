package kube

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/apis/example/install"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/registry/rest"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"

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

// handlerOf installs pods in a generic API server with its default configuration: its
// encoders and its chain of filters, without authentication, and with an authorizer that
// allows everything.
func handlerOf(s *store) (http.Handler, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	scheme.AddKnownTypes(examplev1.SchemeGroupVersion, &examplev1.PodList{})
	scheme.AddKnownTypes(example.SchemeGroupVersion, &example.PodList{})
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)

	cfg := apiserver.NewConfig(codecs)
	cfg.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	cfg.ExternalAddress = "localhost:443"
	cfg.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	cfg.Complete(nil)
	chain := func(h http.Handler) http.Handler { return cfg.BuildHandlerChainFunc(h, cfg) }
	handler := apiserver.NewAPIServerHandler("bench", codecs, chain, nil)

	info := apiserver.NewDefaultAPIGroupInfo(examplev1.GroupName, scheme, runtime.NewParameterCodec(scheme), codecs)
	group := &endpoints.APIGroupVersion{
		Storage: map[string]rest.Storage{"pods": pods{s, rest.NewDefaultTableConvertor(schema.GroupResource{Resource: "pods"})}},
		Root:    apiserver.APIGroupPrefix, GroupVersion: examplev1.SchemeGroupVersion,
		Serializer: info.NegotiatedSerializer, ParameterCodec: info.ParameterCodec,
		Typer: scheme, Creater: scheme, Convertor: scheme, ConvertabilityChecker: scheme, Defaulter: scheme,
		UnsafeConvertor: runtime.UnsafeObjectConvertor(scheme), Namer: runtime.Namer(meta.NewAccessor()),
		TypeConverter: managedfields.NewDeducedTypeConverter(), EquivalentResourceRegistry: cfg.EquivalentResourceRegistry,
		Authorizer:        cfg.Authorization.Authorizer,
		MinRequestTimeout: time.Duration(cfg.MinRequestTimeout) * time.Second,
	}
	if _, _, err := group.InstallREST(handler.GoRestfulContainer); err != nil {
		return nil, fmt.Errorf("install: %w", err)
	}
	return handler, nil
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
