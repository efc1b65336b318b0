package serve_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

func TestGet_OneObject(t *testing.T) {
	s := newServer(t)
	rev := s.create("a", 3)
	a := s.get(inDefault + "/a")
	require.Equal(t, 200, a.code)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	require.Equal(t, "no-cache, private", a.header.Get("Cache-Control"))
	require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	require.Equal(t, "example.com/v1 Widget a 3", strings.Join([]string{a.str("apiVersion"), a.str("kind"), a.str("metadata.name"), a.str("spec.size")}, " "))
	require.Equal(t, rev, a.str("metadata.resourceVersion"))
	s.cached()
	for _, query := range []string{"?resourceVersion=0", "?resourceVersion=" + rev} {
		require.Equal(t, 200, s.get(inDefault+"/a"+query).code, query)
	}
	require.Equal(t, a.body, s.get(inDefault+"/a/status").body)
}

func TestGet_Forms(t *testing.T) {
	s := newServer(t)
	rev := s.create("a", 3)
	table := s.get(inDefault+"/a", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	require.Equal(t, "Table", table.str("kind"))
	require.Equal(t, rev, table.str("metadata.resourceVersion"))
	require.Equal(t, "Name name Size Age", strings.Join([]string{
		table.str("columnDefinitions.0.name"), table.str("columnDefinitions.0.format"), table.str("columnDefinitions.1.name"), table.str("columnDefinitions.2.name"),
	}, " "))
	require.Equal(t, "a 3", table.str("rows.0.cells.0")+" "+table.str("rows.0.cells.1"))
	require.Equal(t, "PartialObjectMetadata", table.str("rows.0.object.kind"))
	require.Equal(t, "meta.k8s.io/v1", table.str("apiVersion"))
	for _, path := range []string{inDefault + "/a", inDefault} {
		old := s.get(path, "Accept", "application/json;as=Table;v=v1beta1;g=meta.k8s.io")
		require.Equal(t, "Table meta.k8s.io/v1beta1 a", old.str("kind")+" "+old.str("apiVersion")+" "+old.str("rows.0.cells.0"), path)
	}
	whole := s.get(inDefault+"/a?includeObject=Object", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	require.Equal(t, "Widget", whole.str("rows.0.object.kind"))
	none := s.get(inDefault+"/a?includeObject=None", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	require.Equal(t, "<nil>", none.str("rows.0.object"))
	for _, path := range []string{inDefault + "/a?", inDefault + "?", inDefault + "?watch=1&"} {
		require.Equal(t, 400, s.get(path+"includeObject=Half", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").code, path)
	}

	partial := s.get(inDefault+"/a", "Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	require.Equal(t, "PartialObjectMetadata meta.k8s.io/v1 "+rev, partial.str("kind")+" "+partial.str("apiVersion")+" "+partial.str("metadata.resourceVersion"))
	require.NotContains(t, partial.body, "spec")
	require.Equal(t, "Widget", s.get(inDefault+"/a", "Accept", "application/vnd.kubernetes.protobuf,application/json").str("kind"))
	require.Equal(t, "Widget", s.get(inDefault+"/a", "Accept", "application/json;q=0.1, text/html;profile=x").str("kind"))
	require.Equal(t, 406, s.get(inDefault+"/a", "Accept", "text/html").code)
	require.Equal(t, 406, s.get(inDefault+"/a", "Accept", "application/json;q=0").code)
}

// Programs that know nothing of Kubernetes accept anything, and get JSON. What is not served is
// never answered as something like it.
func TestGet_IsWhatTheClientAccepts(t *testing.T) {
	s := newServer(t)
	s.create("a", 3)
	for accept, want := range map[string]string{
		"*/*":           "200 Widget",
		"application/*": "200 Widget",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "200 Widget",
		"/;,application/json":                                               "200 Widget",
		"application/json;as=Table;g=meta.k8s.io;v=v2":                      "406 Status",
		"application/json;as=Table;g=example.com;v=v1":                      "406 Status",
		"application/json;as=Table;g=example.com;v=v1beta1":                 "406 Status",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v2":      "406 Status",
		"application/json;as=PartialObjectMetadata;g=example.com;v=v1":      "406 Status",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1": "406 Status",
		"application/json;as=Secret;g=meta.k8s.io;v=v1":                     "406 Status",
		"application/json;as=Table;g=meta.k8s.io;v=v2,*/*;q=0.1":            "200 Widget",
	} {
		a := s.get(inDefault+"/a", "Accept", accept)
		require.Equal(t, want, fmt.Sprintf("%d %s", a.code, a.str("kind")), accept)
	}
}

// A kind may show the age in its own way, as most CustomResourceDefinitions do.
func TestTable_HasOneAge(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Columns = append(w.Columns, registry.Column[Widget]{Name: "Age", Type: "string", Value: func(*Widget) any { return "young" }})
	})
	s.create("a", 3)
	table := s.get(inDefault+"/a", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	require.Equal(t, "Name Size Age <none>", strings.Join([]string{
		table.str("columnDefinitions.0.name"), table.str("columnDefinitions.1.name"), table.str("columnDefinitions.2.name"), table.str("columnDefinitions.3.name"),
	}, " "))
	require.Equal(t, "[a 3 young]", table.str("rows.0.cells"))
}

// In a cluster the kind of a definition has the columns that the definition lists, and no others.
func TestTable_HasNoAgeIfTheKindWantsNone(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.NoAge = true })
	s.create("a", 3)
	for _, path := range []string{inDefault + "/a", inDefault, inDefault + "/a/status"} {
		table := s.get(path, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		require.Equal(t, "Name Size <none>", strings.Join([]string{
			table.str("columnDefinitions.0.name"), table.str("columnDefinitions.1.name"), table.str("columnDefinitions.2.name"),
		}, " "), path)
		require.Equal(t, "[a 3]", table.str("rows.0.cells"), path)
	}
}

// Tables of Kubernetes' events do not begin with their names, which are long.
func TestTable_HasNoNameIfTheKindWantsNone(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.NoName = true
		w.Columns = append(w.Columns, registry.Column[Widget]{Name: "Age", Type: "string", Value: func(*Widget) any { return "young" }})
	})
	s.create("a", 3)
	for _, path := range []string{inDefault + "/a", inDefault} {
		table := s.get(path, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		require.Equal(t, "Size Age <none>", strings.Join([]string{
			table.str("columnDefinitions.0.name"), table.str("columnDefinitions.1.name"), table.str("columnDefinitions.2.name"),
		}, " "), path)
		require.Equal(t, "[3 young]", table.str("rows.0.cells"), path)
	}
}

// The path of an object without a namespace has the same number of segments as that of a list in one.
func TestGet_SubresourceOfAClusterScopedKind(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.Kind.ClusterScoped = true })
	require.Equal(t, 201, s.do("POST", allWidgets, `{"metadata":{"name":"a"},"spec":{"size":1}}`).code)
	status := s.get(allWidgets + "/a/status")
	require.Equal(t, "200 a", fmt.Sprintf("%d %s", status.code, status.str("metadata.name")), status.body)
}

func TestList_PagesAddUpAtOneRevision(t *testing.T) {
	s := newServer(t)
	for i := range 7 {
		s.create(fmt.Sprintf("w%d", i), i)
	}
	var names []string
	next, rev := "", ""
	for page := range 10 {
		a := s.get(inDefault + "?limit=3&continue=" + next)
		require.Equal(t, 200, a.code, a.body)
		if page == 0 {
			rev = a.str("metadata.resourceVersion")
			require.Equal(t, "4", a.str("metadata.remainingItemCount"))
			selected := s.get(inDefault + "?limit=3&labelSelector=size")
			require.Equal(t, "<nil>", selected.str("metadata.remainingItemCount"), "how many more are selected is not known")
			s.create("later", 1)
			require.Equal(t, 200, s.get(inDefault+"?limit=3&resourceVersion=0&continue="+a.str("metadata.continue")).code, "0 is any revision, also the token's")
		}
		require.Equal(t, rev, a.str("metadata.resourceVersion"))
		for i := 0; a.str(fmt.Sprintf("items.%d", i)) != "<none>"; i++ {
			names = append(names, a.str(fmt.Sprintf("items.%d.metadata.name", i)))
		}
		if next = a.str("metadata.continue"); next == "<nil>" {
			require.Equal(t, "<nil>", a.str("metadata.remainingItemCount"), "it is the last page")
			break
		}
	}
	require.Equal(t, []string{"w0", "w1", "w2", "w3", "w4", "w5", "w6"}, names)
}

func TestList_SelectsAndReads(t *testing.T) {
	s := newServer(t)
	first := s.create("a", 1)
	require.Equal(t, 201, s.do("POST", "/apis/example.com/v1/namespaces/other/widgets", `{"metadata":{"name":"b"},"spec":{"size":2,"color":"red"}}`).code)
	s.cached()
	names := func(path string) string {
		t.Helper()
		a := s.get(path)
		require.Equal(t, 200, a.code, a.body)
		require.NotContains(t, a.body, `"items":null`)
		var all []string
		for i := 0; a.str(fmt.Sprintf("items.%d", i)) != "<none>"; i++ {
			all = append(all, a.str(fmt.Sprintf("items.%d.metadata.name", i)))
		}
		return strings.Join(all, ",")
	}
	for path, want := range map[string]string{
		allWidgets: "a,b", inDefault: "a",
		allWidgets + "?labelSelector=size%3Ds1":                                         "a",
		allWidgets + "?labelSelector=size!=s1":                                          "b",
		allWidgets + "?fieldSelector=spec.color%3Dred":                                  "b",
		allWidgets + "?fieldSelector=metadata.name%3Da":                                 "a",
		allWidgets + "?fieldSelector=metadata.namespace%3Dother":                        "b",
		inDefault + "?fieldSelector=metadata.name%3Db":                                  "",
		inDefault + "?fieldSelector=metadata.namespace%3Dother":                         "",
		allWidgets + "?fieldSelector=metadata.name%3Db,metadata.namespace%3Dother":      "b",
		allWidgets + "?resourceVersion=0":                                               "a,b",
		allWidgets + "?resourceVersion=" + first:                                        "a,b",
		allWidgets + "?resourceVersion=" + first + "&resourceVersionMatch=Exact":        "a",
		allWidgets + "?resourceVersion=" + first + "&resourceVersionMatch=NotOlderThan": "a,b",
	} {
		require.Equal(t, want, names(path), path)
	}
	partial := s.get(allWidgets, "Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	require.Equal(t, "PartialObjectMetadataList", partial.str("kind"))
	require.Equal(t, "<nil>", partial.str("items.0.kind"), "watch events decode without it")
	list := s.get(allWidgets)
	require.Equal(t, "WidgetList <nil> <nil>", strings.Join([]string{list.str("kind"), list.str("items.0.kind"), list.str("items.1.apiVersion")}, " "))
	table := s.get(allWidgets, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	require.Equal(t, "a b", table.str("rows.0.cells.0")+" "+table.str("rows.1.cells.0"))
}

// Requests in a namespace must not reach another one whose name begins with that namespace's.
func TestNamespaces_WhoseNamesBeginAlikeAreApart(t *testing.T) {
	const inOther = "/apis/example.com/v1/namespaces/default2/widgets"
	s := newServer(t)
	s.create("a", 1)
	require.Equal(t, 201, s.do("POST", inOther, `{"metadata":{"name":"b"}}`).code)
	watching := s.watch(inDefault + "?watch=1")
	watching.expect("ADDED a")
	require.Equal(t, 200, s.do("PATCH", inOther+"/b", `{"spec":{"size":2}}`, "Content-Type", mergePatch).code)
	list := s.get(inDefault)
	require.Equal(t, "a <none>", list.str("items.0.metadata.name")+" "+list.str("items.1"))
	deleted := s.do("DELETE", inDefault, "")
	require.Equal(t, "a <none>", deleted.str("items.0.metadata.name")+" "+deleted.str("items.1"))
	watching.expect("DELETED a")
	require.Equal(t, 200, s.get(inOther+"/b").code)
}

// A continue token continues its own list and no other, since the client would take the answer for the rest
// of the wrong list.
func TestList_TokensOfAnotherListAreRefused(t *testing.T) {
	other := widgetConfig()
	other.Kind.Group = "example.org"
	others, err := registry.New(other)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, others.Close()) })
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Resources = append(c.Resources, others) })
	s.create("a", 1)
	s.create("b", 1)
	token := "continue=" + s.get(allWidgets+"?limit=1").str("metadata.continue")
	require.Equal(t, 200, s.get(allWidgets+"?"+token).code)
	for _, path := range []string{
		inDefault + "?", "/apis/example.com/v1/zones?", "/apis/example.org/v1/widgets?",
		allWidgets + "?labelSelector=size%3Ds1&", allWidgets + "?fieldSelector=spec.color%3Dred&",
	} {
		a := s.get(path + token)
		require.Equal(t, 400, a.code, path)
		require.Equal(t, "the continue token is of another list: list again without one", a.str("message"), path)
	}
}

