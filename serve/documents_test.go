package serve_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

func TestDiscovery_Aggregated(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/api", "/apis"} {
		a := s.get(path, "Accept", acceptAggregated)
		require.Equal(t, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", a.header.Get("Content-Type"))
		require.Equal(t, "APIGroupDiscoveryList apidiscovery.k8s.io/v2", a.str("kind")+" "+a.str("apiVersion"))
		require.Equal(t, "Accept", a.header.Get("Vary"))
	}
	core := s.get("/api", "Accept", acceptAggregated)
	require.Equal(t, " v1 []", core.str("items.0.metadata.name")+" "+core.str("items.0.versions.0.version")+" "+core.str("items.0.versions.0.resources"), "of which clients know the kind List")
	a := s.get("/apis", "Accept", acceptAggregated)
	r := "items.0.versions.0.resources.0."
	require.Equal(t, "example.com v1 widgets widget Namespaced Widget [wd] [all] status", strings.Join([]string{
		a.str("items.0.metadata.name"), a.str("items.0.versions.0.version"), a.str(r + "resource"), a.str(r + "singularResource"), a.str(r + "scope"),
		a.str(r + "responseKind.kind"), a.str(r + "shortNames"), a.str(r + "categories"), a.str(r + "subresources.0.subresource"),
	}, " "))
	require.Equal(t, "Cluster", a.str("items.0.versions.0.resources.1.scope"))
}

func TestDiscovery_Plain(t *testing.T) {
	s := newServer(t)
	require.Equal(t, "APIVersions [v1]", s.get("/api").str("kind")+" "+s.get("/api").str("versions"))
	require.Equal(t, "APIResourceList v1 []", s.get("/api/v1").str("kind")+" "+s.get("/api/v1").str("groupVersion")+" "+s.get("/api/v1").str("resources"))
	require.Equal(t, "example.com/v1", s.get("/apis").str("groups.0.preferredVersion.groupVersion"))
	require.Equal(t, "APIGroup example.com", s.get("/apis/example.com").str("kind")+" "+s.get("/apis/example.com").str("name"))
	list := s.get("/apis/example.com/v1")
	require.Equal(t, "widgets widgets/status zones true false", strings.Join([]string{
		list.str("resources.0.name"), list.str("resources.1.name"), list.str("resources.2.name"), list.str("resources.0.namespaced"), list.str("resources.2.namespaced"),
	}, " "))
	require.Equal(t, "[create delete deletecollection get list patch update watch]", list.str("resources.0.verbs"))
}

func TestDocuments_AreListedAtTheRoot(t *testing.T) {
	s := newServer(t)
	s.becomes("/readyz", "ok") // which is one of them
	for path := range strings.FieldsSeq(strings.Trim(s.get("/").str("paths"), "[]")) {
		require.Equal(t, 200, s.get(path).code, path)
	}
	require.Equal(t, "/api /api/v1 /apis /apis/example.com /apis/example.com/v1 /healthz /healthz/ping", strings.Join(strings.Fields(strings.Trim(s.get("/").str("paths"), "[]"))[:7], " "))
	require.Contains(t, s.get("/").body, `"/openapi/v3/apis/example.com/v1","/readyz"`)
	require.Equal(t, 405, s.do("POST", "/", "").code)
}

func TestDocuments_AreRevalidated(t *testing.T) {
	s := newServer(t)
	a := s.get("/apis")
	tag := a.header.Get("ETag")
	require.NotEmpty(t, tag)
	again := s.get("/apis", "If-None-Match", tag)
	require.Equal(t, 304, again.code)
	require.Empty(t, again.body)
	other := s.get("/apis", "If-None-Match", tag, "Accept", acceptAggregated)
	require.Equal(t, 200, other.code, "another form is another document")
}

