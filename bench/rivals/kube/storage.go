package kube

import (
	"context"
	"errors"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// errUnsupported is returned by methods that a Cacher does not call here.
var errUnsupported = errors.New("not in this storage: write by put")

// memory is the storage.Interface under the Cacher, in place of etcd. It keeps the
// newest state and the events that its one watcher has not received yet.
type memory struct {
	versioner storage.APIObjectVersioner

	mu   sync.Mutex
	rev  uint64
	pods map[string]*example.Pod
	// ahead are the events that the watcher has not received, wake signals new ones.
	ahead []watch.Event
	wake  chan struct{}
}

func newMemory() *memory {
	return &memory{rev: 1, pods: make(map[string]*example.Pod), wake: make(chan struct{}, 1)}
}

// put stores pod, which the caller must not change any more, and returns the
// revision.
func (m *memory) put(pod *example.Pod) uint64 {
	key := prefix + pod.Namespace + "/" + pod.Name
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rev++
	pod.ResourceVersion = strconv.FormatUint(m.rev, 10)
	change := watch.Added
	if _, ok := m.pods[key]; ok {
		change = watch.Modified
	}
	m.pods[key] = pod
	m.tell(watch.Event{Type: change, Object: pod})
	return m.rev
}

// tell queues an event for the watcher. The lock is held.
func (m *memory) tell(ev watch.Event) {
	m.ahead = append(m.ahead, ev)
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns the events that the watcher has not received.
func (m *memory) take() []watch.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.ahead
	m.ahead = nil
	return taken
}

func (m *memory) GetList(_ context.Context, _ string, _ storage.ListOptions, into runtime.Object) error {
	list := into.(*example.PodList)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, pod := range m.pods {
		list.Items = append(list.Items, *pod)
	}
	list.ResourceVersion = strconv.FormatUint(m.rev, 10)
	return nil
}

func (m *memory) Get(_ context.Context, key string, opts storage.GetOptions, into runtime.Object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	pod, ok := m.pods[key]
	switch {
	case ok:
		*into.(*example.Pod) = *pod
		return nil
	case opts.IgnoreNotFound:
		return runtime.SetZeroValue(into)
	default:
		return storage.NewKeyNotFoundError(key, int64(m.rev))
	}
}

// Watch follows the changes after the resource version of the options. There is
// one watcher, the Cacher's.
func (m *memory) Watch(ctx context.Context, _ string, opts storage.ListOptions) (watch.Interface, error) {
	from, err := m.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return newFollower(ctx, m, from), nil
}

func (m *memory) GetCurrentResourceVersion(context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rev, nil
}

// RequestWatchProgress sends a bookmark to the watcher, as etcd does.
func (m *memory) RequestWatchProgress(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	pod := &example.Pod{}
	pod.ResourceVersion = strconv.FormatUint(m.rev, 10)
	m.tell(watch.Event{Type: watch.Bookmark, Object: pod})
	return nil
}

func (m *memory) Stats(context.Context) (storage.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return storage.Stats{ObjectCount: int64(len(m.pods))}, nil
}

// IsWatchListSemanticsUnSupported tells the reflector to list and watch.
func (m *memory) IsWatchListSemanticsUnSupported() bool { return true }

func (m *memory) Versioner() storage.Versioner                        { return m.versioner }
func (m *memory) ReadinessCheck() error                               { return nil }
func (m *memory) CompactRevision() int64                              { return 0 }
func (m *memory) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }
func (m *memory) Create(context.Context, string, runtime.Object, runtime.Object, uint64) error {
	return errUnsupported
}

func (m *memory) Delete(context.Context, string, runtime.Object, *storage.Preconditions, storage.ValidateObjectFunc, runtime.Object, storage.DeleteOptions) error {
	return errUnsupported
}

func (m *memory) GuaranteedUpdate(context.Context, string, runtime.Object, bool, *storage.Preconditions, storage.UpdateFunc, runtime.Object) error {
	return errUnsupported
}
