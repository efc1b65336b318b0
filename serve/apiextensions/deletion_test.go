package apiextensions_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/controller"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func TestDeletion_TakesTheObjectsAndTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		for _, name := range []string{"a", "b"} {
			c.must(201, "POST", widgetsPath, `{"metadata":{"name":"`+name+`"}}`)
		}
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
		c.must(404, "GET", widgetsPath, "")
		require.NotContains(t, c.must(200, "GET", "/apis", "").Body.String(), "example.com")
		c.define(definition("widgets", "Widget"))
		require.Contains(t, c.must(200, "GET", widgetsPath, "").Body.String(), `"items":[]`)
	})
}

func TestDeletion_WaitsForObjectsWithFinalizers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"a","finalizers":["example.com/hold"]}}`)
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"b"}}`)
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "Terminating=True")
		synctest.Wait()
		require.Equal(t, "a", c.must(200, "GET", widgetsPath+"/a", "").object().GetName(), "its owner must be able to let it go")
		c.must(404, "GET", widgetsPath+"/b", "")
		refused := c.must(403, "POST", widgetsPath, `{"metadata":{"name":"c"}}`)
		require.Contains(t, refused.Body.String(), "terminating")
		time.Sleep(time.Minute) // of the bubble
		c.get(widgetsName)
		c.must(200, "GET", "/readyz", "")
		c.must(200, "PATCH", widgetsPath+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		c.await(widgetsName, "gone")
		c.must(404, "GET", widgetsPath, "")
	})
}

// The watches of a kind that goes are told that its objects are deleted.
func TestDeletion_WatchesSeeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"a"}}`)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of the bubble: any watch ends within the hour
		defer cancel()
		watched := make(chan answer)
		go func() {
			watched <- c.doContext(ctx, "GET", widgetsPath+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "")
		}()
		synctest.Wait()
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		body := (<-watched).Body.String()
		require.Contains(t, body, `"type":"DELETED"`)
		require.NoError(t, ctx.Err(), "it ended with the kind")
	})
}

// stuck is a client that does not read.
type stuck struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

// A watch that is not read does not keep the definition, nor is it a failure of the controller.
func TestDeletion_DoesNotWaitForAWatchThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		release := make(chan struct{})
		defer close(release)
		go c.server.ServeHTTP(stuck{httptest.NewRecorder(), release}, httptest.NewRequest("GET", "http://127.0.0.1"+widgetsPath+"?watch=1", nil))
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			c.must(201, "POST", widgetsPath, `{"metadata":{"name":"`+name+`"}}`)
			synctest.Wait()
		}
		began := time.Now()
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		synctest.Wait()
		c.must(404, "GET", widgetsPath, "")
		c.must(200, "GET", "/readyz", "")
		c.await(widgetsName, "gone")
		require.Less(t, time.Since(began), 6*time.Second, "five seconds are for the watches")
	})
}

// Users of a cluster whose controllers are gone take the finalizer away by hand.
func TestDeletion_WithoutTheFinalizerTakesTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"a","finalizers":["example.com/hold"]}}`)
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "Terminating=True")
		c.must(200, "PATCH", definitionsPath+"/"+widgetsName, `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
		c.await(widgetsName, "gone")
		synctest.Wait()
		c.must(404, "GET", widgetsPath, "")
		c.define(definition("widgets", "Widget"))
		c.must(404, "GET", widgetsPath+"/a", "")
	})
}

// A definition may go, and another one take its name, just when the server begins to delete its objects. They
// then belong to the other one, and stay.
func TestDeletion_OvertakenByADefinitionOfThatName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var definitions *faulty.Backend
		storage := newLasting(t)
		c := newCluster(t, storage.config(func(name string, objects backend.Backend) backend.Backend {
			if name == widgetsName {
				return objects
			}
			definitions = faulty.New(objects, faulty.Options{})
			return definitions
		}))
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"a"}}`)
		synctest.Wait()
		directly := storage.unchecked(t)
		replace := func(context.Context, *faulty.Call) {
			_, _, err := directly.Update(t.Context(), widgetsName, func(old *engine.Object[unstructured.Unstructured]) (unstructured.Unstructured, error) {
				released := *old.Value.DeepCopy()
				released.SetFinalizers(nil)
				return released, nil
			}, registry.WriteOptions{})
			require.NoError(t, err)
			storage.createUnchecked(t, definition("widgets", "Widget"))
		}
		const ofTheClient = 1 // after which the server says that it deletes the objects
		replaced := definitions.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpPut}, Skip: ofTheClient, Times: 1, Do: faulty.Before(replace)})
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		synctest.Wait()
		require.EqualValues(t, 1, replaced.Hits())
		c.await(widgetsName, "Established=True")
		require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(c.get(widgetsName)))
		c.must(200, "GET", widgetsPath+"/a", "")
	})
}