func TestErrors_OfReads(t *testing.T) {
	s := newServer(t)
	rev, err := strconv.Atoi(s.create("a", 1))
	require.NoError(t, err)
	s.create("b", 2)
	token := s.get(inDefault + "?limit=1").str("metadata.continue")
	for path, want := range map[string]string{
		inDefault + "/none": "404 NotFound",
		"/apis/example.com/v1/namespaces/default/gadgets": "404 NotFound",
		"/apis/example.com/v2/namespaces/default/widgets": "404 NotFound",
		"/apis/none.com":                                                       "404 NotFound",
		"/watch/apis":                                                          "404 NotFound",
		"/apis/example.com/v1/watch/gadgets":                                   "404 NotFound",
		"/apis/example.com/v1/widgets/a":                                       "404 NotFound",
		"/apis/example.com/v1/namespaces/default/zones":                        "404 NotFound",
		inDefault + "/a/scale":                                                 "404 NotFound",
		inDefault + "/a/status/x":                                              "404 NotFound",
		inDefault + "/a%2Fb":                                                   "400 BadRequest",
		inDefault + "/%2e%2e":                                                  "400 BadRequest",
		inDefault + "?labelSelector=a%20b%20c":                                 "400 BadRequest",
		inDefault + "?fieldSelector=spec.none%3D1":                             "400 BadRequest",
		inDefault + "?fieldSelector=x":                                         "400 BadRequest",
		inDefault + "?limit=-1":                                                "400 BadRequest",
		inDefault + "?resourceVersion=x":                                       "400 BadRequest",
		inDefault + "?resourceVersion=007":                                     "400 BadRequest",
		inDefault + "/a?resourceVersion=007":                                   "400 BadRequest",
		inDefault + "?continue=x":                                              "400 BadRequest",
		allWidgets + "?continue=" + token:                                      "400 BadRequest",
		inDefault + "?labelSelector=a%3Db&continue=" + token:                   "400 BadRequest",
		inDefault + "?resourceVersion=5&continue=" + token:                     "400 BadRequest",
		inDefault + "?resourceVersionMatch=Exact":                              "422 Invalid",
		inDefault + "?resourceVersionMatch=Near&resourceVersion=1":             "422 Invalid",
		inDefault + "?resourceVersionMatch=Exact&resourceVersion=0":            "422 Invalid",
		inDefault + "?resourceVersionMatch=Exact&continue=" + token:            "422 Invalid",
		inDefault + "?sendInitialEvents=true":                                  "422 Invalid",
		inDefault + "?watch=1&sendInitialEvents=true":                          "422 Invalid",
		inDefault + "?watch=1&resourceVersionMatch=NotOlderThan":               "422 Invalid",
		inDefault + "?watch=1&timeoutSeconds=x":                                "400 BadRequest",
		inDefault + "?watch=1&timeoutSeconds=-1":                               "400 BadRequest",
		inDefault + "?limit=x":                                                 "400 BadRequest",
		inDefault + "?a=%zz":                                                   "400 BadRequest",
		inDefault + "?watch=1&timeoutSeconds=9999999999":                       "400 BadRequest",
		inDefault + "?labelSelector=" + strings.Repeat("a", 17<<10):            "400 BadRequest",
		inDefault + "?fieldSelector=spec.color=" + strings.Repeat("a", 17<<10): "400 BadRequest",
		inDefault + "?labelSelector=" + strings.Repeat("a,", 150) + "a":        "400 BadRequest",
	} {
		a := s.get(path)
		require.Equal(t, want, fmt.Sprintf("%d %s", a.code, a.str("reason")), "%s: %s", path, a.body)
		require.Equal(t, "Status v1 Failure", a.str("kind")+" "+a.str("apiVersion")+" "+a.str("status"))
		require.Equal(t, strconv.Itoa(a.code), a.str("code"))
	}
	missing := s.get(inDefault + "/none")
	require.Equal(t, "widgets example.com none", missing.str("details.kind")+" "+missing.str("details.group")+" "+missing.str("details.name"))
	require.Greater(t, rev, 0)
}