func TestOpenAPI_DescribesTheKinds(t *testing.T) {
	s := newServer(t)
	url := decodeJSON(t, s.get("/openapi/v3").body)["paths"].(map[string]any)["apis/example.com/v1"].(map[string]any)["serverRelativeURL"].(string)
	a := s.get(url)
	require.Equal(t, 200, a.code)
	require.Contains(t, a.header.Get("Cache-Control"), "immutable")
	doc := decodeJSON(t, a.body)
	one := doc["paths"].(map[string]any)["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"].(map[string]any)
	patch := one["patch"].(map[string]any)
	require.Equal(t, map[string]any{"group": "example.com", "version": "v1", "kind": "Widget"}, patch["x-kubernetes-group-version-kind"])
	var names []string
	for _, p := range patch["parameters"].([]any) {
		names = append(names, p.(map[string]any)["name"].(string))
	}
	require.Equal(t, []string{"namespace", "name", "dryRun", "fieldManager", "fieldValidation", "force"}, names)
	require.NotContains(t, patch, "requestBody", "or kubectl sends strategic merge patches")
	schema := doc["components"].(map[string]any)["schemas"].(map[string]any)["com.example.v1.Widget"].(map[string]any)
	require.Equal(t, []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Widget"}}, schema["x-kubernetes-group-version-kind"])
	require.Contains(t, a.body, "How large it is.")
	require.Contains(t, doc["paths"], "/apis/example.com/v1/zones/{name}")
}

// Each parameter of a path is declared, as OpenAPI requires, and a list is not described as one
// object.
func TestOpenAPI_DescribesPathsAndAnswers(t *testing.T) {
	s := newServer(t)
	doc := decodeJSON(t, s.get("/openapi/v3/apis/example.com/v1").body)
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	of := func(path, method, code string) (action string, declared []string, component string) {
		op := doc["paths"].(map[string]any)[path].(map[string]any)[method].(map[string]any)
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			if p := p.(map[string]any); p["in"] == "path" {
				require.Equal(t, true, p["required"])
				declared = append(declared, p["name"].(string))
			}
		}
		answer := op["responses"].(map[string]any)[code].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
		return op["x-kubernetes-action"].(string), declared, strings.TrimPrefix(answer["$ref"].(string), "#/components/schemas/")
	}
	const inNamespace = "/apis/example.com/v1/namespaces/{namespace}/widgets"
	for _, tc := range []struct{ path, method, code, action, declared, component string }{
		{"/apis/example.com/v1/widgets", "get", "200", "list", "[]", "WidgetList"},
		{inNamespace, "get", "200", "list", "[namespace]", "WidgetList"},
		{inNamespace, "post", "201", "post", "[namespace]", "Widget"},
		{inNamespace, "delete", "200", "deletecollection", "[namespace]", "WidgetList"},
		{inNamespace + "/{name}", "get", "200", "get", "[namespace name]", "Widget"},
		{inNamespace + "/{name}/status", "put", "200", "put", "[namespace name]", "Widget"},
		{"/apis/example.com/v1/zones/{name}", "patch", "200", "patch", "[name]", "Zone"},
	} {
		action, declared, component := of(tc.path, tc.method, tc.code)
		require.Equal(t, tc.action, action, tc.path)
		require.Equal(t, tc.declared, fmt.Sprint(declared), tc.path)
		require.Equal(t, "com.example.v1."+tc.component, component, tc.path)
		require.Contains(t, schemas, component)
	}
	items := schemas["com.example.v1.WidgetList"].(map[string]any)["properties"].(map[string]any)["items"].(map[string]any)
	require.Equal(t, map[string]any{"$ref": "#/components/schemas/com.example.v1.Widget"}, items["items"])
}

// A schema that says nothing of the common fields, or only their types, gets descriptions.
func TestOpenAPI_DescribesTheCommonFields(t *testing.T) {
	s := newServer(t)
	doc := decodeJSON(t, s.get("/openapi/v3/apis/example.com/v1").body)
	schema := doc["components"].(map[string]any)["schemas"].(map[string]any)["com.example.v1.Widget"].(map[string]any)
	fields := schema["properties"].(map[string]any)
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		require.NotEmpty(t, fields[name].(map[string]any)["description"], name)
	}
	labels := fields["metadata"].(map[string]any)["properties"].(map[string]any)["labels"].(map[string]any)
	require.Equal(t, map[string]any{"type": "string"}, labels["additionalProperties"])
	require.NotContains(t, s.get("/openapi/v3/apis/example.com/v1").body, "schemas/io.k8s", "or a replica would have no schema")
}

// A schema may say null where it has nothing to say, as one that a replica has from its origin. The
// common fields are described all the same.
func TestOpenAPI_NullInASchemaIsNothing(t *testing.T) {
	for _, schema := range []string{`null`, `{"properties":null}`, `{"properties":{"metadata":null}}`} {
		s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.Schema = json.RawMessage(schema) })
		doc := s.get("/openapi/v3/apis/example.com/v1").str("components.schemas")
		require.Contains(t, doc, "Names and values by which selectors find the object.", schema)
	}
	_, err := registry.New(registry.Config[Widget]{Kind: widgetConfig().Kind, Schema: json.RawMessage(`{"type"`)})
	var wrong *engine.ConfigError
	require.ErrorAs(t, err, &wrong, "what is not JSON would blank the document of all kinds")
	require.Equal(t, "Schema", wrong.Field)
}

