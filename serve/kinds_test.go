package serve_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// newLater returns the store of a kind that the fixture's server does not serve.
func newLater(t *testing.T, edit ...func(*registry.Config[Widget])) *registry.Store[Widget] {
	t.Helper()
	cfg := widgetConfig()
	cfg.Kind = registry.Kind{Group: "later.example.com", Version: "v1", Kind: "Doodad"}
	for _, e := range edit {
		e(&cfg)
	}
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

const laterPath = "/apis/later.example.com/v1/doodads"

func TestAdd_ServesAndDescribesTheKind(t *testing.T) {
	s := newServer(t)
	require.Equal(t, 404, s.get(laterPath).code)
	require.NoError(t, s.handler.Add(newLater(t)))
	var served []string
	for _, kind := range s.handler.Kinds() {
		served = append(served, kind.GroupResource().String())
	}
	require.Equal(t, []string{"widgets.example.com", "zones.example.com", "doodads.later.example.com"}, served)
	require.Equal(t, 200, s.get(laterPath).code)
	require.Equal(t, "Doodad", s.get("/apis/later.example.com/v1").str("resources.0.kind"))
	require.Contains(t, s.get("/openapi/v3").body, "later.example.com")
	require.Equal(t, 201, s.do("POST", "/apis/later.example.com/v1/namespaces/a/doodads", `{"metadata":{"name":"g"}}`).code)
	require.Equal(t, 200, s.get("/apis/example.com/v1/widgets").code, "the others stay")
}

// What acts on the objects of all kinds finds each version of a kind, and no subresource.
func TestResources_AreThoseOfAllKinds(t *testing.T) {
	s := newServer(t)
	require.NoError(t, s.handler.Add(newLater(t)))
	kinds := s.handler.Kinds()
	resources := s.handler.Resources()
	require.Len(t, resources, len(kinds))
	for i, r := range resources {
		require.Equal(t, kinds[i], r.Info().Kind)
		require.Empty(t, r.Info().Subresource)
	}
	require.Equal(t, 201, s.do("POST", "/apis/later.example.com/v1/namespaces/a/doodads", `{"metadata":{"name":"g"}}`).code)
	last := resources[len(resources)-1]
	deleted, err := last.DeleteCollection(t.Context(), engine.ListOptions{Prefix: "a"}, registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, deleted.Len())
	require.Equal(t, "[]", s.get(laterPath).str("items"))
}

func TestAdd_RefusesWhatIsServed(t *testing.T) {
	s := newServer(t)
	later := newLater(t)
	require.NoError(t, s.handler.Add(later))
	for name, again := range map[string]serve.Provider{
		"the same":        later,
		"of its resource": newLater(t),
		"of its kind": newLater(t, func(c *registry.Config[Widget]) {
			c.Kind.Plural = "others"
		}),
		"nil":           nil,
		"a nil pointer": (*registry.Store[Widget])(nil),
	} {
		t.Run(name, func(t *testing.T) {
			var wrong *engine.ConfigError
			require.ErrorAs(t, s.handler.Add(again), &wrong)
			require.Equal(t, "Resources", wrong.Field)
		})
	}
	require.Equal(t, 404, s.get("/apis/later.example.com/v1/others").code, "nothing has changed")
	require.Equal(t, 200, s.get(laterPath).code)
}

func TestRemove_LeavesNothingOfTheKind(t *testing.T) {
	s := newServer(t)
	later := newLater(t)
	require.NoError(t, s.handler.Add(later))
	s.handler.Remove(later)
	require.Equal(t, 404, s.get(laterPath).code)
	require.Equal(t, 404, s.get("/apis/later.example.com/v1").code)
	require.NotContains(t, s.get("/apis").body, "later.example.com")
	s.handler.Remove(later, nil)
	require.NoError(t, s.handler.Add(later), "it may come again")
	s.handler.Remove(s.widgets, later)
	require.Equal(t, 200, s.get("/apis/example.com/v1/zones").code)
	require.Equal(t, 404, s.get("/apis/example.com/v1/widgets").code, "what the configuration named can go, too")
}

// A program may bring other kinds later.
func TestRemove_OfTheLastKindLeavesAServer(t *testing.T) {
	later := newLater(t)
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{later}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	code := func(path string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, http.NoBody))
		return w.Code
	}
	handler.Remove(later)
	require.Equal(t, []int{404, 200, 200}, []int{code(laterPath), code("/apis"), code("/openapi/v2")})
	require.NoError(t, handler.Add(later))
	require.Equal(t, 200, code(laterPath))
}

