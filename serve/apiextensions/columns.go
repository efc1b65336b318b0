package apiextensions

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
)

// Columns returns the columns of tables of definitions, which are those of Kubernetes, for the Columns of a
// [registry.Config] by which a replica shows the definitions of another server. Age is not among them: set NoAge.
func Columns() []registry.Column[unstructured.Unstructured] { return slices.Clone(columns) }

// columns are what Columns returns.
var columns = []registry.Column[object]{
	{Name: "Scope", Type: "string", Description: "Whether the objects are in namespaces.", Value: specText("scope")},
	{Name: "Versions", Type: "string", Description: "The versions that are served.", Value: shownVersions},
	{Name: "Created At", Type: "date", Description: "When the definition was created.", Value: func(o *object) any {
		return o.GetCreationTimestamp().UTC().Format(time.RFC3339)
	}},
	{Name: "Group", Type: "string", Priority: 1, Description: "The API group of the kind.", Value: specText("group")},
	{Name: "Kind", Type: "string", Priority: 1, Description: "The kind of the objects.", Value: func(o *object) any {
		return text(part(part(o.Object, "spec"), "names"), "kind")
	}},
	{Name: "ShortNames", Type: "string", Priority: 1, Description: "Short forms of the plural.", Value: func(o *object) any {
		return strings.Join(texts(part(part(o.Object, "spec"), "names"), "shortNames"), ",")
	}},
	{Name: "Established", Type: "boolean", Priority: 1, Description: "Whether the kind is served.", Value: func(o *object) any {
		return slices.ContainsFunc(items(part(o.Object, "status"), "conditions"), func(c map[string]any) bool {
			return c["type"] == "Established" && c["status"] == "True"
		})
	}},
}

// specText returns a function that returns the text in a field of the spec of a definition.
func specText(field string) func(*object) any {
	return func(o *object) any { return text(part(o.Object, "spec"), field) }
}

// shownVersions returns the versions of a definition that are served, and marks the one that is stored.
func shownVersions(o *object) any {
	var served []string
	for _, v := range items(part(o.Object, "spec"), "versions") {
		name := text(v, "name")
		if v["storage"] == true {
			name += "(storage)"
		}
		if v["served"] == true {
			served = append(served, name)
		}
	}
	slices.Sort(served)
	return strings.Join(served, ",")
}
