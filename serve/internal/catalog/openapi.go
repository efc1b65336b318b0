package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/watchmill/watchmill/registry"
)

// The parts of a document that OpenAPI v2 and v3 have in common, as far as clients read them.
type (
	openAPIInfo struct {
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	// pathItem is the operations of a path by method. P and A are a version's parameters and
	// answers.
	pathItem[P, A any]  map[string]operation[P, A]
	operation[P, A any] struct {
		Description string        `json:"description"`
		Action      string        `json:"x-kubernetes-action"`
		Kind        discoveryKind `json:"x-kubernetes-group-version-kind"`
		Parameters  []P           `json:"parameters,omitempty"`
		Responses   map[string]A  `json:"responses"`
	}
)

// addOpenAPI adds the index and a document for each group version of OpenAPI v3, and what makes
// that of v2. The documents do not describe the bodies of patches, from which kubectl concludes
// that it can send merge patches.
func (c *Catalog) addOpenAPI(groups []group, version string) {
	type entry struct {
		URL string `json:"serverRelativeURL"`
	}
	index := map[string]entry{}
	info := openAPIInfo{Title: "watchmill", Version: version}
	for _, g := range groups {
		for _, v := range g.versions {
			path := "/openapi/v3" + v.path()
			c.add(path, v.openAPIV3(info))
			hash := strings.Trim(c.ByPath[path].ETag, `"`)
			index[strings.TrimPrefix(v.path(), "/")] = entry{path + "?hash=" + hash}
		}
	}
	c.add("/openapi/v3", map[string]any{"paths": index})
	c.V2JSON = sync.OnceValue(func() *Document { return NewDocument(openAPIV2(groups, info), jsonType) })
	c.V2Protobuf = sync.OnceValue(func() *Document { return newDocument(openAPIV2(groups, info).protobuf(), v2Protobuf) })
}

// component is a schema of a document with its name.
type component struct {
	name   string
	schema json.RawMessage
	kind   discoveryKind
	// metadata is the name of the schema that describes the objects' metadata, for documents
	// that have one.
	metadata string
}

// components returns the schemas of the kind's objects, of lists of them, if there are lists, and of
// what its subresources have in their place.
func (k *servedKind) components() []component {
	object, list := discoveryKindOf(&k.Kind), discoveryKindOf(&k.Kind)
	list.Kind = k.Kind.ListGroupVersionKind().Kind
	name := componentName(&k.Kind)
	all := []component{{name, describe(k.Schema, object), object, objectMeta}}
	if slices.Contains(k.Verbs, "list") {
		all = append(all, component{componentOf(&k.Kind, list.Kind), describeList(name, list), list, listMeta})
	}
	for _, sub := range k.subresources {
		if of := sub.ObjectKind(); sub.Object.Kind != "" {
			all = append(all, component{componentName(of), describe(sub.Schema, discoveryKindOf(of)), discoveryKindOf(of), objectMeta})
		}
	}
	return all
}

// servedPath is a path at which objects of a kind are, and what can be done with them there.
type servedPath struct {
	path    string
	kind    *registry.Kind
	actions []string
}

// paths returns the paths below base, which is that of the kind's version.
func (k *servedKind) paths(base string) []servedPath {
	var all []servedPath
	add := func(path string, of *registry.Info, named ...string) {
		named = slices.DeleteFunc(named, func(name string) bool { return !slices.Contains(of.Verbs, actions[name].verb) })
		if len(named) > 0 {
			all = append(all, servedPath{path, of.ObjectKind(), named})
		}
	}
	if !k.Kind.ClusterScoped {
		add(base+"/"+k.Kind.Plural, k.Info, "list")
		base += "/namespaces/{namespace}"
	}
	base += "/" + k.Kind.Plural
	one := base + "/{name}"
	add(base, k.Info, "list", "post", "deletecollection")
	add(one, k.Info, "get", "put", "patch", "delete")
	for _, sub := range k.subresources {
		add(one+"/"+sub.Subresource, sub, "get", "put", "patch", "post")
	}
	return all
}

// action is what an operation does.
type action struct {
	// verb is that of the resource, method that of HTTP, and does is how the description begins.
	verb, method, does string
	// ofList: the answer is a list.
	ofList bool
	// query are the names of its parameters, besides those in the path.
	query []string
}

// actions are all of them by the names that they have in Kubernetes.
var actions = map[string]action{
	"get":    {verb: "get", method: "get", does: "get"},
	"post":   {verb: "create", method: "post", does: "create", query: []string{"dryRun", "fieldManager", "fieldValidation"}},
	"put":    {verb: "update", method: "put", does: "replace", query: []string{"dryRun", "fieldManager", "fieldValidation"}},
	"patch":  {verb: "patch", method: "patch", does: "patch", query: []string{"dryRun", "fieldManager", "fieldValidation", "force"}},
	"delete": {verb: "delete", method: "delete", does: "delete", query: []string{"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"}},
	"deletecollection": {verb: "deletecollection", method: "delete", does: "deletecollection", ofList: true, query: []string{
		"continue", "dryRun", "fieldSelector", "gracePeriodSeconds", "labelSelector", "limit", "orphanDependents", "propagationPolicy", "resourceVersion", "resourceVersionMatch",
	}},
	"list": {verb: "list", method: "get", does: "list", ofList: true, query: []string{
		"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
	}},
}

// operations returns the operations of a path, whose parameters and answers the functions make.
func operations[P, A any](s servedPath, parameterOf func(parameter) P, answerOf func(component string) A) pathItem[P, A] {
	item := pathItem[P, A]{}
	for _, name := range s.actions {
		of, code, answer := actions[name], "200", componentName(s.kind)
		if of.method == "post" {
			code = "201"
		}
		if of.ofList {
			answer = componentOf(s.kind, s.kind.ListGroupVersionKind().Kind)
		}
		op := operation[P, A]{
			Description: of.does + " " + s.kind.Kind, Action: name, Kind: discoveryKindOf(s.kind),
			Responses: map[string]A{code: answerOf(answer)},
		}
		for _, p := range of.parameters(s.path) {
			op.Parameters = append(op.Parameters, parameterOf(p))
		}
		item[of.method] = op
	}
	return item
}

// parameter is a parameter of an operation; in is "path" or "query".
type parameter struct{ name, in, kind string }

// parameterKinds are the types of the parameters that are not strings.
var parameterKinds = map[string]string{
	"allowWatchBookmarks": "boolean", "force": "boolean", "orphanDependents": "boolean", "sendInitialEvents": "boolean", "watch": "boolean",
	"gracePeriodSeconds": "integer", "limit": "integer", "timeoutSeconds": "integer",
}

// parameters returns the parameters of the action at a path, those in the path first.
func (a action) parameters(path string) []parameter {
	var all []parameter
	for _, name := range []string{"namespace", "name"} {
		if strings.Contains(path, "{"+name+"}") {
			all = append(all, parameter{name, "path", "string"})
		}
	}
	for _, name := range a.query {
		all = append(all, parameter{name, "query", cmp.Or(parameterKinds[name], "string")})
	}
	return all
}

// componentName returns a kind's name among the schemas: with the group reversed, as in
// Kubernetes, and "core" for the core group.
func componentName(k *registry.Kind) string { return componentOf(k, k.Kind) }

// componentOf is componentName of another kind of the same version.
func componentOf(k *registry.Kind, kind string) string {
	parts := strings.Split(cmp.Or(k.Group, "core"), ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, k.Version, kind), ".")
}
