package remote_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// A replica learns from its origin which kinds there are.
func TestKinds_AreThoseThatAreServed(t *testing.T) {
	origin := newServer(t, func(cfg *registry.Config[Widget]) {
		cfg.Kind.ShortNames, cfg.Kind.Categories = []string{"wd"}, []string{"all"}
	})
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.url})
	require.NoError(t, err)
	require.Len(t, kinds, 1)
	require.Equal(t, registry.Kind{
		Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets", Singular: "widget",
		ShortNames: []string{"wd"}, Categories: []string{"all"}, Status: true,
	}, kinds[0].Kind)
	require.Contains(t, string(kinds[0].Schema), `"size"`)
}

func TestKinds_TellWhichTakeNoWrites(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		origin := newServer(t, func(cfg *registry.Config[Widget]) { cfg.ReadOnly = readOnly })
		kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.url})
		require.NoError(t, err)
		require.Equal(t, readOnly, kinds[0].ReadOnly)
	}
}

// A group prefers one version, which need not have all of its kinds.
func TestKinds_AreOfEachVersionOfAGroup(t *testing.T) {
	version := func(name string, resources ...string) string {
		var all []string
		for _, r := range resources {
			all = append(all, `{"resource":"`+r+`","responseKind":{"kind":"K"},"verbs":["list","watch"]}`)
		}
		return `{"version":"` + name + `","resources":[` + strings.Join(all, ",") + `]}`
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis" {
			_, _ = io.WriteString(w, `{}`) // it has no schemas
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"example.com"},"versions":[`+version("v1", "widgets")+`,`+version("v1alpha1", "racks", "widgets")+`]}]}`)
	}))
	defer origin.Close()
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.URL})
	require.NoError(t, err)
	var names []string
	for _, k := range kinds {
		names = append(names, k.Kind.Plural+" "+k.Kind.Version)
	}
	require.Equal(t, []string{"widgets v1", "racks v1alpha1"}, names)
}

// A kind of the core group has other paths: for discovery, its schema, reads and writes.
func TestKinds_OfTheCoreGroup(t *testing.T) {
	origin := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Kind.Group = "" })
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.url})
	require.NoError(t, err)
	require.Len(t, kinds, 1)
	require.Equal(t, "v1 widgets", kinds[0].Kind.GroupVersionKind().GroupVersion().String()+" "+kinds[0].Kind.Plural)
	require.Contains(t, string(kinds[0].Schema), `"size"`)

	format, err := registry.FormatOf(registry.Config[Widget]{Kind: kinds[0].Kind})
	require.NoError(t, err)
	b, err := remote.New(format, remote.Config{URL: origin.url})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	replica := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Kind, cfg.Engine.Backend = kinds[0].Kind, b })
	made := replica.create("a", 3)
	got, err := origin.store.Engine().Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, made.Revision, got.Revision)
	require.Len(t, follow(t, replica.store.Engine(), made.Revision-1, made.Revision), 1)
}

// A server without aggregated discovery answers with its groups alone. That it has no kinds, which
// a replica would take for true, is not what it says.
func TestKinds_RefusesAServerThatDoesNotTellThem(t *testing.T) {
	groups := `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}]}]}`
	for path, documents := range map[string]map[string]string{
		"/apis": {"/api": `{"kind":"APIVersions","versions":[]}`, "/apis": groups},
		"/api":  {"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/apis": `{"items":[]}`},
	} {
		origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, documents[r.URL.Path])
		}))
		defer origin.Close()
		kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.URL})
		require.ErrorIs(t, err, store.ErrUnsupported, path)
		require.ErrorContains(t, err, path+" (apidiscovery.k8s.io/v2)")
		require.Empty(t, kinds)
	}
}

// A server of custom resources alone may not have the path of the core group's versions.
func TestKinds_NeedNoCoreGroup(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api":
			http.NotFound(w, r)
		case "/apis":
			_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[{"resource":"widgets","responseKind":{"kind":"Widget"},"verbs":["list","watch"]}]}]}]}`)
		default:
			_, _ = io.WriteString(w, `{}`)
		}
	}))
	defer origin.Close()
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.URL + "/"})
	require.NoError(t, err)
	require.Len(t, kinds, 1)
}

// A server behind the API server may have no document of its schemas.
func TestKinds_NeedNoSchemas(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[{"resource":"widgets","responseKind":{"kind":"Widget"},"verbs":["list","watch"]}]}]}]}`)
	}))
	defer origin.Close()
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.URL})
	require.NoError(t, err)
	require.Len(t, kinds, 1)
	require.Empty(t, kinds[0].Schema)
}

// The API server's schema of a custom resource refers to that of metadata, which every server
// has. A schema that refers to others is of no use alone.
func TestKinds_SchemasMayReferToThatOfMetadata(t *testing.T) {
	const metadata = `#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`
	component := func(kind, properties string) string {
		return `"com.example.v1.` + kind + `":{"type":"object","properties":{` + properties + `},"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"` + kind + `"}]}`
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis" {
			_, _ = io.WriteString(w, `{"components":{"schemas":{`+strings.Join([]string{
				component("Widget", `"metadata":{"description":"Who.","allOf":[{"$ref":"`+metadata+`"}],"default":{}},"size":{"type":"integer","maximum":9007199254740993}`),
				component("Rack", `"inner":{"type":"object","properties":{"metadata":{"$ref":"`+metadata+`"}}}`),
				component("Deployment", `"spec":{"$ref":"#/components/schemas/Spec"}`),
			}, ",")+`}}}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
			{"resource":"widgets","responseKind":{"kind":"Widget"},"verbs":["list","watch"]},
			{"resource":"racks","responseKind":{"kind":"Rack"},"verbs":["list","watch"]},
			{"resource":"deployments","responseKind":{"kind":"Deployment"},"verbs":["list","watch"]}]}]}]}`)
	}))
	defer origin.Close()
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.URL})
	require.NoError(t, err)
	require.Len(t, kinds, 3)
	properties := func(schema []byte) string {
		var s struct{ Properties json.RawMessage }
		require.NoError(t, json.Unmarshal(schema, &s))
		return string(s.Properties)
	}
	require.JSONEq(t, `{"metadata":{"description":"Who.","type":"object","default":{}},"size":{"type":"integer","maximum":9007199254740993}}`, properties(kinds[0].Schema))
	require.Contains(t, string(kinds[0].Schema), "9007199254740993")
	require.JSONEq(t, `{"inner":{"type":"object","properties":{"metadata":{"type":"object"}}}}`, properties(kinds[1].Schema))
	require.Nil(t, kinds[2].Schema)
}