// Each contradiction among the parameters of a list or a watch is a cause of its own, as in
// Kubernetes.
func TestErrors_OfListOptionsAreAllTold(t *testing.T) {
	s := newServer(t)
	for query, want := range map[string]string{
		"resourceVersionMatch=Exact&continue=x":                                          "Forbidden Forbidden",
		"resourceVersionMatch=Near&sendInitialEvents=true":                               "Forbidden Forbidden NotSupported",
		"resourceVersionMatch=Near&resourceVersion=1":                                    "NotSupported",
		"watch=1&resourceVersionMatch=Exact":                                             "Forbidden NotSupported",
		"watch=1&resourceVersionMatch=Exact&sendInitialEvents=true":                      "Forbidden NotSupported",
		"watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=false&continue=x":   "Forbidden",
		"watch=1&resourceVersionMatch=NotOlderThan&continue=x&resourceVersion=1&limit=5": "Forbidden Forbidden",
	} {
		a := s.get(inDefault + "?" + query)
		require.Equal(t, "422 ListOptions", fmt.Sprintf("%d %s", a.code, a.str("details.kind")), query)
		var reasons []string
		for i := 0; a.str(fmt.Sprintf("details.causes.%d", i)) != "<none>"; i++ {
			reasons = append(reasons, strings.TrimPrefix(a.str(fmt.Sprintf("details.causes.%d.reason", i)), "FieldValue"))
		}
		require.Equal(t, want, strings.Join(reasons, " "), "%s: %s", query, a.body)
	}
}

