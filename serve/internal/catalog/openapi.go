package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/registry"
)

// The parts of an OpenAPI document that clients read. kubectl looks up fields and
// parameters in it, and nothing else.
type (
	openAPI struct {
		OpenAPI    string              `json:"openapi"`
		Info       openAPIInfo         `json:"info"`
		Paths      map[string]pathItem `json:"paths"`
		Components openAPIComponents   `json:"components"`
	}
	openAPIInfo struct {
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	openAPIComponents struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	}
	// pathItem is the operations of a path by method.
	pathItem  map[string]operation
	operation struct {
		Description string                     `json:"description"`
		Action      string                     `json:"x-kubernetes-action"`
		Kind        discoveryKind              `json:"x-kubernetes-group-version-kind"`
		Parameters  []parameter                `json:"parameters,omitempty"`
		Responses   map[string]openAPIResponse `json:"responses"`
	}
	parameter struct {
		Name     string            `json:"name"`
		In       string            `json:"in"`
		Required bool              `json:"required,omitempty"`
		Schema   map[string]string `json:"schema"`
	}
	openAPIResponse struct {
		Description string                          `json:"description"`
		Content     map[string]map[string]anySchema `json:"content,omitempty"`
	}
	anySchema map[string]string
)

// emptyV2 is a document of OpenAPI v2 that describes nothing, in protobuf: its swagger
// version, and an info of a title and a version.
const emptyV2 = "\x0a\x032.0\x12\x0e\x0a\x09watchmill\x12\x010"

// v2Protobuf is the media type of documents of OpenAPI v2 in protobuf. Clients have an @ in
// place of its last dot but one, too.
const v2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

// addOpenAPI adds the index and a document for each group version. The document of v2 is
// empty: kubectl looks there for a kind that the others lack, and without a document it
// does not get as far as saying that the kind is not served. The documents do not
// describe the bodies of patches, from which kubectl concludes that it can send merge
// patches.
func (c *Catalog) addOpenAPI(groups []group, version string) {
	type entry struct {
		URL string `json:"serverRelativeURL"`
	}
	index := map[string]entry{}
	for _, g := range groups {
		for _, v := range g.versions {
			path := "/openapi/v3" + v.path()
			c.add(path, v.openAPI(version), jsonType)
			hash := strings.Trim(c.ByPath[path].ETag, `"`)
			index[strings.TrimPrefix(v.path(), "/")] = entry{path + "?hash=" + hash}
		}
	}
	c.add("/openapi/v2", json.RawMessage(`{"swagger":"2.0","info":{"title":"watchmill","version":"0"},"paths":{}}`), jsonType)
	c.V2Protobuf = newDocument([]byte(emptyV2), v2Protobuf)
	c.add("/openapi/v3", map[string]any{"paths": index}, jsonType)
}

// openAPI describes the kinds of a group version; version is the protocol's.
func (v *groupVersion) openAPI(version string) *openAPI {
	doc := &openAPI{
		OpenAPI: "3.0.0", Info: openAPIInfo{Title: "watchmill", Version: version},
		Paths: map[string]pathItem{}, Components: openAPIComponents{map[string]json.RawMessage{}},
	}
	for _, k := range v.kinds {
		doc.addKind(v.path(), &k)
	}
	return doc
}

// addKind describes the objects of a kind, and the paths below base that it is served at.
func (doc *openAPI) addKind(base string, k *servedKind) {
	component := componentName(&k.Kind)
	doc.Components.Schemas[component] = describe(k.Schema, &k.Kind)
	doc.Components.Schemas[component+"List"] = describeList(component, &k.Kind)
	if !k.Kind.ClusterScoped {
		path := base + "/" + k.Kind.Plural
		doc.Paths[path] = operations(path, &k.Kind, map[string]string{"get": "list", "delete": "deletecollection"})
		base += "/namespaces/{namespace}"
	}
	base += "/" + k.Kind.Plural
	doc.Paths[base] = operations(base, &k.Kind, map[string]string{"get": "list", "post": "create", "delete": "deletecollection"})
	one := base + "/{name}"
	doc.Paths[one] = operations(one, &k.Kind, map[string]string{"get": "get", "put": "update", "patch": "patch", "delete": "delete"})
	for _, sub := range k.subresources {
		of, path := sub.ObjectKind(), one+"/"+sub.Subresource
		doc.Paths[path] = operations(path, of, map[string]string{"get": "get", "put": "update", "patch": "patch"})
		if sub.Object.Kind != "" {
			doc.Components.Schemas[componentName(of)] = describe(sub.Schema, of)
		}
	}
}

// operations returns the operations of a path on objects of a kind; actions are their
// actions by method.
func operations(path string, k *registry.Kind, actions map[string]string) pathItem {
	item := pathItem{}
	for method, action := range actions {
		item[method] = operationOn(path, k, action)
	}
	return item
}

// queryParameters are the names of each action's parameters.
var queryParameters = map[string][]string{
	"create": {"dryRun", "fieldManager", "fieldValidation"},
	"update": {"dryRun", "fieldManager", "fieldValidation"},
	"patch":  {"dryRun", "fieldManager", "fieldValidation", "force"},
	"delete": {"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"},
	"deletecollection": {
		"continue", "dryRun", "fieldSelector", "gracePeriodSeconds", "labelSelector", "limit", "orphanDependents", "propagationPolicy", "resourceVersion", "resourceVersionMatch",
	},
	"list": {"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"},
}

// operationOn returns the operation of a path that does the action.
func operationOn(path string, k *registry.Kind, action string) operation {
	code, component := "200", componentName(k)
	switch action {
	case "create":
		code = "201"
	case "list", "deletecollection":
		component += "List"
	}
	op := operation{
		Description: action + " " + k.Kind, Action: action, Kind: discoveryKindOf(k),
		Responses: map[string]openAPIResponse{code: {
			Description: "OK",
			Content:     map[string]map[string]anySchema{jsonType: {"schema": {"$ref": "#/components/schemas/" + component}}},
		}},
	}
	for _, name := range []string{"namespace", "name"} {
		if strings.Contains(path, "{"+name+"}") {
			op.Parameters = append(op.Parameters, parameter{Name: name, In: "path", Required: true, Schema: map[string]string{"type": "string"}})
		}
	}
	for _, name := range queryParameters[action] {
		op.Parameters = append(op.Parameters, parameter{Name: name, In: "query", Schema: map[string]string{"type": "string"}})
	}
	return op
}

// componentName returns a kind's name among the schemas: with the group reversed, as in
// Kubernetes, and "core" for the core group.
func componentName(k *registry.Kind) string {
	parts := strings.Split(cmp.Or(k.Group, "core"), ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, k.Version, k.Kind), ".")
}
