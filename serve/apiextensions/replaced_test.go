package apiextensions_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// withColumn edits the version of a spec so that its tables have a column of this name.
func withColumn(name string) func(spec map[string]any) {
	return ofVersion(func(v map[string]any) {
		v["additionalPrinterColumns"] = []any{map[string]any{"name": name, "type": "integer", "jsonPath": ".spec.size"}}
	})
}

// hasColumn reports whether the table at a path has a column.
func (c *cluster) hasColumn(path, name string) bool {
	columns, _, _ := unstructured.NestedSlice(c.do("GET", path, "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").object().Object, "columnDefinitions")
	for _, column := range columns {
		if column.(map[string]any)["name"] == name {
			return true
		}
	}
	return false
}

// However often a definition changes, no request for its objects fails.
func TestChange_NoRequestFails(t *testing.T) {
	c := newCluster(t, apiextensions.Config{Configure: patiently})
	c.define(definition("widgets", "Widget"))
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for client := range 4 {
		clients.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("w-%d-%d", client, i)
				for _, a := range []answer{
					c.do("POST", widgetsPath, `{"metadata":{"name":"`+name+`"}}`), c.do("GET", widgetsPath+"/"+name, ""), c.do("GET", widgetsPath, ""),
					c.do("PATCH", widgetsPath+"/"+name, `{"spec":{"size":2}}`, "Content-Type", "application/merge-patch+json"), c.do("DELETE", widgetsPath+"/"+name, ""),
				} {
					if a.Code >= 300 {
						t.Errorf("%s: %d %s", name, a.Code, a.Body)
						return
					}
				}
			}
		})
	}
	for i := range 20 {
		name := fmt.Sprint("Column", i)
		c.put(200, definition("widgets", "Widget", withColumn(name)))
		require.Eventually(t, func() bool { return c.hasColumn(widgetsPath, name) }, time.Minute, time.Millisecond)
	}
	close(stop)
	clients.Wait()
}

// heldWrite is a write of a widget that waits in an admitter, until proceed is closed.
type heldWrite struct {
	proceed chan struct{}
	code    chan int
}

// holdWrite returns a cluster of widgets with a write under way, and the host of its engines.
func holdWrite(t *testing.T) (*cluster, *heldWrite, *engine.Host) {
	t.Helper()
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	w := &heldWrite{proceed: make(chan struct{}), code: make(chan int, 1)}
	c := newCluster(t, apiextensions.Config{Host: host, Configure: func(cfg *registry.Config[unstructured.Unstructured]) {
		cfg.Admit = append(cfg.Admit, registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
			if a.Operation == registry.OperationCreate {
				<-w.proceed
			}
			return nil
		}))
	}})
	c.define(definition("widgets", "Widget"))
	go func() { w.code <- c.do("POST", widgetsPath, `{"metadata":{"name":"w"}}`).Code }()
	synctest.Wait()
	return c, w, host
}

// A write that has found its kind before the definition changed is done in full, while the new kind serves.
func TestChange_FinishesTheWritesOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, write, host := holdWrite(t)
		before := host.Actors()
		c.update(200, definition("widgets", "Widget", withColumn("Size")))
		require.True(t, c.hasColumn(widgetsPath, "Size"))
		require.Empty(t, write.code)
		require.Greater(t, host.Actors(), before, "the old kind is open")
		close(write.proceed)
		require.Equal(t, 201, <-write.code)
		synctest.Wait()
		require.Equal(t, before, host.Actors(), "it has closed")
		c.must(200, "GET", widgetsPath+"/w", "")
	})
}

// A write that takes too long does not keep the old kind open.
func TestChange_WaitsForTheWritesOfBeforeOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, write, host := holdWrite(t)
		before := host.Actors()
		c.update(200, definition("widgets", "Widget", withColumn("Size")))
		time.Sleep(time.Minute + time.Second) // of the bubble
		synctest.Wait()
		require.Equal(t, before, host.Actors())
		close(write.proceed)
		require.Equal(t, 429, <-write.code)
		c.must(404, "GET", widgetsPath+"/w", "")
	})
}

