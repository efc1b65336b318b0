package interop_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
)

// fleet is replicas of one origin behind one address: each new connection goes to any
// of them.
type fleet struct {
	t      *testing.T
	origin string
	mu     sync.Mutex
	all    []*fleetReplica
}

// fleetReplica is one of the replicas.
type fleetReplica struct {
	http  *httptest.Server
	end   func() // ends the requests
	store *registry.Store[Widget]
	there *remote.Backend
}

func (r *fleetReplica) close(t *testing.T) {
	_ = r.http.Listener.Close()
	r.http.CloseClientConnections()
	r.end() // those of a connection that was accepted while the others were cut: Close waits for it
	r.http.Close()
	require.NoError(t, r.store.Close())
	require.NoError(t, r.there.Close())
}

// start starts a replica.
func (f *fleet) start() *fleetReplica {
	cfg := registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Status: true}}
	format, err := registry.FormatOf(cfg)
	require.NoError(f.t, err)
	there, err := remote.New(format, remote.Config{URL: f.origin, MinPause: 10 * time.Millisecond, MaxPause: 100 * time.Millisecond})
	require.NoError(f.t, err)
	cfg.Engine.Backend = there
	store, err := registry.New(cfg)
	require.NoError(f.t, err)
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{store}})
	require.NoError(f.t, err)
	h := httptest.NewUnstartedServer(handler)
	life, end := context.WithCancel(context.Background())
	h.Config.BaseContext = func(net.Listener) context.Context { return life }
	h.Start()
	return &fleetReplica{h, end, store, there}
}

// replace kills a replica at any moment, and starts another.
func (f *fleet) replace(i int) {
	fresh := f.start()
	f.mu.Lock()
	old := f.all[i]
	f.all[i] = fresh
	f.mu.Unlock()
	old.close(f.t)
}

// dial connects to any of the replicas.
func (f *fleet) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	f.mu.Lock()
	to := f.all[rand.N(len(f.all))].http.Listener.Addr().String()
	f.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, to)
}

// mirror is the state that an informer's handler has received.
type mirror struct {
	mu        sync.Mutex
	revisions map[string]uint64
	backwards []string
}

func (m *mirror) saw(o any) {
	meta := o.(metav1.Object)
	rev, err := strconv.ParseUint(meta.GetResourceVersion(), 10, 64)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || rev < m.revisions[meta.GetName()] {
		m.backwards = append(m.backwards, fmt.Sprintf("%s: %d after %d", meta.GetName(), rev, m.revisions[meta.GetName()]))
	}
	m.revisions[meta.GetName()] = rev
}

// has reports whether the mirror is the state at the origin.
func (m *mirror) has(want map[string]uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, rev := range want {
		if m.revisions[name] != rev {
			return false
		}
	}
	return true
}

// wentBack describes the objects that were older than those before them.
func (m *mirror) wentBack() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.backwards)
}

// Stock informers over replicas that are killed, and whose connections are cut, end with
// the origin's state, and never get an older state of an object after a newer one.
func TestReplicas_InformersLoseNothing(t *testing.T) {
	const replicas, informers, objects, writes, kills = 3, 40, 20, 2000, 6
	origin := newServer(t)
	origin.fill(t, objects)
	f := &fleet{t: t, origin: origin.cfg.Host}
	for range replicas {
		f.all = append(f.all, f.start())
	}
	defer func() {
		for _, r := range f.all {
			r.close(t)
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mirrors []*mirror
	var factories []dynamicinformer.DynamicSharedInformerFactory
	for range informers {
		cfg := *origin.cfg
		cfg.Host = "http://replicas.localhost"
		cfg.Transport = &http.Transport{DialContext: f.dial, MaxIdleConnsPerHost: -1}
		client, err := dynamic.NewForConfig(&cfg)
		require.NoError(t, err)
		factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		m := &mirror{revisions: map[string]uint64{}}
		_, err = factory.ForResource(widgetResource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: m.saw, UpdateFunc: func(_, now any) { m.saw(now) },
		})
		require.NoError(t, err)
		factory.Start(ctx.Done())
		mirrors, factories = append(mirrors, m), append(factories, factory)
	}
	for _, factory := range factories {
		for what, synced := range factory.WaitForCacheSync(ctx.Done()) {
			require.True(t, synced, "%v", what)
		}
	}
	for i := range writes {
		origin.resize(t, fmt.Sprintf("w%04d", i%objects), i+1000)
		if i%(writes/kills) == writes/kills/2 {
			f.replace(i / (writes / kills) % replicas)
		}
	}
	want := map[string]uint64{}
	list, err := origin.widgets.Engine().List(ctx, engine.ListOptions{})
	require.NoError(t, err)
	for _, o := range list.Items {
		want[o.Value.Name] = uint64(o.Revision)
	}
	for _, m := range mirrors {
		require.Eventually(t, func() bool { return m.has(want) }, patience, 10*time.Millisecond)
		require.Empty(t, m.wentBack())
	}
	stop()
	for _, factory := range factories {
		factory.Shutdown()
	}
}