func TestErrors_OfRevisionsThatCannotBeHad(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], c *serve.Config) {
		w.Engine.FreshnessTimeout = 1
		w.Engine.Window.MaxEvents = 8
	})
	s.create("a", 1)
	first := s.create("a2", 2)
	for i := range 2000 {
		s.do("PATCH", inDefault+"/a", fmt.Sprintf(`{"spec":{"size":%d}}`, i+10), "Content-Type", "application/merge-patch+json")
	}
	s.cached() // and so has the window moved to its end
	last, err := strconv.Atoi(s.get(inDefault).str("metadata.resourceVersion"))
	require.NoError(t, err)
	future := strconv.Itoa(last + 1000)
	for _, path := range []string{inDefault + "?resourceVersion=" + future, inDefault + "/a?resourceVersion=" + future, inDefault + "?watch=1&resourceVersion=" + future} {
		a := s.get(path)
		require.Equal(t, "504 Timeout", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
		require.Equal(t, "ResourceVersionTooLarge", a.str("details.causes.0.reason"))
		require.Equal(t, "1", a.header.Get("Retry-After"))
	}
	tooOld := func(a answer) {
		t.Helper()
		require.Equal(t, "410 Expired", a.str("code")+" "+a.str("reason"), a.body)
		require.Equal(t, "OldestResourceVersion", a.str("details.causes.0.reason"))
		oldest := a.str("details.causes.0.message")
		require.Equal(t, 200, s.get(inDefault+"?resourceVersionMatch=Exact&resourceVersion="+oldest).code)
	}
	list := s.get(inDefault + "?resourceVersionMatch=Exact&resourceVersion=" + first)
	require.Equal(t, 410, list.code)
	tooOld(list)
	// As in Kubernetes, a watch tells it by an event, for which clients list: some repeat what is refused.
	for _, accept := range []string{"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
		w := s.watch(inDefault+"?watch=1&allowWatchBookmarks=1&resourceVersion="+first, "Accept", accept)
		f, _ := w.next()
		require.Equal(t, "ERROR", f.Type)
		tooOld(answer{body: string(f.Object)})
		_, more := w.next()
		require.False(t, more)
	}
	// A browser's EventSource sends an answered request again, and tells the page that it was refused.
	events := s.get(inDefault+"?watch=1&resourceVersion="+first, "Accept", "text/event-stream")
	require.Equal(t, 410, events.code)
	tooOld(events)
}