// A definition with a finalizer of another program stays, and its kind does not.
func TestDeletion_OfADefinitionThatOthersKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		c := newCluster(t, apiextensions.Config{Configure: func(*registry.Config[unstructured.Unstructured]) { opened++ }})
		c.define(definition("widgets", "Widget"))
		merge := func(body string) {
			c.must(200, "PATCH", definitionsPath+"/"+widgetsName, body, "Content-Type", "application/merge-patch+json")
			synctest.Wait()
		}
		merge(`{"metadata":{"finalizers":["example.com/hold"]}}`)
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		synctest.Wait()
		merge(`{"metadata":{"labels":{"a":"b"}}}`)
		require.Equal(t, []string{"example.com/hold"}, c.get(widgetsName).GetFinalizers())
		c.must(404, "GET", widgetsPath, "")
		require.Equal(t, 1, opened, "it is not served again")
		c.define(definition("worlds", "Widget")) // whose name is free
		merge(`{"metadata":{"finalizers":null}}`)
		c.must(404, "GET", definitionsPath+"/"+widgetsName, "")
	})
}

// onFile is a configuration whose storage is a file.
func onFile(file *bolt.File) apiextensions.Config {
	return apiextensions.Config{Configure: patiently, Storage: func(_ context.Context, name string, schema store.Schema) (backend.Backend, error) {
		return bolt.New(file, name, bolt.Config{Schema: schema})
	}}
}

func TestStorage_KindsAndObjectsComeBack(t *testing.T) {
	file, err := bolt.Open(filepath.Join(t.TempDir(), "objects"), bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	c := newCluster(t, onFile(file))
	c.define(definition("widgets", "Widget"))
	c.define(definition("gears", "Gear"))
	before := c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"size":3}}`).object()
	c.must(201, "POST", "/apis/example.com/v1/namespaces/default/gears", `{"metadata":{"name":"g","finalizers":["example.com/hold"]}}`)
	c.must(200, "DELETE", definitionsPath+"/gears.example.com", "")
	require.NoError(t, c.definitions.Close())

	c = newCluster(t, onFile(file))
	require.Equal(t, before, c.must(200, "GET", widgetsPath+"/w", "").object(), "Start waits for the kinds")
	c.must(200, "PATCH", "/apis/example.com/v1/namespaces/default/gears/g", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
	c.await("gears.example.com", "gone")
	require.NoError(t, c.definitions.Close())

	c = newCluster(t, onFile(file))
	c.must(404, "GET", "/apis/example.com/v1/gears", "")
	c.must(200, "GET", widgetsPath+"/w", "")
	require.NoError(t, c.definitions.Close())
}

// A file would keep the last objects of every kind that there ever was.
func TestDeletion_LeavesNoHistoryInAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects")
	file, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	c := newCluster(t, onFile(file))
	c.define(definition("widgets", "Widget"))
	c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"size":3}}`)
	c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
	c.await(widgetsName, "gone")
	require.NoError(t, c.definitions.Close())
	require.NoError(t, file.Close())
	report, err := bolt.Dump(path, func(r bolt.Record) error {
		require.NotEqual(t, widgetsName, r.Type)
		return nil
	})
	require.NoError(t, err)
	require.NotZero(t, report.Records, "those of the definition")
	require.Equal(t, report.Types[widgetsName].Revision, report.Types[widgetsName].Compacted)
}

// compacted is storage that is told to discard its history.
type compacted struct {
	backend.Backend
	shared bool
	err    error
	calls  *int
}

func (c compacted) Traits() backend.Traits {
	traits := c.Backend.Traits()
	traits.Shared = c.shared
	return traits
}

func (c compacted) Compact(context.Context, store.Revision) error {
	*c.calls++
	return c.err
}