// providers is a provider that cannot be compared.
type providers []serve.Provider

func (p providers) Resources() (all []registry.Resource) {
	for _, of := range p {
		all = append(all, of.Resources()...)
	}
	return all
}

func TestRemove_ProvidersThatCannotBeCompared(t *testing.T) {
	s := newServer(t)
	require.NoError(t, s.handler.Add(providers{newLater(t)}))
	s.handler.Remove(providers{})
	// The type can be compared, and the value cannot.
	odd := wrapped{newLater(t, func(c *registry.Config[Widget]) { c.Kind.Kind = "Gizmo" }), []int{1}}
	require.NoError(t, s.handler.Add(odd))
	s.handler.Remove(odd)
	require.Equal(t, 200, s.get("/apis/later.example.com/v1/gizmos").code)
	require.Equal(t, 200, s.get(laterPath).code)
}

// wrapped is a provider with something of the program's.
type wrapped struct {
	serve.Provider
	with any
}

// A watch of a kind that is removed lasts as long as its store.
func TestRemove_WatchesGoOnUntilTheStoreIsClosed(t *testing.T) {
	s := newServer(t)
	cfg := widgetConfig()
	cfg.Kind = registry.Kind{Group: "later.example.com", Version: "v1", Kind: "Doodad"}
	later, err := registry.New(cfg)
	require.NoError(t, err)
	require.NoError(t, s.handler.Add(later))
	w := s.watch(laterPath + "?watch=1")
	s.handler.Remove(later)
	_, err = later.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"}}, registry.WriteOptions{})
	require.NoError(t, err)
	w.expect("ADDED g")
	require.NoError(t, later.Close())
	f, ok := w.next()
	require.True(t, !ok || f.Type == "ERROR", "%v", f)
}

func TestReplace_NoRequestFindsNeither(t *testing.T) {
	s := newServer(t)
	first, second := newLater(t), newLater(t)
	require.NoError(t, s.handler.Add(first))
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if code := s.get(laterPath).code; code != 200 {
						t.Errorf("got %d", code)
						return
					}
				}
			}
		})
	}
	for range 20 {
		require.NoError(t, s.handler.Replace(first, second))
		first, second = second, first
	}
	close(stop)
	readers.Wait()
	other := newLater(t, func(c *registry.Config[Widget]) { c.Kind = s.widgets.Resources()[0].Info().Kind })
	require.Error(t, s.handler.Replace(first, other), "others have that name")
	require.Equal(t, 200, s.get(laterPath).code, "and nothing has changed")
}

// A client that meets a store which has been closed comes back, and finds the one in its place.
func TestReplace_TakesOverFromAStoreThatWasClosed(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		t.Run(fmt.Sprint("noCache=", noCache), func(t *testing.T) {
			s := newServer(t)
			first := newLater(t, func(c *registry.Config[Widget]) { c.Engine.NoCache = noCache })
			require.NoError(t, s.handler.Add(first))
			s.becomes("/readyz", "ok")
			require.NoError(t, first.Close())
			const inA = "/apis/later.example.com/v1/namespaces/a/doodads"
			ask := func() []answer {
				return []answer{
					s.do("POST", inA, `{"metadata":{"name":"g"}}`), s.get(inA + "/g"), s.get(inA), s.get(laterPath + "?watch=1&timeoutSeconds=1"),
					s.do("PATCH", inA+"/g", `{"spec":{"size":2}}`, "Content-Type", mergePatch), s.do("DELETE", inA+"/g", ""), s.do("DELETE", inA, ""),
				}
			}
			for _, a := range ask() {
				require.Equal(t, "429 TooManyRequests 1", fmt.Sprintf("%d %s %s", a.code, a.str("reason"), a.header.Get("Retry-After")), a.body)
			}
			require.Contains(t, s.get("/readyz").body, "[-]storage failed: kinds that are closed: 1\n")
			require.NoError(t, s.handler.Replace(first, newLater(t)))
			require.Equal(t, "ok", s.get("/readyz").body)
			for i, a := range ask() {
				require.Less(t, a.code, 300, "request %d: %s", i, a.body)
			}
		})
	}
}

