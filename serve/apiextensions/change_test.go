package apiextensions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	"github.com/watchmill/watchmill/store/backend/memory"
)

// update is put for a bubble: it waits until the spec is in effect.
func (c *cluster) update(code int, text string) answer {
	c.t.Helper()
	a := c.put(code, text)
	synctest.Wait()
	return a
}

// put writes the spec of another definition in place of the one of widgets.
func (c *cluster) put(code int, text string) answer {
	c.t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(c.t, o.UnmarshalJSON([]byte(text)))
	o.SetResourceVersion(c.get(widgetsName).GetResourceVersion())
	body, err := o.MarshalJSON()
	require.NoError(c.t, err)
	return c.must(code, "PUT", definitionsPath+"/"+widgetsName, string(body))
}

func TestChange_ReplacesTheKindAndKeepsItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		before := c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"size":9}}`).object()
		c.update(200, definition("widgets", "Widget", ofVersion(func(v map[string]any) {
			v["additionalPrinterColumns"] = []any{map[string]any{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}}
			v["subresources"] = map[string]any{"status": map[string]any{}}
		})))
		after := c.must(200, "GET", widgetsPath+"/w", "").object()
		require.Equal(t, before, after, "not even the revision has changed")
		table := c.must(200, "GET", widgetsPath, "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
		require.Contains(t, table.Body.String(), `"cells":["w",9]`)
		c.must(200, "PATCH", widgetsPath+"/w/status", `{"status":{"ready":true}}`, "Content-Type", "application/merge-patch+json")
	})
}

func TestChange_OfTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
		c.update(200, definition("widgets", "Widget", addVersion, func(spec map[string]any) {
			old, next := spec["versions"].([]any)[0].(map[string]any), spec["versions"].([]any)[1].(map[string]any)
			old["served"], old["storage"], next["name"], next["storage"] = false, false, "v2", true
		}))
		c.must(404, "GET", widgetsPath+"/w", "")
		w := c.must(200, "GET", "/apis/example.com/v2/namespaces/default/widgets/w", "").object()
		require.Equal(t, "example.com/v2", w.GetAPIVersion())
		stored, _, _ := unstructured.NestedStringSlice(c.get(widgetsName).Object, "status", "storedVersions")
		require.Equal(t, []string{"v1", "v2"}, stored)
	})
}

func TestVersions_AreOfTheSameObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget", addVersion))
		const older = "/apis/example.com/v1beta1/namespaces/default/widgets"
		created := c.must(201, "POST", older, `{"metadata":{"name":"w"},"spec":{"size":5,"color":"red"}}`).object()
		require.Equal(t, map[string]any{"color": "red"}, created.Object["spec"], "it is of that version")
		seen := c.must(200, "GET", widgetsPath+"/w", "").object()
		require.Equal(t, "example.com/v1", seen.GetAPIVersion())
		require.Equal(t, created.GetUID(), seen.GetUID())
		require.Equal(t, created.GetResourceVersion(), seen.GetResourceVersion())
		for _, version := range []string{"v1", "v1beta1"} {
			require.Contains(t, c.must(200, "GET", "/apis/example.com/"+version, "").Body.String(), `"storageVersionHash":"gIwvi5rymmg="`, "both are stored as v1")
		}
		c.must(200, "PATCH", widgetsPath+"/w", `{"spec":{"size":6}}`, "Content-Type", "application/merge-patch+json")
		require.Equal(t, map[string]any{"color": "red"}, c.must(200, "GET", older+"/w", "").object().Object["spec"], "it has no sizes")
		require.Equal(t, map[string]any{"color": "red", "size": int64(6)}, c.must(200, "GET", widgetsPath+"/w", "").object().Object["spec"])
		c.must(422, "PATCH", widgetsPath+"/w", `{"spec":{"size":60}}`, "Content-Type", "application/merge-patch+json")

		c.update(200, definition("widgets", "Widget"))
		c.must(404, "GET", older, "")
		c.must(200, "GET", widgetsPath+"/w", "")
		c.update(200, definition("widgets", "Widget", addVersion))
		c.must(200, "GET", older+"/w", "")
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
		for _, path := range []string{older, widgetsPath} {
			c.must(404, "GET", path, "")
		}
	})
}

func TestChange_OfWhatIsFixedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		for field, edit := range map[string]func(spec map[string]any){
			"spec.scope":      func(spec map[string]any) { spec["scope"] = "Cluster" },
			"spec.names.kind": func(spec map[string]any) { spec["names"].(map[string]any)["kind"] = "Gadget" },
		} {
			require.Contains(t, c.update(422, definition("widgets", "Widget", edit)).Body.String(), `"field":"`+field+`"`)
		}
		require.EqualValues(t, 1, c.get(widgetsName).GetGeneration())
	})
}

// The controller must not take a write of the status, or of labels, for a change of the kind: that
// would end the watches of its objects.
func TestChange_OfTheRestLeavesTheKindAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		c := newCluster(t, apiextensions.Config{Configure: func(*registry.Config[unstructured.Unstructured]) { opened++ }})
		c.define(definition("widgets", "Widget"))
		merge := func(path, body string) {
			c.must(200, "PATCH", definitionsPath+"/"+widgetsName+path, body, "Content-Type", "application/merge-patch+json")
			synctest.Wait()
		}
		merge("", `{"metadata":{"labels":{"a":"b"}}}`)
		merge("/status", `{"status":{"conditions":[{"type":"Mine","status":"True"}]}}`)
		merge("", `{"metadata":{"finalizers":[]}}`)
		time.Sleep(time.Minute) // of the bubble: the controller does not answer each write by another one
		require.Equal(t, 1, opened)
		require.Equal(t, []string{"customresourcecleanup.apiextensions.k8s.io"}, c.get(widgetsName).GetFinalizers(), "it stays")
		require.Equal(t, []string{"Mine=True", "NamesAccepted=True", "Established=True"}, conditions(c.get(widgetsName)), "those of the controller are there again")
	})
}

// As in Kubernetes, a client that applies a condition leaves those of others alone.
func TestStatus_ConditionsAreAppliedByTheirTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		applied := c.must(200, "PATCH", definitionsPath+"/"+widgetsName+"/status?fieldManager=me",
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","status":{"conditions":[{"type":"Mine","status":"True"}]}}`,
			"Content-Type", "application/apply-patch+yaml")
		require.Equal(t, []string{"NamesAccepted=True", "Established=True", "Mine=True"}, conditions(applied.object()))
		gone := c.must(200, "PATCH", definitionsPath+"/"+widgetsName+"/status?fieldManager=me",
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","status":{}}`, "Content-Type", "application/apply-patch+yaml")
		require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(gone.object()))
		c.must(200, "PATCH", definitionsPath+"/"+widgetsName+"/status?dryRun=All", `{"status":{"conditions":[{"message":"without a type"}]}}`, "Content-Type", "application/merge-patch+json")
	})
}