func TestDeletion_DiscardsHistoryWhereItIsOfTheKindAlone(t *testing.T) {
	broken := errors.New("the disk is broken")
	for name, s := range map[string]struct {
		storage      compacted
		calls, fails int
	}{
		"alone":       {compacted{}, 1, 0},
		"shared":      {compacted{shared: true}, 0, 0},
		"unsupported": {compacted{err: store.ErrUnsupported}, 1, 0},
		"broken":      {compacted{err: broken}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, failures := 0, make(chan error, 100)
				cfg := newLasting(t).config(func(name string, objects backend.Backend) backend.Backend {
					if name != widgetsName {
						return objects
					}
					s.storage.Backend, s.storage.calls = objects, &calls
					return s.storage
				})
				cfg.OnError = func(err error) { failures <- err }
				c := newCluster(t, cfg)
				c.define(definition("widgets", "Widget"))
				c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
				c.await(widgetsName, "gone")
				time.Sleep(time.Hour) // of the bubble
				require.Equal(t, s.calls, calls)
				require.Len(t, failures, s.fails)
			})
		})
	}
}

func TestStorage_ThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("the disk is full")
		tries, failures := 0, make(chan error, 10)
		c := newCluster(t, apiextensions.Config{
			Storage: func(_ context.Context, name string, schema store.Schema) (backend.Backend, error) {
				if tries++; tries == 2 {
					return nil, full
				}
				return memory.New(schema, memory.Options{})
			},
			OnError: func(err error) { failures <- err },
		})
		c.define(definition("widgets", "Widget"))
		var failed *controller.ReconcileError
		require.ErrorAs(t, <-failures, &failed)
		require.Equal(t, widgetsName, failed.Key)
		require.ErrorIs(t, failed, full)
		require.Equal(t, 3, tries)
		c.must(200, "GET", widgetsPath, "")
	})
}

func TestNew_ReturnsTheErrorOfStorage(t *testing.T) {
	full := errors.New("the disk is full")
	_, err := apiextensions.New(t.Context(), apiextensions.Config{
		Storage: func(context.Context, string, store.Schema) (backend.Backend, error) { return nil, full },
	})
	require.ErrorIs(t, err, full)
}

func TestNew_RefusesAHostThatIsDeterministicOrZero(t *testing.T) {
	deterministic, err := engine.NewHost(engine.HostConfig{Clock: enginetest.NewVirtualClock(), Executor: engine.NewSeededExecutor(1)})
	require.NoError(t, err)
	defer func() { require.NoError(t, deterministic.Close()) }()
	for _, host := range []*engine.Host{deterministic, {}} {
		_, err = apiextensions.New(t.Context(), apiextensions.Config{Host: host})
		wrong := (*engine.ConfigError)(nil)
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "Host", wrong.Field)
	}
}

// A garbage collector is told of the policy of each deletion: of objects, and of the definition itself.
func TestDeletion_TellsAGarbageCollectorOfThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{GarbageCollection: true})
		c.define(definition("widgets", "Widget", addVersion))
		const release, media = `{"metadata":{"finalizers":null}}`, "application/merge-patch+json"
		for _, path := range []string{widgetsPath, strings.Replace(widgetsPath, "v1", "v1beta1", 1)} {
			c.must(201, "POST", path, `{"metadata":{"name":"a"}}`)
			marked := c.must(200, "DELETE", path+"/a?propagationPolicy=Orphan", "").object()
			require.Equal(t, []string{"orphan"}, marked.GetFinalizers())
			c.must(200, "PATCH", path+"/a", release, "Content-Type", media)
			c.must(404, "GET", path+"/a", "")
		}
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"b"}}`)
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName+"?propagationPolicy=Foreground", "")
		c.await(widgetsName, "Terminating=True")
		time.Sleep(time.Minute) // of the bubble
		c.must(404, "GET", widgetsPath, "")
		require.Equal(t, []string{"foregroundDeletion"}, c.get(widgetsName).GetFinalizers(), "its objects are gone, and the collector has not finished")
		c.must(200, "PATCH", definitionsPath+"/"+widgetsName, release, "Content-Type", media)
		c.must(404, "GET", definitionsPath+"/"+widgetsName, "")
	})
}
