package apiextensions_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/store/backend"
)

// The names are those of the definition that was served first, whichever a server that starts
// reads first.
func TestNames_StayWhereTheyAreWhenAServerStarts(t *testing.T) {
	for name, running := range map[string]bool{"again": false, "beside another one": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage := newLasting(t)
				a := newCluster(t, storage.config())
				short := ofNames(map[string]any{"shortNames": []any{"w"}})
				a.define(definition("worlds", "World", short))
				a.must(201, "POST", definitionsPath, definition("widgets", "Widget", short))
				a.await(widgetsName, "NamesAccepted=False")
				if !running {
					require.NoError(t, a.definitions.Close())
				}
				b := newCluster(t, storage.config())
				synctest.Wait()
				b.must(200, "GET", "/apis/example.com/v1/worlds", "")
				b.must(404, "GET", widgetsPath, "")
				require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(b.get("worlds.example.com")))
				require.Equal(t, []string{"NamesAccepted=False", "Established=False"}, conditions(b.get(widgetsName)))
				b.must(200, "DELETE", definitionsPath+"/worlds.example.com", "")
				synctest.Wait()
				b.must(200, "GET", widgetsPath, "")
			})
		})
	}
}

// Servers that share storage may give two definitions one name at the same time. Both keep it.
func TestNames_ThatTwoDefinitionsWereGivenAreOfBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		for plural, kind := range map[string]string{"widgets": "Widget", "worlds": "World"} {
			text := definition(plural, kind, ofNames(map[string]any{"shortNames": []any{"w"}}))
			storage.createUnchecked(t, strings.TrimSuffix(text, "}")+`,"status":{"storedVersions":["v1"],"acceptedNames":{"plural":"`+plural+`","kind":"`+kind+`","shortNames":["w"]}}}`)
		}
		c := newCluster(t, storage.config())
		synctest.Wait()
		for _, name := range []string{widgetsName, "worlds.example.com"} {
			require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(c.get(name)), name)
		}
	})
}

// A definition that cannot be served keeps its names until it goes.
func TestNames_OfADefinitionThatIsNotServedAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storage := newLasting(t)
		c := newCluster(t, storage.config())
		c.defineRivals()
		require.NoError(t, c.definitions.Close())
		storage.changeUnchecked(t, widgetsName, withoutSchema)
		c = newCluster(t, storage.config())
		require.Equal(t, []string{"NamesAccepted=False", "Established=False"}, conditions(c.get("worlds.example.com")))
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await("worlds.example.com", "Established=True")
	})
}

// The names that a definition is given are those that it was looked at with, even if it is changed
// meanwhile.
func TestNames_ThatADefinitionGetsMeanwhileAreNotAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cluster
		changed := false
		storage := newLasting(t).config(func(name string, objects backend.Backend) backend.Backend {
			if name == widgetsName && !changed {
				changed = true
				c.do("PATCH", definitionsPath+"/"+widgetsName, `{"spec":{"names":{"shortNames":["world"]}}}`, "Content-Type", "application/merge-patch+json")
			}
			return objects
		})
		c = newCluster(t, storage)
		c.define(definition("worlds", "World"))
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		synctest.Wait()
		o := c.get(widgetsName)
		require.Equal(t, []string{"NamesAccepted=False", "Established=True"}, conditions(o))
		short, _, _ := unstructured.NestedStringSlice(o.Object, "status", "acceptedNames", "shortNames")
		require.Empty(t, short)
	})
}

// The reasons are those that Kubernetes gives.
func TestNames_ReasonsOfConflicts(t *testing.T) {
	for _, tc := range []struct {
		reason string
		names  map[string]any
	}{
		{"SingularConflict", map[string]any{"singular": "widgets"}},
		{"ShortNamesConflict", map[string]any{"shortNames": []any{"x", "widget"}}},
		{"KindConflict", map[string]any{"kind": "WidgetList"}},
		{"ListKindConflict", map[string]any{"kind": "Widget"}},
		{"ListKindConflict", map[string]any{"listKind": "Widget"}},
		{"KindConflict", map[string]any{"kind": "Widget", "listKind": "Worlds"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, newLasting(t).config())
			c.define(definition("widgets", "Widget"))
			c.must(201, "POST", definitionsPath, definition("worlds", "World", ofNames(map[string]any{"singular": "world"}), ofNames(tc.names)))
			c.await("worlds.example.com", "NamesAccepted=False")
			require.Contains(t, c.must(200, "GET", definitionsPath+"/worlds.example.com", "").Body.String(), `"reason":"`+tc.reason+`"`)
			c.must(404, "GET", "/apis/example.com/v1/worlds", "")
		})
	}
}

// While a definition is not accepted nothing is fixed: it may get a kind that no other has.
func TestNames_AKindThatIsTakenCanBeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newLasting(t).config())
		c.define(definition("worlds", "Widget"))
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		c.await(widgetsName, "NamesAccepted=False")
		c.update(200, definition("widgets", "Gadget"))
		c.await(widgetsName, "Established=True")
		c.update(422, definition("widgets", "Widget"))
	})
}

// Each group has names of its own.
func TestNames_OfAnotherGroupAreFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newLasting(t).config())
		c.define(definition("widgets", "Widget"))
		c.define(inGroup(t, "example.org", "a", "b"))
		c.must(200, "GET", "/apis/example.org/v1/widgets", "")
	})
}

// The time of a condition is that of the last change of what holds, and not of why.
func TestStatus_TheTimeOfAConditionIsThatOfItsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newLasting(t).config())
		c.define(definition("worlds", "World"))
		c.must(201, "POST", definitionsPath, definition("widgets", "World"))
		c.await(widgetsName, "NamesAccepted=False")
		accepted := func() map[string]any {
			synctest.Wait()
			all, _, _ := unstructured.NestedSlice(c.get(widgetsName).Object, "status", "conditions")
			return all[0].(map[string]any)
		}
		first := accepted()
		time.Sleep(time.Hour) // of the bubble
		c.update(200, definition("widgets", "Widget", ofNames(map[string]any{"shortNames": []any{"world"}})))
		second := accepted()
		require.NotEqual(t, first["reason"], second["reason"])
		require.Equal(t, first["lastTransitionTime"], second["lastTransitionTime"])
		c.update(200, definition("widgets", "Widget"))
		require.NotEqual(t, first["lastTransitionTime"], accepted()["lastTransitionTime"])
	})
}

// A kind that is served has its names, even if a client takes them out of the status.
func TestNames_OfAKindThatIsServedAreItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newLasting(t).config())
		c.define(definition("widgets", "Widget"))
		c.must(200, "PATCH", definitionsPath+"/"+widgetsName+"/status", `{"status":{"acceptedNames":null}}`, "Content-Type", "application/merge-patch+json")
		c.update(200, definition("widgets", "Widget", addVersion))
		require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(c.get(widgetsName)))
		c.must(200, "GET", "/apis/example.com/v1beta1/widgets", "")
	})
}

// As in a cluster, each item of a list says what it is: clients that guess it by the kind of the
// list are wrong where listKind is another name.
func TestLists_NameTheKindOfEachItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"a"}}`)
		var list unstructured.UnstructuredList
		require.NoError(t, json.Unmarshal(c.must(200, "GET", widgetsPath, "").Body.Bytes(), &list.Object))
		items, _, err := unstructured.NestedSlice(list.Object, "items")
		require.NoError(t, err)
		item := unstructured.Unstructured{Object: items[0].(map[string]any)}
		require.Equal(t, "example.com/v1 Widget", item.GetAPIVersion()+" "+item.GetKind())
	})
}
