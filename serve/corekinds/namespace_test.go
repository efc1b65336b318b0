package corekinds_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/corekinds"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/memory"
)

const (
	namespaces = "/api/v1/namespaces"
	inShop     = "/api/v1/namespaces/shop"
	shopsOwn   = "/apis/example.com/v1/namespaces/shop/widgets"
)

func memoryOf(schema store.Schema) (backend.Backend, error) {
	return memory.New(schema, memory.Options{})
}

// fill makes the namespace shop with objects of several kinds in it, and one that is elsewhere.
func (c *cluster) fill() {
	c.t.Helper()
	c.must(201, "POST", namespaces, `{"metadata":{"name":"shop"}}`)
	c.must(201, "POST", inShop+"/configmaps", `{"metadata":{"name":"a"}}`)
	c.must(201, "POST", inShop+"/secrets", `{"metadata":{"name":"a"}}`)
	c.must(201, "POST", inShop+"/events", `{"metadata":{"name":"a"},"involvedObject":{"namespace":"shop"}}`)
	c.must(201, "POST", shopsOwn, `{"metadata":{"name":"a"}}`)
	c.must(201, "POST", "/apis/example.com/v1/namespaces/shopping/widgets", `{"metadata":{"name":"a"}}`)
}

func TestNamespace_IsAsInKubernetes(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	require.Equal(t, []string{"default", "kube-public", "kube-system"}, c.items(namespaces))
	made := c.must(201, "POST", namespaces, `{"metadata":{"name":"shop","labels":{"a":"b"}},"spec":{"finalizers":["example.com/x"]},"status":{"phase":"Terminating"}}`)
	require.Equal(t, map[string]any{"a": "b", "kubernetes.io/metadata.name": "shop"}, at(made, "metadata.labels"))
	require.Equal(t, []any{"example.com/x", "kubernetes"}, at(made, "spec.finalizers"))
	require.Equal(t, "Active", at(made, "status.phase"))
	require.Nil(t, at(made, "metadata.finalizers"))

	generated := c.must(201, "POST", namespaces, `{"metadata":{"generateName":"shop-"}}`)
	require.Equal(t, at(generated, "metadata.name"), at(generated, "metadata.labels").(map[string]any)["kubernetes.io/metadata.name"])

	now := c.must(200, "PATCH", inShop, `{"metadata":{"labels":null},"spec":{"finalizers":null},"status":{"phase":"Terminating"}}`, "Content-Type", merge)
	require.Equal(t, []any{"example.com/x", "kubernetes"}, at(now, "spec.finalizers"))
	require.Equal(t, map[string]any{"kubernetes.io/metadata.name": "shop"}, at(now, "metadata.labels"))
	require.Equal(t, "Active", at(now, "status.phase"))
	require.Contains(t, c.refused("PATCH", inShop+"/status", `{"status":{"phase":"Terminating"}}`, "Content-Type", merge), "may only be 'Active'")
	now = c.must(200, "PATCH", inShop+"/status", `{"status":{"conditions":[{"type":"Mine","status":"True"}]}}`, "Content-Type", strategic)
	require.Len(t, at(now, "status.conditions"), 1)
	now = c.must(200, "PUT", inShop+"/status", `{"metadata":{"name":"shop"}}`)
	require.Equal(t, map[string]any{"phase": "Active"}, now["status"], "the phase is a default")

	require.Contains(t, c.refused("POST", namespaces, `{"metadata":{"name":"a.b"}}`), "metadata.name: Invalid value")
	require.Contains(t, c.refused("POST", namespaces, `{"metadata":{"name":"a"},"spec":{"finalizers":["mine"]}}`), "neither a standard finalizer name")
	names, cells := c.rows(namespaces + "?fieldSelector=metadata.name%3Dshop,status.phase%3DActive")
	require.Equal(t, []string{"Name", "Status", "Age"}, names)
	require.Equal(t, []any{"shop", "Active"}, cells[0][:2])
	c.must(405, "DELETE", namespaces, "")
}

