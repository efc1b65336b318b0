package apiextensions_test

import (
	"testing"
	"testing/synctest"

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
		c.update(422, definition("widgets", "Widget", edits[0], edits[1]))
	})
}