// crowd is a provider of so many resources that a change of the kinds beside them takes long enough to
// meet another one.
type crowd struct{ like registry.Resource }

func (c crowd) Resources() (all []registry.Resource) {
	for i := range 2000 {
		info := *c.like.Info()
		info.Kind.Kind, info.Kind.ListKind, info.Kind.Plural = fmt.Sprint("Crowd", i), fmt.Sprintf("Crowd%dList", i), fmt.Sprint("crowd", i)
		all = append(all, described{c.like, &info})
	}
	return all
}

// described is a resource with another description.
type described struct {
	registry.Resource
	info *registry.Info
}

func (d described) Info() *registry.Info { return d.info }

func TestAdd_ManyAtOnce(t *testing.T) {
	s := newServer(t)
	require.NoError(t, s.handler.Add(crowd{newLater(t).Resources()[0]}))
	var all sync.WaitGroup
	for _, plural := range []string{"as", "bs", "cs", "ds"} {
		store := newLater(t, func(c *registry.Config[Widget]) { c.Kind.Kind, c.Kind.Plural = "K"+plural, plural })
		all.Go(func() {
			for range 10 {
				if err := s.handler.Add(store); err != nil {
					t.Error(err)
				}
				s.handler.Remove(store)
			}
			if err := s.handler.Add(store); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, plural := range []string{"as", "bs", "cs", "ds"} {
		require.Equal(t, 200, s.get("/apis/later.example.com/v1/"+plural).code)
	}
}

// Whatever a client asks of a version that is deprecated, the answer warns of that.
func TestDeprecated_EachAnswerWarns(t *testing.T) {
	s := newServer(t, func(cfg *registry.Config[Widget], _ *serve.Config) { cfg.Deprecated = `use "v2"` })
	want := []string{`299 - "use \"v2\""`}
	for _, r := range []struct{ method, path, body string }{
		{"POST", inDefault, `{"metadata":{"name":"w"},"spec":{"size":1}}`},
		{"POST", inDefault, `{"metadata":{"name":"w"},"spec":{"size":-1}}`},
		{"GET", inDefault + "/w", ""}, {"GET", inDefault + "/w/status", ""}, {"GET", inDefault + "/none", ""}, {"GET", allWidgets, ""}, {"GET", allWidgets + "?limit=x", ""},
		{"GET", allWidgets + "?watch=true&timeoutSeconds=1", ""},
		{"PUT", allWidgets, "{}"}, {"DELETE", inDefault + "/w", ""},
	} {
		require.Equal(t, want, s.do(r.method, r.path, r.body).header.Values("Warning"), "%s %s", r.method, r.path)
	}
	require.Empty(t, s.do("GET", "/apis/example.com/v1/zones", "").header.Values("Warning"))
	require.Empty(t, s.do("GET", "/apis/example.com/v1", "").header.Values("Warning"))
}

func TestListKind_IsOfListsAndInOpenAPI(t *testing.T) {
	s := newServer(t, func(cfg *registry.Config[Widget], _ *serve.Config) { cfg.Kind.ListKind = "Assortment" })
	require.Contains(t, s.do("GET", allWidgets, "").body, `{"kind":"Assortment","apiVersion":"example.com/v1",`)
	document := s.do("GET", "/openapi/v3/apis/example.com/v1", "").body
	require.Contains(t, document, `"com.example.v1.Assortment":`)
	require.NotContains(t, document, "WidgetList")
	other, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Assortment"}})
	require.NoError(t, err)
	defer other.Close()
	require.ErrorIs(t, s.handler.Add(other), engine.ErrConfig, "clients could not tell them apart")
}