func TestNamespace_SomeCannotBeDeleted(t *testing.T) {
	c := newCluster(t, corekinds.Config{})
	for _, name := range []string{"default", "kube-public", "kube-system"} {
		told := c.must(403, "DELETE", namespaces+"/"+name, "")["message"]
		require.Equal(t, `namespaces "`+name+`" is forbidden: this namespace may not be deleted`, told)
	}
}

// With a namespace all that is in it goes, of every kind, and nothing else.
func TestNamespace_IsDeletedWithWhatIsInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, corekinds.Config{})
		c.fill()
		marked := c.must(200, "DELETE", inShop, "")
		require.Equal(t, "Terminating", at(marked, "status.phase"))
		require.NotEmpty(t, at(marked, "metadata.deletionTimestamp"))
		require.Nil(t, at(marked, "metadata.deletionGracePeriodSeconds"))
		synctest.Wait()
		told := c.must(403, "POST", inShop+"/configmaps", `{"metadata":{"name":"b"}}`)
		require.Equal(t, `configmaps "b" is forbidden: unable to create new content in namespace shop because it is being terminated`, told["message"])
		cause := map[string]any{"reason": "NamespaceTerminating", "message": "namespace shop is being terminated", "field": "metadata.namespace"}
		require.Equal(t, []any{cause}, at(told, "details.causes"), "by which controllers know that they are to give up")
		c.must(403, "POST", shopsOwn, `{"metadata":{"name":"b"}}`)
		c.must(404, "GET", shopsOwn+"/a", "")
		c.must(200, "GET", inShop, "")
		require.Equal(t, "Terminating", at(c.must(200, "PUT", inShop, `{"metadata":{"name":"shop"}}`), "status.phase"))
		require.Contains(t, c.refused("PUT", inShop+"/status", `{"metadata":{"name":"shop"}}`), "may only be 'Terminating'")
		again := c.must(200, "DELETE", inShop, "")
		require.Equal(t, at(marked, "metadata.deletionTimestamp"), at(again, "metadata.deletionTimestamp"))
		require.Nil(t, at(again, "metadata.deletionGracePeriodSeconds"))

		time.Sleep(4 * time.Second)
		c.must(404, "GET", inShop, "")
		for _, path := range []string{"/configmaps", "/secrets", "/events"} {
			require.Empty(t, c.items(inShop+path))
		}
		require.Equal(t, []string{"a"}, c.items("/apis/example.com/v1/widgets"), "that of another namespace")
		c.must(201, "POST", namespaces, `{"metadata":{"name":"shop"}}`)
		c.must(201, "POST", shopsOwn, `{"metadata":{"name":"b"}}`)
	})
}

// A namespace stays for two seconds, though the time of its deletion has whole seconds.
func TestNamespace_StaysForWritesThatHavePassedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins with a second
		c := newCluster(t, corekinds.Config{})
		time.Sleep(900 * time.Millisecond)
		for range 2 {
			c.must(201, "POST", namespaces, `{"metadata":{"name":"shop"}}`)
			c.must(200, "DELETE", inShop, "")
			time.Sleep(1900 * time.Millisecond)
			c.must(200, "GET", inShop, "")
			time.Sleep(1100 * time.Millisecond)
			c.must(404, "GET", inShop, "")
		}
	})
}

// What an object owns goes with the namespace as well, so that none waits for the garbage collector.
func TestNamespace_WaitsForNoGarbageCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, corekinds.Config{GarbageCollection: true})
		c.must(201, "POST", namespaces, `{"metadata":{"name":"shop"}}`)
		c.must(201, "POST", inShop+"/configmaps", `{"metadata":{"name":"a"}}`)
		c.must(200, "DELETE", inShop+"/configmaps/a?propagationPolicy=Foreground", "")
		c.must(200, "DELETE", inShop, "")
		time.Sleep(4 * time.Second)
		c.must(404, "GET", inShop, "")
	})
}

// hooked is storage that calls a function before an object is deleted.
type hooked struct {
	backend.Backend
	before func()
}

func (h *hooked) Remove(ctx context.Context, prev *store.Object) (*store.Object, error) {
	h.before()
	return h.Backend.Remove(ctx, prev)
}