// Close does not wait for it, either.
func TestClose_WaitsForNoWriteOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, write, _ := holdWrite(t)
		c.update(200, definition("widgets", "Widget", withColumn("Size")))
		began := time.Now()
		require.NoError(t, c.definitions.Close())
		require.Zero(t, time.Since(began), "of the bubble")
		close(write.proceed)
		require.Equal(t, 429, <-write.code)
	})
}

// heldReads is storage whose reads of one object wait until proceed is closed.
type heldReads struct {
	backend.Backend
	proceed chan struct{}
}

func (h heldReads) Get(ctx context.Context, key string) (*store.Object, error) {
	<-h.proceed
	return h.Backend.Get(ctx, key)
}

func (h heldReads) Unwrap() backend.Backend { return h.Backend }

// A read that has found its kind before the definition was deleted is answered, unless it takes too long:
// other definitions wait for it.
func TestDeletion_WaitsForReadsOnlySoLong(t *testing.T) {
	for _, held := range []struct {
		takes time.Duration
		codes []int
	}{{time.Second, []int{404}}, {20 * time.Second, []int{404, 429}}} { // the storage outlasts the kind
		t.Run(held.takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				proceed := make(chan struct{})
				c := newCluster(t, newLasting(t).config(func(name string, objects backend.Backend) backend.Backend {
					if name == widgetsName {
						return heldReads{objects, proceed}
					}
					return objects
				}))
				c.define(definition("widgets", "Widget"))
				code := make(chan int, 1)
				go func() { code <- c.do("GET", widgetsPath+"/w", "").Code }()
				synctest.Wait()
				began := time.Now()
				time.AfterFunc(held.takes, func() { close(proceed) })
				c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
				c.await(widgetsName, "gone")
				require.Equal(t, min(held.takes, 5*time.Second), time.Since(began), "of the bubble")
				require.Contains(t, held.codes, <-code)
			})
		})
	}
}

// slowLists is storage whose lists take a while, once takes is not zero.
type slowLists struct {
	backend.Backend
	takes *atomic.Int64
}

func (s slowLists) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	select {
	case <-time.After(time.Duration(s.takes.Load())):
		return s.Backend.List(ctx, opts)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s slowLists) Traits() backend.Traits {
	traits := s.Backend.Traits()
	traits.Blocks = true
	return traits
}

func (s slowLists) Unwrap() backend.Backend { return s.Backend }

// The old kind serves until the new one has read its objects, but no longer than twenty seconds. One that is not
// ready itself gives way at once.
func TestChange_TheOldKindServesUntilTheNewOneIsReady(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, time.Minute} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lists atomic.Int64
				c := newCluster(t, newLasting(t).config(func(name string, objects backend.Backend) backend.Backend {
					if name == widgetsName {
						return slowLists{objects, &lists}
					}
					return objects
				}))
				c.define(definition("widgets", "Widget"))
				c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
				c.must(200, "GET", widgetsPath, "") // the old kind is ready
				lists.Store(int64(takes))
				began := time.Now()
				c.update(200, definition("widgets", "Widget", withColumn("Size")))
				c.must(200, "GET", widgetsPath, "")
				require.False(t, c.hasColumn(widgetsPath, "Size"))
				require.Zero(t, time.Since(began), "of the bubble")
				time.Sleep(min(takes, 20*time.Second))
				synctest.Wait()
				if takes < 20*time.Second {
					require.True(t, c.hasColumn(widgetsPath, "Size"))
					return
				}
				c.must(429, "GET", widgetsPath, "")
				began = time.Now()
				c.update(200, definition("widgets", "Widget", withColumn("Width")))
				require.True(t, c.hasColumn(widgetsPath+"/w", "Width"), "which needs no list")
				require.Zero(t, time.Since(began), "of the bubble")
			})
		})
	}
}