// defineRivals defines widgets, and then worlds, which have the same short name.
func (c *cluster) defineRivals() {
	c.t.Helper()
	short := func(spec map[string]any) { spec["names"].(map[string]any)["shortNames"] = []any{"w"} }
	c.define(definition("widgets", "Widget", short))
	c.must(201, "POST", definitionsPath, definition("worlds", "World", short))
	c.await("worlds.example.com", "NamesAccepted=False")
}

func TestNames_OfAnotherKindAreNotServedUntilItGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.defineRivals()
		require.Equal(t, []string{"NamesAccepted=False", "Established=False"}, conditions(c.get("worlds.example.com")))
		c.must(404, "GET", "/apis/example.com/v1/worlds", "")
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await("worlds.example.com", "Established=True")
		c.must(200, "GET", "/apis/example.com/v1/worlds", "")
	})
}

func TestNames_ThatAChangeFreesAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.defineRivals()
		c.update(200, definition("widgets", "Widget"))
		c.await("worlds.example.com", "Established=True")
	})
}

func TestNames_OfAKindOfTheProgramAreNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, err := registry.New(registry.Config[unstructured.Unstructured]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}})
		require.NoError(t, err)
		defer func() { require.NoError(t, own.Close()) }()
		c := newCluster(t, apiextensions.Config{Storage: func(_ context.Context, name string, schema store.Schema) (backend.Backend, error) {
			if name == widgetsName {
				return nil, errors.New("it is the other kind's")
			}
			return memory.New(schema, memory.Options{})
		}}, own)
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		c.await(widgetsName, "NamesAccepted=False")
		message := c.must(200, "GET", definitionsPath+"/"+widgetsName, "").Body.String()
		require.Contains(t, message, "already in use by widgets.example.com")
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
		c.must(200, "GET", widgetsPath, "")
	})
}

// The server does not tell when a program takes a kind of its own away.
func TestNames_OfAKindOfTheProgramAreServedOnceItGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, err := registry.New(registry.Config[unstructured.Unstructured]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}})
		require.NoError(t, err)
		defer func() { require.NoError(t, own.Close()) }()
		c := newCluster(t, apiextensions.Config{}, own)
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		c.await(widgetsName, "NamesAccepted=False")
		time.Sleep(time.Hour) // of the bubble
		require.Contains(t, conditions(c.get(widgetsName)), "NamesAccepted=False")
		c.server.Remove(own)
		time.Sleep(11 * time.Second) // of the bubble
		synctest.Wait()
		require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(c.get(widgetsName)))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
	})
}