// A namespace that is let go while it is emptied, as another server may do it, takes nothing with it of the next one
// of its name.
func TestNamespace_TakesNothingOfTheNextOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cluster
		var once sync.Once
		next := func() {
			c.do("PUT", inShop+"/finalize", `{"metadata":{"name":"shop"}}`)
			c.do("POST", namespaces, `{"metadata":{"name":"shop"}}`)
			for range 1000 {
				if c.do("POST", shopsOwn, `{"metadata":{"name":"new"}}`).Code == 201 {
					break
				}
				time.Sleep(time.Millisecond) // the admitter reads the cache
			}
		}
		c = newCluster(t, corekinds.Config{Storage: func(_ context.Context, kind string, schema store.Schema) (backend.Backend, error) {
			objects, err := memoryOf(schema)
			if kind == "configmaps" {
				return &hooked{objects, func() { once.Do(next) }}, err
			}
			return objects, err
		}})
		c.fill()
		c.must(200, "DELETE", inShop, "")
		time.Sleep(4 * time.Second)
		require.Equal(t, "Active", at(c.must(200, "GET", inShop, ""), "status.phase"))
		require.Contains(t, c.items(shopsOwn), "new")
	})
}

// unreachable is storage that cannot be asked.
type unreachable struct{ backend.Backend }

func (unreachable) Get(context.Context, string) (*store.Object, error) {
	return nil, backend.ErrUnavailable
}

func (unreachable) List(context.Context, backend.ListOptions) (*backend.List, error) {
	return nil, backend.ErrUnavailable
}

// That the namespaces cannot be read is no refusal, after which clients would give up.
func TestAdmit_NeedsTheNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds, err := corekinds.New(t.Context(), corekinds.Config{Storage: func(_ context.Context, kind string, schema store.Schema) (backend.Backend, error) {
			objects, err := memoryOf(schema)
			if kind == "namespaces" {
				return unreachable{objects}, err
			}
			return objects, err
		}})
		require.NoError(t, err)
		defer func() { require.NoError(t, kinds.Close()) }()
		_, err = kinds.ConfigMaps().Create(t.Context(), core.ConfigMap{ObjectMeta: named("shop", "a")}, registryWrite)
		require.True(t, apierrors.IsServiceUnavailable(err), err)
		require.ErrorContains(t, err, "the namespaces cannot be read: storage is unavailable")
	})
}

// Objects with finalizers keep their namespace, whose status says how many are left of each kind, and with each finalizer.
func TestNamespace_FinalizersOfObjectsKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, corekinds.Config{})
		c.fill()
		c.must(201, "POST", shopsOwn, `{"metadata":{"name":"kept","finalizers":["example.com/x"]}}`)
		c.must(201, "POST", inShop+"/configmaps", `{"metadata":{"name":"kept","finalizers":["example.com/y","example.com/x"]}}`)
		c.must(200, "DELETE", inShop, "")
		time.Sleep(time.Minute)
		now := c.must(200, "GET", inShop, "")
		conditions := at(now, "status.conditions").([]any)
		require.Len(t, conditions, 2)
		require.Equal(t, "NamespaceContentRemaining True Some resources are remaining: "+
			"configmaps has 1 resource instances, widgets.example.com has 1 resource instances", told(conditions[0]))
		require.Equal(t, "NamespaceFinalizersRemaining True Some content in the namespace has finalizers remaining: "+
			"example.com/x in 2 resource instances, example.com/y in 1 resource instances", told(conditions[1]))
		revision := at(now, "metadata.resourceVersion")
		time.Sleep(time.Minute)
		require.Equal(t, revision, at(c.must(200, "GET", inShop, ""), "metadata.resourceVersion"), "nothing has changed")

		c.must(200, "PATCH", inShop+"/configmaps/kept", `{"metadata":{"finalizers":null}}`, "Content-Type", merge)
		time.Sleep(time.Minute)
		conditions = at(c.must(200, "GET", inShop, ""), "status.conditions").([]any)
		require.Equal(t, "NamespaceContentRemaining True Some resources are remaining: widgets.example.com has 1 resource instances", told(conditions[0]))
		require.Equal(t, "NamespaceFinalizersRemaining True Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances", told(conditions[1]))

		c.must(200, "PATCH", shopsOwn+"/kept", `{"metadata":{"finalizers":null}}`, "Content-Type", merge)
		time.Sleep(4 * time.Second)
		c.must(404, "GET", inShop, "")
	})
}

