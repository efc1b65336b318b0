package apiextensions_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

func TestDefinitions_ServeAKindOnceItIsDefined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.must(404, "GET", widgetsPath, "")
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"size":1,"colour":"red"}}`)
		w := c.must(200, "GET", widgetsPath+"/w", "").object()
		require.Equal(t, "Widget", w.GetKind())
		require.Equal(t, map[string]any{"size": int64(1)}, w.Object["spec"], "an unknown field is pruned")
		c.must(422, "POST", widgetsPath, `{"metadata":{"name":"v"},"spec":{"size":11}}`)
		require.Contains(t, c.must(200, "GET", "/apis/example.com/v1", "").Body.String(), `"singularName":"widget"`)

		o := c.get(widgetsName)
		require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(o))
		names, _, _ := unstructured.NestedStringMap(o.Object, "status", "acceptedNames")
		require.Equal(t, map[string]string{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}, names)
		stored, _, _ := unstructured.NestedStringSlice(o.Object, "status", "storedVersions")
		require.Equal(t, []string{"v1"}, stored)
		require.EqualValues(t, 1, o.GetGeneration(), "the status is not a change of the definition")
	})
}

// What is read from a cluster is written elsewhere as it is, with a status, of which each server makes its own.
func TestDefinitions_MayHaveTheStatusOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		const status = `"status":{"observedGeneration":3,"conditions":[{"type":"Mine","status":"True","observedGeneration":3}],"storedVersions":["v0"]},`
		o := c.must(201, "POST", definitionsPath+"?fieldValidation=Strict", strings.Replace(definition("widgets", "Widget"), "{", "{"+status, 1)).object()
		require.Equal(t, map[string]any{"storedVersions": []any{"v1"}}, o.Object["status"])
	})
}

// kubectl patch and typed clients send them unless they are told otherwise. Custom resources take none, as in a cluster.
func TestDefinitions_TakeStrategicMergePatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		strategic := func(path, patch string) answer {
			return c.do("PATCH", path, patch, "Content-Type", "application/strategic-merge-patch+json")
		}
		a := strategic(definitionsPath+"/"+widgetsName, `{"metadata":{"labels":{"team":"a"},"finalizers":["example.com/hold"]}}`)
		require.Equal(t, 200, a.Code, a.Body)
		require.Equal(t, map[string]string{"team": "a"}, a.object().GetLabels())
		require.Equal(t, []string{"customresourcecleanup.apiextensions.k8s.io", "example.com/hold"}, slices.Sorted(slices.Values(a.object().GetFinalizers())))
		require.Equal(t, 200, strategic(definitionsPath+"/"+widgetsName+"/status", `{"status":{"storedVersions":["v1"]}}`).Code)
		require.Equal(t, 200, strategic(definitionsPath+"/"+widgetsName, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/hold"]}}`).Code)

		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"size":1}}`)
		require.Equal(t, 415, strategic(widgetsPath+"/w", `{}`).Code)
	})
}

func TestDefinitions_ObjectsHaveServerSideApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		apply := func(manager string, size int) answer {
			return c.do("PATCH", widgetsPath+"/w?fieldManager="+manager,
				fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":%d}}`, size),
				"Content-Type", "application/apply-patch+yaml")
		}
		require.Equal(t, 201, apply("a", 1).Code)
		require.Equal(t, 409, apply("b", 2).Code)
	})
}

func TestDefinitions_WrongOnesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		for name, edit := range map[string]func(spec map[string]any){
			"spec.versions":                        ofVersion(func(v map[string]any) { v["storage"] = false }),
			"spec.scope":                           func(spec map[string]any) { spec["scope"] = "Everywhere" },
			"spec.group":                           func(spec map[string]any) { delete(spec, "group") },
			"metadata.name":                        func(spec map[string]any) { spec["group"] = "other.example.com" },
			"spec.versions.schema.openAPIV3Schema": ofVersion(func(v map[string]any) { delete(v, "schema") }),
			"spec.names.plural":                    func(spec map[string]any) { spec["names"] = map[string]any{"kind": "Widget"} },
			"spec.names.kind":                      func(spec map[string]any) { spec["names"] = map[string]any{"kind": 5, "plural": "widgets"} },
			"spec.versions[0].name":                ofVersion(func(v map[string]any) { v["name"] = "V!" }),
		} {
			a := c.must(422, "POST", definitionsPath, definition("widgets", "Widget", edit))
			require.Contains(t, a.Body.String(), `"field":"`+name+`"`, name)
		}
		c.must(404, "GET", definitionsPath+"/"+widgetsName, "")
	})
}

