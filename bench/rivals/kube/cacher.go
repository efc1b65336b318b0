package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/apis/example/install"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/client-go/tools/cache"

	"github.com/watchmill/watchmill/bench"
)

// prefix is the prefix of the pods' keys.
const prefix = "/pods/"

// The times that a new Cacher takes to reach its steady state.
const (
	// Started is how long the dispatcher may sleep before its next poll: twice
	// its period of 10 ms.
	Started = 20 * time.Millisecond
	// WarmedUp is how long its budget for slow watchers, which starts empty, takes
	// to fill: 100 ms at 50 ms per second. Kubernetes' own benchmark waits as long.
	WarmedUp = 2 * time.Second
)

// Cacher is the Kubernetes watch cache, given warmUp after it reports ready:
// [Started], or better [WarmedUp].
func Cacher(warmUp time.Duration) bench.Contender {
	opened := func(ctx context.Context) (bench.Store, error) { return open(ctx, warmUp) }
	return bench.Contender{
		Name: "k8s cacher", Store: opened, Fed: opened, Bare: bare,
		Server: func(ctx context.Context) (bench.Server, error) { return openServer(ctx, warmUp) },
		// Its history grows by itself, up to 102,400 events within 75 s.
		Windowed: func(ctx context.Context, _ int) (bench.Store, error) { return opened(ctx) },
	}
}

// bare fills a storage, which replaces etcd and so is not a part of the Cacher,
// and makes superseded pods.
func bare(live, superseded int) any {
	m, old := newMemory(), make([]*example.Pod, superseded)
	for i := range live {
		m.put(newPod(named(i)))
	}
	m.take()
	for i := range old {
		old[i] = newPod(bench.Object{Seq: int64(i)})
	}
	return []any{m, old}
}

func named(i int) bench.Object {
	return bench.Object{Name: fmt.Sprintf("pod-%06d", i), Seq: bench.Unmeasured}
}

// store adapts a Cacher to bench.Store.
type store struct {
	memory    *memory
	cacher    *cacher.Cacher
	delegator *cacher.CacheDelegator
	consumers sync.WaitGroup
}

func open(ctx context.Context, warmUp time.Duration) (bench.Store, error) {
	m := newMemory()
	c, err := cacher.NewCacherFromConfig(config(m))
	if err != nil {
		return nil, fmt.Errorf("new cacher: %w", err)
	}
	s := &store{memory: m, cacher: c, delegator: cacher.NewCacheDelegator(c, m)}
	return s, s.ready(ctx, warmUp)
}