// The document of v2 describes the kinds of all groups, at the same paths as those of v3.
func TestOpenAPI_V2DescribesTheKinds(t *testing.T) {
	s := newServer(t)
	require.NoError(t, s.handler.Add(newLater(t)))
	a := s.get("/openapi/v2")
	require.Equal(t, "application/json Accept", a.header.Get("Content-Type")+" "+a.header.Get("Vary"))
	doc := decodeJSON(t, a.body)
	require.Equal(t, "2.0", doc["swagger"])
	definitions, paths := doc["definitions"].(map[string]any), doc["paths"].(map[string]any)
	widget := definitions["com.example.v1.Widget"].(map[string]any)
	require.Equal(t, []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Widget"}}, widget["x-kubernetes-group-version-kind"])
	require.Contains(t, a.body, "How large it is.")
	require.Contains(t, definitions, "com.example.later.v1.Doodad")
	for _, group := range []string{"example.com", "later.example.com"} {
		for path := range decodeJSON(t, s.get("/openapi/v3/apis/"+group+"/v1").body)["paths"].(map[string]any) {
			require.Contains(t, paths, path)
		}
	}
	patch := paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"].(map[string]any)["patch"].(map[string]any)
	require.Equal(t, "patch", patch["x-kubernetes-action"])
	require.Equal(t, map[string]any{"name": "namespace", "in": "path", "required": true, "type": "string"}, patch["parameters"].([]any)[0])
	require.Equal(t, map[string]any{"$ref": "#/definitions/com.example.v1.Widget"}, patch["responses"].(map[string]any)["200"].(map[string]any)["schema"])
	require.NotContains(t, patch, "consumes", "or kubectl sends strategic merge patches")
	list := paths["/apis/example.com/v1/widgets"].(map[string]any)["get"].(map[string]any)
	require.Contains(t, list["parameters"], map[string]any{"name": "limit", "in": "query", "type": "integer"})
}

func TestOpenAPI_V2IsRevalidatedInItsForm(t *testing.T) {
	s := newServer(t)
	const protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	inJSON, a := s.get("/openapi/v2"), s.get("/openapi/v2", "Accept", protobuf)
	require.Equal(t, 200, a.code)
	require.Equal(t, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", a.header.Get("Content-Type"))
	tag := a.header.Get("ETag")
	require.NotEqual(t, inJSON.header.Get("ETag"), tag)
	require.Equal(t, 304, s.get("/openapi/v2", "Accept", protobuf, "If-None-Match", tag).code)
	require.Equal(t, 200, s.get("/openapi/v2", "If-None-Match", tag).code)

	later := newLater(t)
	require.NoError(t, s.handler.Add(later))
	require.Equal(t, 200, s.get("/openapi/v2", "Accept", protobuf, "If-None-Match", tag).code, "there is another kind")
	s.handler.Remove(later)
	require.Equal(t, 304, s.get("/openapi/v2", "Accept", protobuf, "If-None-Match", tag).code)
	require.Equal(t, 405, s.do("POST", "/openapi/v2", "{}").code)
}

func TestHealth_AndVersion(t *testing.T) {
	s := newServer(t)
	s.becomes("/readyz", "ok")
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/readyz/ping", "/readyz/storage"} {
		require.Equal(t, "ok", s.get(path).body, path)
	}
	require.Equal(t, "[+]ping ok\n[+]storage ok\n[+]shutdown ok\nreadyz check passed\n", s.get("/readyz?verbose").body)
	require.Equal(t, 404, s.get("/readyz/none").code)
	v := s.get("/version")
	require.Equal(t, serve.ProtocolVersion+" 1 37", v.str("gitVersion")+" "+v.str("major")+" "+v.str("minor"))
}

// What a server that has just started would answer may be old, or an error: load balancers wait until
// it has read its kinds. It stays ready in an outage, when it serves what it knows.
func TestHealth_IsReadyOnceEachKindHasBeenRead(t *testing.T) {
	var storage *faulty.Backend
	var down *faulty.Fault
	s := newServer(t, func(of *registry.Config[Widget], _ *serve.Config) {
		beneath, err := memory.New(registry.Schema(*of), memory.Options{})
		require.NoError(t, err)
		storage = faulty.New(beneath, faulty.Options{})
		down = storage.Add(faulty.Rule{Do: faulty.Fail(errors.New("no route to storage"))})
		of.Engine.Backend = storage
	})
	s.becomes("/readyz", "[+]ping ok\n[-]storage failed: kinds that have not been read yet: 1\n[+]shutdown ok\nreadyz check failed\n")
	require.Equal(t, http.StatusInternalServerError, s.get("/readyz").code)
	require.Equal(t, "ok", s.get("/livez").body, "a restart would not help")
	down.Remove()
	s.becomes("/readyz", "ok")
	storage.Add(faulty.Rule{Do: faulty.Fail(errors.New("no route to storage"))})
	storage.BreakWatches(errors.New("connection reset"))
	require.Eventually(t, func() bool { return !s.widgets.Engine().Stats().Ready }, time.Minute, time.Millisecond)
	require.Equal(t, "ok", s.get("/readyz").body)
	require.NoError(t, s.handler.Add(newLater(t, func(of *registry.Config[Widget]) {
		beneath, err := memory.New(registry.Schema(*of), memory.Options{})
		require.NoError(t, err)
		unread := faulty.New(beneath, faulty.Options{})
		unread.Add(faulty.Rule{Do: faulty.Fail(errors.New("no route to storage"))})
		of.Engine.Backend = unread
	})))
	require.Equal(t, "ok", s.get("/readyz").body, "a kind that is added later does not make the server unready")
}

// Load balancers probe every second or so, and a server may have hundreds of kinds.
func TestHealth_ProbesDoNotMeasureObjects(t *testing.T) {
	var measured atomic.Int64
	s := newServer(t, func(of *registry.Config[Widget], _ *serve.Config) {
		of.Engine.Size = func(Widget) int { measured.Add(1); return 100 }
	})
	s.becomes("/readyz", "ok")
	o, err := s.widgets.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}, registry.WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, s.widgets.Engine().WaitForRevision(t.Context(), o.Revision))
	written := measured.Load()
	s.widgets.Engine().Stats()
	before := measured.Load()
	require.Greater(t, before, written, "statistics do")
	require.Equal(t, "ok", s.get("/readyz").body)
	require.Equal(t, before, measured.Load())
}