// A namespace that stays is looked at less and less often, but soon after an object in it may have gone.
func TestNamespace_ThatStaysIsLookedAtSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		count := registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
			if a.Operation == registry.OperationDelete {
				looks.Add(1)
			}
			return nil
		})
		c := newCluster(t, corekinds.Config{}, count)
		c.must(201, "POST", namespaces, `{"metadata":{"name":"shop"}}`)
		for _, name := range []string{"a", "b", "c"} {
			c.must(201, "POST", shopsOwn, `{"metadata":{"name":"`+name+`","finalizers":["example.com/x"]}}`)
		}
		c.must(200, "DELETE", inShop, "")
		time.Sleep(time.Hour)
		require.InDelta(t, 3*125, looks.Load(), 3*10, "each object was to be deleted every half minute")

		before := looks.Load()
		c.must(200, "PATCH", shopsOwn+"/a", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", merge)
		c.must(200, "PATCH", shopsOwn+"/a?dryRun=All", `{"metadata":{"finalizers":null}}`, "Content-Type", merge)
		time.Sleep(20 * time.Second)
		require.LessOrEqual(t, looks.Load(), before+3, "nothing has gone")
		c.must(200, "PATCH", shopsOwn+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type", merge)
		time.Sleep(2 * time.Second)
		require.GreaterOrEqual(t, looks.Load(), before+2)

		// What no admitter is told of is found by the next look.
		for _, key := range []string{"shop/b", "shop/c"} {
			_, err := c.widgets.Engine().Delete(t.Context(), key, engine.DeleteOptions{})
			require.NoError(t, err)
		}
		time.Sleep(31 * time.Second)
		c.must(404, "GET", inShop, "")
	})
}

func told(condition any) string {
	c := condition.(map[string]any)
	return c["type"].(string) + " " + c["status"].(string) + " " + c["message"].(string)
}

// What cannot be deleted is tried again, and keeps no other objects.
func TestNamespace_RefusalsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mayGo atomic.Bool
		failures := make(chan error, 100)
		guard := registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
			if a.Operation == registry.OperationDelete && !mayGo.Load() {
				return errors.New("not now")
			}
			return nil
		})
		c := newCluster(t, corekinds.Config{OnError: func(err error) { failures <- err }}, guard)
		c.fill()
		c.must(200, "DELETE", inShop, "")
		time.Sleep(time.Minute)
		require.ErrorContains(t, <-failures, "widgets.example.com: not now")
		require.Empty(t, c.items(inShop+"/secrets"))
		conditions := at(c.must(200, "GET", inShop, ""), "status.conditions").([]any)
		require.Equal(t, "NamespaceDeletionContentFailure True widgets.example.com: not now", told(conditions[0]))
		mayGo.Store(true)
		time.Sleep(time.Minute)
		c.must(404, "GET", inShop, "")
	})
}

// A kind that is going, or is replaced, is no failure: it is looked at again.
func TestNamespace_KindsMayGoMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, corekinds.Config{})
		c.fill()
		require.NoError(t, c.widgets.Close())
		c.must(200, "DELETE", inShop, "")
		time.Sleep(time.Minute)
		c.must(200, "GET", inShop, "")
		c.server.Remove(c.widgets)
		time.Sleep(4 * time.Second)
		c.must(404, "GET", inShop, "")
	})
}

// Finalizers of others, in either place, keep a namespace that is empty.
func TestNamespace_OtherFinalizersKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, corekinds.Config{})
		c.must(201, "POST", namespaces, `{"metadata":{"name":"shop","finalizers":["example.com/x"]}}`)
		c.must(200, "DELETE", inShop, "")
		time.Sleep(time.Minute)
		now := c.must(200, "GET", inShop, "")
		require.Nil(t, at(now, "spec.finalizers"))
		c.must(200, "PATCH", inShop, `{"metadata":{"finalizers":null}}`, "Content-Type", merge)
		c.must(404, "GET", inShop, "")
	})
}