// A client that accepts pages of several states need not begin again.
func TestList_ExpiredPageOffersTheRestInTheNewestState(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"a", "b", "d"} {
		s.create(name, 1)
	}
	first := s.get(inDefault + "?limit=1")
	s.create("c", 1)
	newest, err := s.widgets.Engine().Backend().Revision(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.widgets.Engine().Compact(t.Context(), newest))
	require.NoError(t, s.widgets.Engine().WaitForRevision(t.Context(), newest))
	expired := s.get(inDefault + "?limit=1&continue=" + first.str("metadata.continue"))
	require.Equal(t, "410 Expired", fmt.Sprintf("%d %s", expired.code, expired.str("reason")), expired.body)
	next := expired.str("metadata.continue")
	for _, name := range []string{"b", "c", "d"} {
		a := s.get(inDefault + "?limit=1&continue=" + next)
		require.Equal(t, 200, a.code, a.body)
		require.Equal(t, name, a.str("items.0.metadata.name"))
		require.Equal(t, newest.String(), a.str("metadata.resourceVersion"))
		next = a.str("metadata.continue")
	}
	require.Equal(t, "<nil>", next)
	require.Equal(t, 400, s.get(allWidgets+"?limit=1&continue="+expired.str("metadata.continue")).code, "it is of this list alone")
}