// A kind without a cache is read from storage, so nothing has to be read first.
func TestHealth_IsReadyWithoutACache(t *testing.T) {
	s := newServer(t, func(of *registry.Config[Widget], _ *serve.Config) { of.Engine.NoCache = true })
	s.becomes("/readyz", "ok")
	require.Equal(t, 201, s.do("POST", inDefault, `{"metadata":{"name":"a"}}`).code)
}

// becomes waits until the body at a path is that.
func (s *server) becomes(path, body string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.get(path).body == body }, time.Minute, time.Millisecond)
}

// Objects are told apart by their kind, and so are lists.
func TestConfig_KindsOfOneNameAreRefused(t *testing.T) {
	store := func(kind, plural, version string) serve.Provider {
		s, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: version, Kind: kind, Plural: plural}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	widgets, lists := store("Widget", "widgets", "v1"), store("WidgetList", "widgetlists", "v1")
	for _, of := range [][]serve.Provider{{widgets, lists}, {lists, widgets}, {widgets, store("Widget", "gadgets", "v1")}} {
		_, err := serve.New(serve.Config{Resources: of})
		require.ErrorIs(t, err, engine.ErrConfig)
		require.ErrorContains(t, err, "in example.com/v1; give one of them another name")
	}
	_, err := serve.New(serve.Config{Resources: []serve.Provider{widgets, store("Widget", "widgets", "v2")}})
	require.NoError(t, err)
}

func TestConfig_WrongOnesAreRefused(t *testing.T) {
	widgets, err := registry.New(widgetConfig())
	require.NoError(t, err)
	defer func() { require.NoError(t, widgets.Close()) }()
	of := []serve.Provider{widgets}
	for field, cfg := range map[string]serve.Config{
		"Resources": {}, "Resources ": {Resources: []serve.Provider{widgets, widgets}}, "Limits.Reads": {Resources: of, Limits: serve.Limits{Reads: -1}},
		"Hosts": {Resources: of, Hosts: []string{"mill.example.com:8443"}}, "Hosts ": {Resources: of, Hosts: []string{"https://mill.example.com"}},
		"Resources[1]": {Resources: []serve.Provider{widgets, nil}}, "Resources[1] ": {Resources: []serve.Provider{widgets, (*registry.Store[Widget])(nil)}},
		"Hosts  ": {Resources: of, Hosts: []string{""}}, "Hosts   ": {Resources: of, Hosts: []string{"mill example.com"}},
	} {
		_, err := serve.New(cfg)
		require.ErrorIs(t, err, engine.ErrConfig, field)
		require.ErrorContains(t, err, strings.TrimSpace(field))
	}
	for range 50 { // of several errors the same one is told every time
		_, err := serve.New(serve.Config{Resources: of, Limits: serve.Limits{Reads: -1, Writes: -1, DrainWatches: -1}})
		require.ErrorContains(t, err, "Limits.Reads")
	}
	good, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}})
	require.NoError(t, err)
	for _, address := range []string{"0.0.0.0:0", "nowhere", "192.0.2.1:0"} {
		require.ErrorIs(t, good.ListenAndServe(t.Context(), serve.ListenOptions{Address: address}), engine.ErrConfig, address)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, good.ListenAndServe(ctx, serve.ListenOptions{Address: "127.0.0.1:0", TLS: &tls.Config{}}), "ListenOptions.TLS")
}
