package apiextensions_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// The objects of a definition that cannot be served any more go with it.
func TestDeletion_TakesTheObjectsOfADefinitionThatIsNotServed(t *testing.T) {
	for scope, path := range map[string]string{"Namespaced": widgetsPath, "Cluster": "/apis/example.com/v1/widgets"} {
		t.Run(scope, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage := newLasting(t)
				widgets := definition("widgets", "Widget", func(spec map[string]any) { spec["scope"] = scope })
				c := newCluster(t, storage.config())
				c.define(widgets)
				c.must(201, "POST", path, `{"metadata":{"name":"w"}}`)
				c.must(201, "POST", path, `{"metadata":{"name":"held","finalizers":["example.com/hold"]}}`)
				require.NoError(t, c.definitions.Close())

				storage.changeUnchecked(t, widgetsName, withoutSchema)
				c = newCluster(t, storage.config())
				require.Equal(t, []string{"NamesAccepted=False", "Established=False"}, conditions(c.get(widgetsName)))
				c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
				c.await(widgetsName, "Terminating=True")
				c.must(200, "PATCH", definitionsPath+"/"+widgetsName, `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, "Content-Type", "application/merge-patch+json")
				synctest.Wait() // its owner can let the object go
				c.must(404, "GET", path+"/w", "")
				c.must(200, "PATCH", path+"/held", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
				c.await(widgetsName, "gone")
				c.define(widgets)
				require.Contains(t, c.must(200, "GET", path, "").Body.String(), `"items":[]`)
			})
		})
	}
}

func TestDeletion_DiscardsTheHistoryOfADefinitionThatIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		c := newCluster(t, storage.config())
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
		require.NoError(t, c.definitions.Close())

		storage.changeUnchecked(t, widgetsName, withoutSchema)
		c = newCluster(t, storage.config())
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
		last, err := storage.all[widgetsName].Revision(t.Context())
		require.NoError(t, err)
		oldest, err := storage.all[widgetsName].Compacted(t.Context())
		require.NoError(t, err)
		require.Equal(t, last, oldest)
	})
}

// What has the name of a definition that is deleted may be a kind of the program: its objects stay.
func TestDeletion_LeavesTheObjectsOfAKindOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		c := newCluster(t, storage.config())
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
		require.NoError(t, c.definitions.Close())

		cfg := registry.Config[unstructured.Unstructured]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}}
		var err error
		cfg.Engine.Backend, err = storage.open(widgetsName, registry.Schema(cfg))
		require.NoError(t, err)
		own, err := registry.New(cfg)
		require.NoError(t, err)
		defer func() { require.NoError(t, own.Close()) }()
		c = newCluster(t, storage.config(func(name string, objects backend.Backend) backend.Backend {
			if name == widgetsName {
				t.Error("it is the other kind's storage")
			}
			return objects
		}), own)
		require.Equal(t, []string{"NamesAccepted=False", "Established=False"}, conditions(c.get(widgetsName)))
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
		c.must(200, "GET", widgetsPath+"/w", "")
	})
}

// unclosable is storage that cannot be closed.
type unclosable struct{ backend.Backend }

var errUnclosable = errors.New("it cannot be closed")

func (u unclosable) Close() error { return errors.Join(errUnclosable, u.Backend.Close()) }

// Storage that cannot be closed does not keep the definition, whose objects are gone.
func TestDeletion_WhoseStorageCannotBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := make(chan error, 100)
		cfg := newLasting(t).config(func(name string, objects backend.Backend) backend.Backend {
			if name != widgetsName {
				return objects
			}
			return unclosable{objects}
		})
		cfg.OnError = func(err error) { failures <- err }
		c := newCluster(t, cfg)
		c.define(definition("widgets", "Widget"))
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
		time.Sleep(time.Hour) // of the bubble
		require.Len(t, failures, 1)
		require.ErrorIs(t, <-failures, errUnclosable)
	})
}

// useless is storage that cannot be used, which counts how often it is closed.
type useless struct {
	backend.Backend
	typed   bool // otherwise it has values of another type
	compact func()
	closed  *atomic.Int64
}

func (u useless) Traits() backend.Traits {
	t := u.Backend.Traits()
	if !u.typed {
		t.Type = reflect.TypeFor[int]()
	}
	return t
}

func (u useless) Compact(context.Context, store.Revision) error { u.compact(); return nil }

func (u useless) Close() error { u.closed.Add(1); return u.Backend.Close() }

// Storage is opened anew for each attempt to delete the objects, so each closes it, whatever it meets.
func TestDeletion_ClosesStorageThatCannotBeUsed(t *testing.T) {
	for name, bad := range map[string]useless{
		"it has values of another type": {},
		"it panics":                     {typed: true, compact: func() { panic("odd") }},
		"it ends the goroutine":         {typed: true, compact: runtime.Goexit},
	} {
		for _, served := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", served: ", served), func(t *testing.T) { closesUseless(t, bad, served) })
		}
	}
}

func closesUseless(t *testing.T, bad useless, served bool) {
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		c := newCluster(t, storage.config())
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
		require.NoError(t, c.definitions.Close())

		if !served {
			storage.changeUnchecked(t, widgetsName, withoutSchema)
		}
		var opened, closed atomic.Int64
		cfg, failures := storage.config(func(name string, objects backend.Backend) backend.Backend {
			if name != widgetsName {
				return objects
			}
			opened.Add(1)
			of := bad
			of.Backend, of.closed = objects, &closed
			return of
		}), make(chan error, 1000)
		cfg.OnError = func(err error) { failures <- err }
		c = newCluster(t, cfg)
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		for range 3 {
			<-failures
		}
		require.NoError(t, c.definitions.Close())
		require.GreaterOrEqual(t, opened.Load(), int64(3))
		require.Equal(t, opened.Load(), closed.Load())
	})
}

// failingStorage is that of a configuration, but for that of widgets, which fails while broken does.
func failingStorage(cfg apiextensions.Config, broken func() error) apiextensions.Config {
	open := cfg.Storage
	cfg.Storage = func(ctx context.Context, name string, schema store.Schema) (backend.Backend, error) {
		if err := broken(); err != nil && name == widgetsName {
			return nil, err
		}
		return open(ctx, name, schema)
	}
	return cfg
}

// A definition that could not be served for want of storage has no objects, and can be deleted.
func TestDeletion_OfADefinitionThatHasNeverHadStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, failures := errors.New("the disk is broken"), make(chan error, 100)
		cfg := failingStorage(newLasting(t).config(), func() error { return broken })
		cfg.OnError = func(err error) { failures <- err }
		c := newCluster(t, cfg)
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		require.ErrorIs(t, <-failures, broken)
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		time.Sleep(time.Minute) // of the bubble
		c.must(404, "GET", definitionsPath+"/"+widgetsName, "")
	})
}

// Objects that cannot be reached now keep their definition, which says that it is being deleted.
func TestDeletion_WaitsForStorageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		c := newCluster(t, storage.config())
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
		require.NoError(t, c.definitions.Close())

		var broken atomic.Bool
		broken.Store(true)
		cfg := failingStorage(storage.config(), func() error {
			if broken.Load() {
				return errors.New("the disk is broken")
			}
			return nil
		})
		cfg.OnError = func(error) {}
		c = newCluster(t, cfg)
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		time.Sleep(time.Minute) // of the bubble
		require.Contains(t, conditions(c.get(widgetsName)), "Terminating=True")
		broken.Store(false)
		c.await(widgetsName, "gone")
		c.define(definition("widgets", "Widget"))
		c.must(404, "GET", widgetsPath+"/w", "")
	})
}

// A definition that has never been served has no objects: what is in storage is another's.
func TestDeletion_OfADefinitionThatWasNeverServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newLasting(t).config(func(name string, objects backend.Backend) backend.Backend {
			if name == "worlds.example.com" {
				t.Error("it has no objects")
			}
			return objects
		}))
		c.defineRivals()
		c.must(200, "DELETE", definitionsPath+"/worlds.example.com", "")
		c.await("worlds.example.com", "gone")
	})
}