// Lists share encodings while there is room, and leave the other half to watches.
func TestList_SharesEncodingsWhileThereIsRoom(t *testing.T) {
	const limit = 20_000 // of about forty widgets
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Limits.EncodingBytes = limit })
	for i := range 10 {
		s.create(fmt.Sprint("w", i), i)
	}
	first := s.get(inDefault)
	before := s.handler.Stats()
	require.Equal(t, first.body, s.get(inDefault).body)
	after := s.handler.Stats()
	require.Equal(t, before.EncodingMisses, after.EncodingMisses)
	require.Equal(t, before.EncodingHits+10, after.EncodingHits)
	for i := range 200 {
		s.create(fmt.Sprint("x", i), i)
	}
	before = s.handler.Stats()
	require.Contains(t, s.get(inDefault).body, `"x199"`)
	after = s.handler.Stats()
	require.Less(t, after.EncodingBytes, limit/2+2000)
	require.Equal(t, before.EncodingHits+before.EncodingMisses+210, after.EncodingHits+after.EncodingMisses, "what is not kept counts, too")
}

// A list that stops in the middle, because the http.Server's context ends, must not look complete.
func TestList_IsBrokenOffWhenTheServersContextEnds(t *testing.T) {
	for name, header := range map[string]string{"plain": "identity", "compressed": "gzip"} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			cfg := widgetConfig()
			cfg.Columns = []registry.Column[Widget]{{Name: "Size", Type: "integer", Value: func(w *Widget) any {
				if w.Spec.Size == 499 {
					stop()
				}
				return w.Spec.Size
			}}}
			widgets, err := registry.New(cfg)
			require.NoError(t, err)
			defer func() { require.NoError(t, widgets.Close()) }()
			for i := range 1500 {
				w := Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("w%04d", i)}, Spec: WidgetSpec{Size: i % 500}}
				_, err := widgets.Create(t.Context(), w, registry.WriteOptions{})
				require.NoError(t, err)
			}
			handler, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}, CompressAbove: 1000})
			require.NoError(t, err)
			h := httptest.NewUnstartedServer(handler)
			h.Config.BaseContext = func(net.Listener) context.Context { return ctx }
			handler.Harden(h.Config)
			h.Start()
			defer h.Close()
			s := &server{t: t, url: h.URL, client: h.Client()}
			require.Contains(t, s.get(inDefault).body, `"w1499"`, "any other is whole")
			resp := s.send(t.Context(), "GET", inDefault, "", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1", "Accept-Encoding", header)
			defer resp.Body.Close()
			_, err = io.ReadAll(resp.Body)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		})
	}
}