// ready waits until the Cacher has listed, and then for it to warm up.
func (s *store) ready(ctx context.Context, warmUp time.Duration) error {
	for s.delegator.ReadinessCheck() != nil {
		if err := sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return sleep(ctx, warmUp)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func config(m *memory) cacher.Config {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return cacher.Config{
		Storage:             m,
		Versioner:           m.versioner,
		GroupResource:       schema.GroupResource{Resource: "pods"},
		EventsHistoryWindow: cacher.DefaultEventFreshDuration,
		ResourcePrefix:      prefix,
		KeyFunc:             func(o runtime.Object) (string, error) { return storage.NamespaceKeyFunc(prefix, o) },
		GetAttrsFunc:        attributes,
		IndexerFuncs:        storage.IndexerFuncs{bench.NodeField: nodeOf},
		Indexers:            &cache.Indexers{storage.FieldIndex(bench.NodeField): nodesOf},
		NewFunc:             func() runtime.Object { return &example.Pod{} },
		NewListFunc:         func() runtime.Object { return &example.PodList{} },
		Codec:               serializer.NewCodecFactory(scheme).LegacyCodec(examplev1.SchemeGroupVersion),
	}
}

// attributes returns what selectors match on: labels, and the fields that pods
// have in the API server.
func attributes(o runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := o.(*example.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("a %T is not a pod", o)
	}
	return pod.Labels, fields.Set{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, bench.NodeField: pod.Spec.NodeName,
	}, nil
}

// newest is the revision of the newest write.
func (s *store) newest() uint64 {
	rev, _ := s.memory.GetCurrentResourceVersion(context.Background())
	return rev
}

func nodeOf(o runtime.Object) string   { return o.(*example.Pod).Spec.NodeName }
func nodesOf(o any) ([]string, error)  { return []string{nodeOf(o.(runtime.Object))}, nil }
func revisionString(rev uint64) string { return strconv.FormatUint(rev, 10) }

func (s *store) Write(_ context.Context, o bench.Object) (uint64, error) {
	return s.memory.put(newPod(o)), nil
}

func newPod(o bench.Object) *example.Pod {
	pod := &example.Pod{}
	pod.Namespace, pod.Name, pod.Generation = bench.Namespace, o.Name, o.Seq
	pod.Labels = map[string]string{bench.AppLabel: o.App}
	pod.Spec.NodeName = o.Node
	return pod
}

func (s *store) List(ctx context.Context, what bench.Selection) (int, error) {
	var list example.PodList
	err := s.delegator.GetList(ctx, prefix, options(what, "0"), &list)
	return len(list.Items), err
}

func (s *store) Get(ctx context.Context, key string) (bench.Object, error) {
	var pod example.Pod
	if err := s.delegator.Get(ctx, prefix+key, storage.GetOptions{ResourceVersion: "0"}, &pod); err != nil {
		return bench.Object{}, err
	}
	return bench.Object{Name: pod.Name, Node: pod.Spec.NodeName, App: pod.Labels[bench.AppLabel], Seq: pod.Generation}, nil
}

// WaitFor asks until the cache is there: it gives up after 3 s each time.
func (s *store) WaitFor(ctx context.Context, rev uint64) error {
	for {
		opts := storage.GetOptions{ResourceVersion: revisionString(rev), IgnoreNotFound: true}
		err := s.delegator.Get(ctx, prefix+bench.Namespace+"/none", opts, &example.Pod{})
		if err == nil || !apierrors.IsTimeout(err) || ctx.Err() != nil {
			return err
		}
	}
}

// settleTimeout is how long Close waits for what is on its way.
const settleTimeout = time.Minute

// Close waits until everything that was written has been dispatched: a Cacher
// that is stopped with more than a hundred events on their way does not stop, as
// its reflector sends on a channel without a receiver.
func (s *store) Close() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), settleTimeout, errors.New("cacher does not settle"))
	defer cancel()
	err := s.settle(ctx)
	s.delegator.Stop()
	if err == nil {
		s.cacher.Stop()
	}
	return err
}

// settle writes once more and waits until a watch has seen it, which is the last
// of all.
func (s *store) settle(ctx context.Context) error {
	newest := s.newest()
	if err := s.WaitFor(ctx, newest); err != nil {
		return err
	}
	w, err := s.Watch(ctx, bench.Selection{}, newest, nil)
	if err != nil {
		return err
	}
	defer w.Stop()
	if _, err := s.Write(ctx, bench.Object{Name: "last"}); err != nil {
		return err
	}
	w.Drain(ctx, 1)
	return context.Cause(ctx)
}

// options selects from the cache at a resource version or after.
func options(what bench.Selection, rev string) storage.ListOptions {
	opts := storage.ListOptions{ResourceVersion: rev, Recursive: true, Predicate: storage.Everything}
	opts.Predicate.GetAttrs = attributes
	if what.Node != "" {
		opts.Predicate.Field = fields.OneTermEqualSelector(bench.NodeField, what.Node)
		opts.Predicate.IndexFields = []string{bench.NodeField}
	}
	if what.App != "" {
		opts.Predicate.Label = labels.SelectorFromSet(labels.Set{bench.AppLabel: what.App})
	}
	return opts
}
