package interop_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// tree is replicas of one origin, whose objects are in a file, with a proxy before each
// server:
//
//	clients ──▶ proxy ──▶ replica ──▶ proxy ──▶ origin ──▶ file
//	                 (several)                    ▲
//	                                            writer ──▶ ledger
type tree struct {
	t        *testing.T
	file     string
	origin   *node
	replicas []*node

	// writing is held during a write, and while the origin does not run.
	writing sync.Mutex
	ledger  judge.Ledger
	exists  map[int]bool // by the numbers of the objects
	newest  engine.Revision
	written int
}

// node is a server that can be killed and started again, at the address of its proxy.
type node struct {
	*proxy
	t       *testing.T
	store   *registry.Store[Widget]
	handler *serve.Server
	http    *httptest.Server
	// below are closed after the store.
	below []interface{ Close() error }
}

func widgetConfig() registry.Config[Widget] {
	return registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Status: true}}
}

// newTree starts an origin with some objects, and replicas of it.
func newTree(t *testing.T, replicas, objects int) *tree {
	x := &tree{t: t, file: filepath.Join(t.TempDir(), "widgets"), origin: &node{t: t, proxy: newProxy(t)}, exists: map[int]bool{}}
	x.startOrigin()
	t.Cleanup(func() { x.origin.stop() })
	for i := range objects {
		require.NoError(t, x.create(i))
	}
	for range replicas {
		n := &node{t: t, proxy: newProxy(t)}
		x.replicas = append(x.replicas, n)
		x.startReplica(n)
		t.Cleanup(n.stop)
	}
	return x
}

func (x *tree) startOrigin() {
	file, err := bolt.Open(x.file, bolt.Options{LockTimeout: time.Minute})
	require.NoError(x.t, err)
	cfg := widgetConfig()
	objects, err := bolt.New(file, "widgets", bolt.Config{Schema: registry.Schema(cfg)})
	require.NoError(x.t, err)
	cfg.Engine.Backend = objects
	x.origin.start(cfg, objects, file)
}

func (x *tree) startReplica(n *node) {
	cfg := widgetConfig()
	format, err := registry.FormatOf(cfg)
	require.NoError(x.t, err)
	conns := &pool{Transport: http.Transport{DialContext: x.origin.dial}}
	there, err := remote.New(format, remote.Config{URL: "http://origin.localhost", Client: &http.Client{Transport: conns}, MinPause: 50 * time.Millisecond, MaxPause: 2 * time.Second})
	require.NoError(x.t, err)
	cfg.Engine.Backend = there
	n.start(cfg, there, conns)
}

// pool is a replica's connections to the origin.
type pool struct{ http.Transport }

// Close closes the connections that are idle, as all are when the replica is closed.
func (p *pool) Close() error {
	p.CloseIdleConnections()
	return nil
}

// start serves the kind that cfg describes.
func (n *node) start(cfg registry.Config[Widget], below ...interface{ Close() error }) {
	var err error
	n.store, err = registry.New(cfg)
	require.NoError(n.t, err)
	n.handler, err = serve.New(serve.Config{
		Resources: []serve.Provider{n.store},
		Limits:    serve.Limits{WatchesPerUser: 10_000, ShutdownDelay: 1, DrainWatches: 200 * time.Millisecond},
	})
	require.NoError(n.t, err)
	n.http, n.below = httptest.NewServer(n.handler), below
	n.forwardTo(n.http.Listener.Addr().String())
}

// stop kills the server, which cuts its connections anywhere.
func (n *node) stop() {
	n.refuse()
	n.http.CloseClientConnections()
	n.http.Close()
	require.NoError(n.t, n.store.Close())
	for _, b := range n.below {
		require.NoError(n.t, b.Close())
	}
}

// drain shuts the server down as SIGTERM does, so that the server ends its watches
// itself.
func (n *node) drain(ctx context.Context) {
	n.startDraining()
	require.NoError(n.t, n.handler.Shutdown(ctx))
	n.stop()
}

func widgetName(i int) string { return fmt.Sprintf("w%04d", i) }
func widgetKey(i int) string  { return "default/" + widgetName(i) }

// recordWrite records a write that was acknowledged. The caller holds writing, or is alone.
func (x *tree) recordWrite(key string, rev engine.Revision, deleted bool) {
	x.ledger.Note(judge.Entry{Revision: rev, Key: key, Deleted: deleted})
	x.newest = rev
	x.written++
}

// create creates an object. The caller holds writing, or is alone.
func (x *tree) create(i int) error {
	w := Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: widgetName(i)}}
	o, err := x.origin.store.Create(x.t.Context(), w, registry.WriteOptions{})
	if err == nil {
		x.exists[i] = true
		x.recordWrite(o.Key, o.Revision, false)
	}
	return err
}

// write changes, deletes or creates one of the objects.
func (x *tree) write(r *rand.Rand, objects int) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	i := r.IntN(objects)
	switch {
	case !x.exists[i]:
		return x.create(i)
	case r.IntN(10) == 0:
		return x.remove(i)
	}
	size, color := x.written, strings.Repeat("x", r.IntN(300))
	o, _, err := x.origin.store.Update(x.t.Context(), widgetKey(i), func(old *engine.Object[Widget]) (Widget, error) {
		w := old.Value
		w.Spec.Size, w.Spec.Color = size, color
		return w, nil
	}, registry.WriteOptions{})
	if err == nil {
		x.recordWrite(o.Key, o.Revision, false)
	}
	return err
}

// remove deletes an object. The caller holds writing.
func (x *tree) remove(i int) error {
	o, _, err := x.origin.store.Delete(x.t.Context(), widgetKey(i), registry.DeleteOptions{})
	if err == nil {
		x.exists[i] = false
		x.recordWrite(o.Key, o.Revision, true)
	}
	return err
}