func TestDefinitions_WritersAreWarnedOfWhatHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		more := func(spec map[string]any) {
			spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"clientConfig": map[string]any{"url": "https://example.com"}, "conversionReviewVersions": []any{"v1"},
			}}
			addVersion(spec)
		}
		a := c.must(201, "POST", definitionsPath, definition("widgets", "Widget", more))
		require.Contains(t, a.Header().Get("Warning"), "version v1beta1 is not served")
		a = c.must(200, "PATCH", definitionsPath+"/"+widgetsName, `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", "application/merge-patch+json")
		require.Empty(t, a.Header().Get("Warning"), "that says nothing new")
	})
}

func TestDefinitions_HaveTheColumnsOfKubernetes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		table := func(path string) string {
			o := c.must(200, "GET", path, "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").object()
			var shown []string
			columns, _, _ := unstructured.NestedSlice(o.Object, "columnDefinitions")
			for _, column := range columns {
				shown = append(shown, column.(map[string]any)["name"].(string))
			}
			rows, _, _ := unstructured.NestedSlice(o.Object, "rows")
			return fmt.Sprint(strings.Join(shown, "|"), rows[0].(map[string]any)["cells"])
		}
		more := func(spec map[string]any) {
			addVersion(spec)
			versions := spec["versions"].([]any)
			unserved := maps.Clone(versions[0].(map[string]any))
			unserved["name"], unserved["served"], unserved["storage"] = "v1alpha1", false, false
			spec["versions"] = append(versions, unserved)
			spec["names"].(map[string]any)["shortNames"] = []any{"w", "wd"}
		}
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget", more))
		const want = "Name|Scope|Versions|Created At|Group|Kind|ShortNames|Established[widgets.example.com Namespaced v1(storage),v1beta1 2000-01-01T00:00:00Z example.com Widget w,wd %t]"
		c.await(widgetsName, "Established=True")
		require.Equal(t, fmt.Sprintf(want, true), table(definitionsPath))
		require.Equal(t, fmt.Sprintf(want, true), table(definitionsPath+"/"+widgetsName))
		c.must(201, "POST", definitionsPath, definition("boxes", "Widget"))
		c.await("boxes.example.com", "Established=False")
		require.Contains(t, table(definitionsPath+"/boxes.example.com"), "Widget  false]")
	})
}

func TestDecoders_AreForDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{Decoders: map[string]func([]byte) ([]byte, error){
			"application/x-reversed": func(body []byte) ([]byte, error) { slices.Reverse(body); return body, nil },
		}})
		body := []byte(definition("widgets", "Widget"))
		slices.Reverse(body)
		c.must(201, "POST", definitionsPath, string(body), "Content-Type", "application/x-reversed")
		c.await(widgetsName, "Established=True")
	})
}

// A program defines kinds without a client, too.
func TestStore_DefinesKindsInTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		o := unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal([]byte(definition("widgets", "Widget")), &o.Object))
		_, err := c.definitions.Store().Create(t.Context(), o, registry.WriteOptions{})
		require.NoError(t, err)
		c.await(widgetsName, "Established=True")
		c.must(200, "GET", widgetsPath, "")
	})
}

func TestStart_RefusesNoServer(t *testing.T) {
	d, err := apiextensions.New(t.Context(), apiextensions.Config{})
	require.NoError(t, err)
	require.ErrorContains(t, d.Start(t.Context(), nil), "server is nil; give the one that serves the definitions")
	server, err := serve.New(serve.Config{Resources: []serve.Provider{d}})
	require.NoError(t, err)
	require.NoError(t, d.Start(t.Context(), server))
	require.NoError(t, d.Close())
}

func TestStart_OnceAndBeforeClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		require.ErrorIs(t, c.definitions.Start(t.Context(), c.server), apiextensions.ErrStarted)
		require.NoError(t, c.definitions.Close())
		require.NoError(t, c.definitions.Close())
		require.ErrorIs(t, c.definitions.Start(t.Context(), c.server), engine.ErrEngineClosed)
	})
}

// The host of a program goes on.
func TestClose_LeavesNoEngineOnAHostOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{})
		require.NoError(t, err)
		c := newCluster(t, apiextensions.Config{Host: host})
		c.define(definition("widgets", "Widget"))
		require.Len(t, host.Engines(), 2, "of the definitions, and of the widgets")
		require.NoError(t, c.definitions.Close())
		require.Empty(t, host.Engines())
		require.NoError(t, host.Close())
	})
}