// Clients have finalizers in the spec, too, and take them out, or that of a namespace that is stuck.
func TestNamespace_ClientsFinalize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, corekinds.Config{})
		c.must(201, "POST", namespaces, `{"metadata":{"name":"shop"},"spec":{"finalizers":["example.com/x"]}}`)
		c.must(201, "POST", shopsOwn, `{"metadata":{"name":"kept","finalizers":["example.com/x"]}}`)
		now := c.must(200, "PUT", inShop+"/finalize", `{"metadata":{"name":"shop"},"spec":{"finalizers":["kubernetes","example.com/x","example.com/y"]},"status":{"phase":"Terminating"}}`)
		require.Equal(t, []any{"kubernetes", "example.com/x", "example.com/y"}, at(now, "spec.finalizers"))
		require.Equal(t, "Active", at(now, "status.phase"))
		owner := at(now, "metadata.managedFields").([]any)
		require.Equal(t, "finalize", owner[len(owner)-1].(map[string]any)["subresource"])
		c.must(422, "PUT", inShop+"/finalize", `{"metadata":{"name":"shop"},"spec":{"finalizers":["mine"]}}`)
		c.must(405, "GET", inShop+"/finalize", "")
		c.must(404, "PUT", namespaces+"/none/finalize", `{"metadata":{"name":"none"}}`)

		c.must(200, "DELETE", inShop, "")
		time.Sleep(time.Minute)
		c.must(200, "PUT", inShop+"/finalize", `{"metadata":{"name":"shop"},"spec":{"finalizers":["example.com/y"]}}`)
		c.must(200, "GET", inShop, "")
		c.must(200, "PUT", inShop+"/finalize", `{"metadata":{"name":"shop"}}`)
		c.must(404, "GET", inShop, "")
		require.Equal(t, []string{"kept"}, c.items(shopsOwn), "it was let go without it")
	})
}

// A program that could not start the kinds may try it again.
func TestStart_MayBeTriedAgain(t *testing.T) {
	kinds, err := corekinds.New(t.Context(), corekinds.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kinds.Close()) })
	server, err := serve.New(serve.Config{Resources: []serve.Provider{kinds}})
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, kinds.Start(ended, server), context.Canceled)
	require.NoError(t, kinds.Start(t.Context(), server))
	require.ErrorIs(t, kinds.Start(t.Context(), server), corekinds.ErrStarted)
	require.NoError(t, kinds.Close())
	require.ErrorIs(t, kinds.Start(t.Context(), server), engine.ErrEngineClosed)
}

// A deletion that a restart interrupts goes on.
func TestNamespace_DeletionGoesOnAfterARestart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "objects.db")
	file, err := bolt.Open(name, bolt.Options{})
	require.NoError(t, err)
	storage := func(_ context.Context, kind string, schema store.Schema) (backend.Backend, error) {
		return bolt.New(file, kind, bolt.Config{Schema: schema})
	}
	kinds, err := corekinds.New(t.Context(), corekinds.Config{Storage: storage})
	require.NoError(t, err)
	for _, write := range []func() error{
		func() error {
			_, err := kinds.Namespaces().Create(t.Context(), core.Namespace{ObjectMeta: named("", "shop")}, registryWrite)
			return err
		},
		func() error {
			_, err := kinds.Secrets().Create(t.Context(), core.Secret{ObjectMeta: named("shop", "a")}, registryWrite)
			return err
		},
		func() error {
			_, gone, err := kinds.Namespaces().Delete(t.Context(), "shop", registry.DeleteOptions{})
			require.False(t, gone, "it was not started")
			return err
		},
		kinds.Close, file.Close,
	} {
		require.NoError(t, write())
	}

	file, err = bolt.Open(name, bolt.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	c := newCluster(t, corekinds.Config{Storage: storage})
	w, err := c.kinds.Namespaces().Engine().Watch(t.Context(), engine.WatchOptions{Key: "shop", InitialState: true})
	require.NoError(t, err)
	defer w.Stop()
	for ev := range w.Events() {
		if ev.Type == engine.Deleted {
			break
		}
	}
	require.Empty(t, c.items(inShop+"/secrets"))
	require.True(t, slices.Contains(c.items(namespaces), "default"))
	require.ErrorIs(t, c.kinds.Start(t.Context(), c.server), corekinds.ErrStarted)
}