// The program may add a kind while a definition of that name is being opened. The program's is served, and the
// other one is closed.
func TestNames_OfAKindOfTheProgramThatComesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, host.Close()) })
		comes := func() {}
		c := newCluster(t, apiextensions.Config{Host: host, Configure: func(*registry.Config[unstructured.Unstructured]) {
			comes()
			comes = func() {}
		}})
		come := func(version string) *registry.Store[unstructured.Unstructured] {
			own, err := registry.New(registry.Config[unstructured.Unstructured]{Kind: registry.Kind{Group: "example.com", Version: version, Kind: "Widget"}})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, own.Close()) })
			comes = func() { require.NoError(t, c.server.Add(own)) }
			return own
		}
		synctest.Wait()
		before := host.Actors()
		own := come("v1")
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		c.await(widgetsName, "NamesAccepted=False")
		synctest.Wait()
		require.Equal(t, before, host.Actors())

		c.server.Remove(own)
		c.await(widgetsName, "Established=True")
		synctest.Wait()
		before = host.Actors()
		come("v1beta1")
		c.update(200, definition("widgets", "Widget", addVersion))
		c.await(widgetsName, "NamesAccepted=False")
		synctest.Wait()
		require.Equal(t, before, host.Actors())
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
	})
}

// A change that takes a name of another kind leaves the kind as it was.
func TestNames_AChangeThatTakesOneHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("worlds", "World"))
		c.define(definition("widgets", "Widget"))
		for range 2 { // and again, since it is not served then
			c.update(200, definition("widgets", "Widget", func(spec map[string]any) { spec["names"].(map[string]any)["shortNames"] = []any{"world"} }))
			require.Equal(t, []string{"NamesAccepted=False", "Established=True"}, conditions(c.get(widgetsName)))
			c.must(200, "GET", widgetsPath, "")
		}
		c.update(200, definition("widgets", "Widget"))
		require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(c.get(widgetsName)))
	})
}

// Many definitions that come, change and go at once end as they were written last.
func TestDefinitions_ManyAtOnce(t *testing.T) {
	c := newCluster(t, apiextensions.Config{Configure: patiently})
	for i := range 20 {
		c.must(201, "POST", definitionsPath, definition(fmt.Sprintf("k%ds", i), fmt.Sprintf("K%d", i)))
		if i >= 10 {
			c.must(200, "DELETE", fmt.Sprintf("%s/k%ds.example.com", definitionsPath, i-10), "")
		}
	}
	for i := range 10 {
		c.await(fmt.Sprintf("k%ds.example.com", i), "gone")
		c.must(404, "GET", fmt.Sprintf("/apis/example.com/v1/k%ds", i), "")
	}
	for i := 10; i < 20; i++ {
		c.await(fmt.Sprintf("k%ds.example.com", i), "Established=True")
		c.must(200, "GET", fmt.Sprintf("/apis/example.com/v1/k%ds", i), "")
	}
}

// The rules may have been others when a definition was stored. One that breaks them now is not
// served, and can be corrected and deleted.
func TestDefinitions_StoredByOtherRules(t *testing.T) {
	for name, then := range map[string]func(c *cluster){
		"corrected": func(c *cluster) {
			c.update(200, definition("widgets", "Widget"))
			c.await(widgetsName, "Established=True")
			c.must(200, "GET", widgetsPath, "")
		},
		"deleted": func(c *cluster) {
			c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
			c.await(widgetsName, "gone")
		},
		"labelled": func(c *cluster) {
			c.must(200, "PATCH", definitionsPath+"/"+widgetsName, `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", "application/merge-patch+json")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage := newLasting(t)
				storage.createUnchecked(t, definition("widgets", "Widget", withoutSchema))
				c := newCluster(t, storage.config())
				c.await(widgetsName, "NamesAccepted=False")
				require.Contains(t, c.must(200, "GET", definitionsPath+"/"+widgetsName, "").Body.String(), `"reason":"Invalid"`)
				c.must(404, "GET", widgetsPath, "")
				then(c)
			})
		})
	}
}

// withoutSchema makes a definition wrong.
var withoutSchema = ofVersion(func(v map[string]any) { delete(v, "schema") })

// A client cannot take the place of the kind of definitions.
func TestNames_OfDefinitionsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		text := strings.NewReplacer("widgets.example.com", "customresourcedefinitions.apiextensions.k8s.io", "example.com", "apiextensions.k8s.io",
			`"metadata":{`, `"metadata":{"annotations":{"api-approved.kubernetes.io":"unapproved"},`).
			Replace(definition("widgets", "Widget", func(spec map[string]any) {
				spec["names"] = map[string]any{"plural": "customresourcedefinitions", "kind": "Mine"}
			}))
		c.must(201, "POST", definitionsPath, text)
		c.await("customresourcedefinitions.apiextensions.k8s.io", "NamesAccepted=False")
		c.must(200, "DELETE", definitionsPath+"/customresourcedefinitions.apiextensions.k8s.io", "")
		c.await("customresourcedefinitions.apiextensions.k8s.io", "gone")
		c.must(200, "GET", definitionsPath, "")
	})
}
