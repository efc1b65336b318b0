package apiextensions_test

import (
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/apiextensions"
)

// selectBy has version i of a spec select by a field.
func selectBy(i int, path string) func(spec map[string]any) {
	return func(spec map[string]any) {
		spec["versions"].([]any)[i].(map[string]any)["selectableFields"] = []any{map[string]any{"jsonPath": path}}
	}
}

// Each version has the fields to select by that it lists. Those of the others would match nothing, or
// everything.
func TestVersions_SelectByTheirOwnFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget", addVersion, selectBy(0, ".spec.size"), selectBy(1, ".spec.color")))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"size":5,"color":"red"}}`)
		const older = "/apis/example.com/v1beta1/namespaces/default/widgets"
		for _, query := range []string{"?fieldSelector=spec.size%3D5", "?fieldSelector=spec.size!%3D5", "?watch=1&fieldSelector=spec.size%3D5"} {
			c.must(400, "GET", older+query, "")
		}
		c.must(400, "GET", widgetsPath+"?fieldSelector=spec.color%3Dred", "")
		c.must(400, "DELETE", older+"?fieldSelector=spec.size!%3D5", "")
		c.must(200, "GET", widgetsPath+"/w", "")
		c.must(200, "DELETE", older+"?fieldSelector=spec.color!%3Dred", "")
		c.must(200, "GET", widgetsPath+"/w", "")
		c.must(200, "DELETE", older+"?fieldSelector=spec.color%3Dred", "")
		c.must(404, "GET", widgetsPath+"/w", "")
	})
}

// Storage has the fields of all versions, so one that is no longer served, or not converted, is no change
// of those.
func TestChange_OfAVersionWithAFieldOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		edits := []func(map[string]any){addVersion, selectBy(0, ".spec.size"), selectBy(1, ".spec.color")}
		c.define(definition("widgets", "Widget", edits...))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"size":5,"color":"red"}}`)
		c.update(200, definition("widgets", "Widget", append(edits, func(spec map[string]any) {
			spec["versions"].([]any)[1].(map[string]any)["served"] = false
		})...))
		c.must(200, "GET", widgetsPath+"?fieldSelector=spec.size%3D5", "")
		c.update(200, definition("widgets", "Widget", append(edits, func(spec map[string]any) {
			spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"clientConfig": map[string]any{"url": "https://example.com"}, "conversionReviewVersions": []any{"v1"},
			}}
		})...))
		c.must(200, "GET", widgetsPath+"?fieldSelector=spec.size%3D5", "")
	})
}

// selected returns the names of the widgets that a field selector selects.
func (c *cluster) selected(selector string) (names []string) {
	c.t.Helper()
	list, err := c.must(200, "GET", widgetsPath+"?fieldSelector="+url.QueryEscape(selector), "").object().ToList()
	require.NoError(c.t, err)
	for _, o := range list.Items {
		names = append(names, o.GetName())
	}
	return names
}

// Charts add fields to select by when they are upgraded, and take them away when that is undone. The objects that
// are there are selected by the new ones, too, without a write.
func TestChange_OfTheFieldsToSelectBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		origin := func(spec map[string]any) { // its name comes before those of the metadata
			v := spec["versions"].([]any)[0].(map[string]any)
			schema := v["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
			schema["properties"].(map[string]any)["from"] = map[string]any{"type": "string"}
		}
		c.define(definition("widgets", "Widget", origin))
		before := c.must(201, "POST", widgetsPath, `{"metadata":{"name":"a"},"from":"x","spec":{"size":5,"color":"red"}}`).object()
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"b"},"from":"y","spec":{"size":6,"color":"blue"}}`)

		c.update(200, definition("widgets", "Widget", origin, selectBy(0, ".from")))
		require.Equal(t, []string{"a"}, c.selected("from=x"))
		require.Equal(t, []string{"b"}, c.selected("from!=x"))
		require.Equal(t, []string{"b"}, c.selected("metadata.name=b"))
		require.Equal(t, before, c.must(200, "GET", widgetsPath+"/a", "").object(), "not even the revision has changed")
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"c"},"from":"x","spec":{"size":7,"color":"red"}}`)
		require.Equal(t, []string{"a", "c"}, c.selected("from=x"))

		c.update(200, definition("widgets", "Widget", origin, selectBy(0, ".spec.color")))
		require.Equal(t, []string{"a", "c"}, c.selected("spec.color=red"))
		require.Equal(t, []string{"c"}, c.selected("metadata.name=c,spec.color=red"))
		c.must(400, "GET", widgetsPath+"?fieldSelector=from%3Dx", "")

		c.update(200, definition("widgets", "Widget", origin))
		require.Equal(t, []string{"c"}, c.selected("metadata.name=c"))
		c.must(400, "GET", widgetsPath+"?fieldSelector=spec.color%3Dred", "")
		c.must(200, "DELETE", widgetsPath+"?fieldSelector=metadata.name%3Da", "")
		require.Equal(t, []string{"b", "c"}, c.selected("metadata.namespace=default"))
	})
}