func TestKinds_OfWhatIsNoServer(t *testing.T) {
	_, err := remote.Kinds(t.Context(), remote.Config{URL: frames(t, "200 <html>").URL})
	require.ErrorContains(t, err, "does not parse")
	var status *remote.StatusError
	_, err = remote.Kinds(t.Context(), remote.Config{URL: frames(t, "403 no").URL})
	require.ErrorAs(t, err, &status)
	require.ErrorIs(t, err, backend.ErrDenied)
}

// The end of RequestTimeout is the server's failure, and not that of the caller's context.
func TestKinds_OfAServerThatDoesNotAnswer(t *testing.T) {
	for _, begins := range []bool{false, true} {
		t.Run(fmt.Sprint("begins ", begins), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if begins {
					w.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(w).Flush() // the client may be gone
				}
				<-r.Context().Done()
			}))
			defer s.Close()
			_, err := remote.Kinds(t.Context(), remote.Config{URL: s.URL, RequestTimeout: 20 * time.Millisecond})
			require.ErrorIs(t, err, backend.ErrUnavailable)
			require.ErrorContains(t, err, "remote.Config.RequestTimeout")
		})
	}
}

// A kind has the scope and the status subresource that discovery names.
func TestKinds_HaveTheScopeAndStatusOfDiscovery(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis" {
			_, _ = io.WriteString(w, `{}`) // it has no schemas
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
			{"resource":"racks","scope":"Cluster","verbs":["list","watch"],"subresources":[{"subresource":"scale"}]},
			{"resource":"widgets","scope":"Namespaced","verbs":["list","watch"],"subresources":[{"subresource":"status"},{"subresource":"scale"}]}]}]}]}`)
	}))
	defer origin.Close()
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.URL})
	require.NoError(t, err)
	require.Len(t, kinds, 2)
	require.Equal(t, []bool{true, false}, []bool{kinds[0].Kind.ClusterScoped, kinds[0].Kind.Status})
	require.Equal(t, []bool{false, true}, []bool{kinds[1].Kind.ClusterScoped, kinds[1].Kind.Status})
}

// A kind has the subresources by which its objects change, whatever they are, and no others.
func TestKinds_HaveThePartsOfDiscovery(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api" {
			_, _ = io.WriteString(w, `{}`)
			return
		}
		const pod = `"responseKind":{"group":"","version":"v1","kind":"Pod"}`
		_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":""},"versions":[{"version":"v1","resources":[
			{"resource":"pods",`+pod+`,"verbs":["list","watch"],"subresources":[
				{"subresource":"status",`+pod+`,"verbs":["get","patch","update"]},
				{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]},
				{"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]},
				{"subresource":"log",`+pod+`,"verbs":["get"]},
				{"subresource":"resize",`+pod+`,"verbs":["get","patch","update"]}, {"subresource":"resize",`+pod+`,"verbs":["update"]},
				{"subresource":"finalize",`+pod+`,"verbs":["update","create"]}, {"subresource":"Odd/1",`+pod+`,"verbs":["update"]}]}]}]}]}`)
	}))
	defer origin.Close()
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.URL})
	require.NoError(t, err)
	require.Len(t, kinds, 1)
	require.True(t, kinds[0].Kind.Status)
	require.Equal(t, []registry.Part{{Name: "resize", Verbs: []string{"get", "patch", "update"}}, {Name: "finalize", Verbs: []string{"update"}}}, kinds[0].Kind.Parts)
}

// A kind that cannot be listed or watched cannot be followed.
func TestKinds_CanBeListedAndWatched(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis" {
			_, _ = io.WriteString(w, `{}`) // it has no schemas
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
			{"resource":"reviews","responseKind":{"kind":"Review"},"verbs":["create"]},
			{"resource":"lists","responseKind":{"kind":"ListOnly"},"verbs":["list"]},
			{"resource":"watches","responseKind":{"kind":"WatchOnly"},"verbs":["watch"]},
			{"resource":"widgets","responseKind":{"kind":"Widget"},"verbs":["get","list","watch"]}]}]}]}`)
	}))
	defer origin.Close()
	kinds, err := remote.Kinds(t.Context(), remote.Config{URL: origin.URL})
	require.NoError(t, err)
	require.Len(t, kinds, 1)
	require.Equal(t, "widgets", kinds[0].Kind.Plural)
}
