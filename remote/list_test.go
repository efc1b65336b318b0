package remote_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// paging is a server that returns one page for each token, the first for none, whatever the
// limit is, and watches that have one event.
func paging(t *testing.T, page func(token string) string, edit ...func(*remote.Config)) *remote.Backend {
	t.Helper()
	f := front(t, "http://origin.localhost", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		if r.URL.Query().Has("watch") {
			_, _ = io.WriteString(w, event("MODIFIED", "c", 6)+gone) // the client may be gone
			return
		}
		_, _ = io.WriteString(w, page(r.URL.Query().Get("continue")))
	})
	return backendAt(t, f.URL, edit...)
}

// pageOf is a page of one object, next the token of the page after it.
func pageOf(name string, rev int, next string) string {
	return fmt.Sprintf(`{"metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`, rev, next, object(name, 3))
}

// threePages are the pages of a list of three objects.
func threePages(token string) string {
	switch token {
	case "":
		return pageOf("a", 5, "second")
	case "second":
		return pageOf("b", 5, "third")
	}
	return pageOf("c", 5, "")
}

// A list without a limit is complete, even if the server, or a gateway before it, returns
// pages nevertheless.
func TestList_WithoutALimitReadsAllPages(t *testing.T) {
	b := paging(t, threePages)
	keys := func(opts backend.ListOptions) (keys []string) {
		list, err := b.List(t.Context(), opts)
		require.NoError(t, err)
		require.Equal(t, store.Revision(5), list.Revision)
		require.Empty(t, list.Continue)
		require.Zero(t, list.Remaining)
		for _, o := range list.Items {
			keys = append(keys, o.Key)
		}
		return keys
	}
	require.Equal(t, []string{"default/a", "default/b", "default/c"}, keys(backend.ListOptions{}))
	require.Equal(t, []string{"default/b", "default/c"}, keys(backend.ListOptions{Start: "default/b"}))
	require.Equal(t, []string{"default/b", "default/c"}, keys(backend.ListOptions{Continue: "remote:second"}))

	first, err := b.List(t.Context(), backend.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.Len(t, first.Items, 1)
	require.Equal(t, "remote:second", first.Continue)
}

// A watch knows the previous state of every object, also of those of later pages.
func TestWatch_KnowsWhatEveryPageHad(t *testing.T) {
	b := paging(t, threePages)
	notify, notified := bell()
	w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, Notify: notify})
	require.NoError(t, err)
	defer w.Close()
	batch, err := w.Next(1)
	for err == nil && len(batch.Events) == 0 {
		<-notified
		batch, err = w.Next(1)
	}
	require.NoError(t, err)
	require.NotNil(t, batch.Events[0].Prev)
	require.Equal(t, store.Revision(3), batch.Events[0].Prev.Revision)
}

// twoPages is a server of two pages, which tell these storages.
func twoPages(t *testing.T, firstStorage, secondStorage, second string) *remote.Backend {
	t.Helper()
	s := front(t, "http://origin.localhost", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		storage, page := firstStorage, pageOf("a", 5, "second")
		if r.URL.Query().Get("continue") == "second" {
			storage, page = secondStorage, second
		}
		w.Header().Set(registry.StorageHeader, storage)
		_, _ = io.WriteString(w, page)
	})
	return backendAt(t, s.URL)
}

// A page that does not tell its storage, as through some of several proxies, is of the same.
func TestList_PagesNeedNotTellTheirStorage(t *testing.T) {
	for _, told := range [][2]string{{"one", ""}, {"", "one"}, {"", ""}} {
		list, err := twoPages(t, told[0], told[1], pageOf("b", 5, "")).List(t.Context(), backend.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 2)
		require.Equal(t, told[0], list.StoreID)
	}
}

// Pages that are of several states are not a list: a new one may be whole.
func TestList_OfPagesThatDoNotFit(t *testing.T) {
	for _, c := range []struct{ name, second, storage, problem string }{
		{"revision", pageOf("b", 6, ""), "one", "the revisions 5 and 6"},
		{"storage", pageOf("b", 5, ""), "two", `the storages "one" and "two"`},
		{"the same page again", pageOf("b", 5, "second"), "one", "do not end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := twoPages(t, "one", c.storage, c.second).List(t.Context(), backend.ListOptions{})
			require.ErrorIs(t, err, backend.ErrUnavailable)
			require.ErrorContains(t, err, c.problem)
		})
	}
}

// MaxListBytes bounds the pages together: a server whose pages never end takes no more memory.
func TestList_PagesAreBoundedTogether(t *testing.T) {
	pages := 0
	b := paging(t, func(token string) string {
		pages++
		return pageOf("a", 5, fmt.Sprint("after ", pages))
	}, func(c *remote.Config) { c.MaxListBytes = 10_000 })
	_, err := b.List(t.Context(), backend.ListOptions{})
	var size *remote.SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, "MaxListBytes", size.Field)
	require.Equal(t, 10_000, size.Limit)
	require.Less(t, pages, 100)
}

// All pages of a list that begins at a key are of one state, and the last one says that none remain.
func TestList_PagesFromAKeyAreOfOneState(t *testing.T) {
	origin := originWith(t, "a", "b", "d")
	b := backendAt(t, origin.url)
	first, err := b.List(t.Context(), backend.ListOptions{Start: "default/b", Limit: 1})
	require.NoError(t, err)
	origin.create("c", 1)
	last, err := b.List(t.Context(), backend.ListOptions{Start: "default/b", Limit: 1, Continue: first.Continue})
	require.NoError(t, err)
	for page, key := range map[*backend.List]string{first: "default/b", last: "default/d"} {
		require.Len(t, page.Items, 1)
		require.Equal(t, key, page.Items[0].Key)
		require.Equal(t, first.Revision, page.Revision)
	}
	require.Equal(t, 1, first.Remaining)
	require.Zero(t, last.Remaining)
	require.Empty(t, last.Continue)
}

// A list of several pages expires as one page does.
func TestList_ExpiresBetweenPages(t *testing.T) {
	s := front(t, "http://origin.localhost", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		if r.URL.Query().Get("continue") == "second" {
			w.WriteHeader(http.StatusGone)
			return
		}
		_, _ = io.WriteString(w, pageOf("a", 5, "second"))
	})
	b := backendAt(t, s.URL)
	_, err := b.List(t.Context(), backend.ListOptions{})
	var expired *store.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.Equal(t, store.Revision(5), expired.Requested)
	var continued *backend.ExpiredContinueError
	require.NotErrorAs(t, err, &continued, "the caller has no token")
	_, err = b.List(t.Context(), backend.ListOptions{Continue: "remote:first"})
	require.ErrorAs(t, err, &continued)
}

// A list under a key is of that object alone, whatever is before it. Engines without a cache
// read so what has this key.
func TestList_UnderAKeyOfOneObject(t *testing.T) {
	origin := originWith(t, "a", "b", "c")
	b := backendAt(t, origin.url)
	list, err := b.List(t.Context(), backend.ListOptions{Prefix: "default/b", Limit: 1})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "default/b", list.Items[0].Key)
	require.Empty(t, list.Continue)

	e := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend, cfg.Engine.NoCache = b, true }).store.Engine()
	page, err := e.List(t.Context(), engine.ListOptions{Key: "default/b"})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	o, err := e.Get(t.Context(), "default/b", engine.GetOptions{Read: engine.Exactly(list.Revision)})
	require.NoError(t, err)
	require.Equal(t, "default/b", o.Key)
}

// Lists and watches under a prefix ask for the smallest collection that has it.
func TestBackend_AsksForTheCollectionOfThePrefix(t *testing.T) {
	const base = "/apis/example.com/v1"
	for _, c := range []struct {
		prefix  string
		cluster bool
		want    string
	}{
		{"", false, base + "/widgets"},
		{"default", false, base + "/namespaces/default/widgets"},
		{"default/", false, base + "/namespaces/default/widgets"},
		{"default/a", false, base + "/namespaces/default/widgets metadata.name=a"},
		{"default/a/b", false, base + "/namespaces/default/widgets"},
		{"", true, base + "/widgets"},
		{"a", true, base + "/widgets metadata.name=a"},
	} {
		t.Run(fmt.Sprintf("%q %v", c.prefix, c.cluster), func(t *testing.T) {
			var asked []string
			cfg := widgets(new(atomic.Int64))
			cfg.Kind.ClusterScoped = c.cluster
			format, err := registry.FormatOf(cfg)
			require.NoError(t, err)
			b, err := remote.New(format, remote.Config{URL: "http://origin.localhost", Client: &http.Client{
				Transport: pretended(func(r *http.Request) (*http.Response, error) {
					asked = append(asked, strings.TrimSpace(r.URL.Path+" "+r.URL.Query().Get("fieldSelector")))
					return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"5"},"items":[]}`))
				}),
			}})
			require.NoError(t, err)
			defer func() { require.NoError(t, b.Close()) }()
			_, err = b.List(t.Context(), backend.ListOptions{Prefix: c.prefix})
			require.NoError(t, err)
			w, err := b.Watch(t.Context(), backend.WatchOptions{Prefix: c.prefix, From: 5, NoPrev: true, Notify: func() {}})
			require.NoError(t, err)
			w.Close()
			require.Equal(t, []string{c.want, c.want}, asked[:2])
		})
	}
}

// A number of remaining objects that cannot be is unknown, if there is a further page.
func TestList_RemainingObjectsThatCannotBe(t *testing.T) {
	for meta, want := range map[string]int{
		`"continue":"next","remainingItemCount":3`:  3,
		`"continue":"next","remainingItemCount":0`:  0,
		`"continue":"next","remainingItemCount":-3`: -1,
		`"continue":"next"`:                         -1,
		`"remainingItemCount":-3`:                   0,
	} {
		b := backendAt(t, frames(t, `200 {"metadata":{"resourceVersion":"5",`+meta+`},"items":[]}`).URL)
		list, err := b.List(t.Context(), backend.ListOptions{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, want, list.Remaining, meta)
	}
}

// Only a request with a token is refused because of it.
func TestList_RefusalOfAToken(t *testing.T) {
	for token, invalid := range map[string]bool{"remote:token": true, "": false} {
		_, err := backendAt(t, frames(t, "400 no").URL).List(t.Context(), backend.ListOptions{Continue: token})
		require.Equal(t, invalid, errors.Is(err, store.ErrInvalidContinue), "%v", err)
		var status *remote.StatusError
		require.ErrorAs(t, err, &status)
	}
}

// What no list can be is refused without asking the server, which would take the rest of it for a list of everything.
func TestList_RefusesWhatCannotBe(t *testing.T) {
	b := paging(t, func(string) string { panic("it was asked") })
	for want, lists := range map[error][]backend.ListOptions{
		store.ErrInvalidContinue: {{Continue: "nonsense"}, {Prefix: "b", Continue: backend.Token{Revision: 1, Start: "a"}.Encode()}},
		store.ErrInvalidKey:      {{Prefix: "/a"}},
		usercode.ErrConfig:       {{Limit: -1}},
	} {
		for _, of := range lists {
			_, err := b.List(t.Context(), of)
			require.ErrorIs(t, err, want, "%+v", of)
		}
	}
}

// A server that no longer has the state of a list may offer the rest of it in the newest one.
func TestList_ExpiredPageOffersWhatTheServerDoes(t *testing.T) {
	for meta, offered := range map[string]string{`"metadata":{"continue":"next"},`: "remote:next", "": ""} {
		_, err := backendAt(t, frames(t, `410 {"kind":"Status",`+meta+`"status":"Failure","reason":"Expired","code":410}`).URL).
			List(t.Context(), backend.ListOptions{Continue: "remote:token"})
		var expired *backend.ExpiredContinueError
		require.ErrorAs(t, err, &expired)
		require.Equal(t, offered, expired.Continue)
	}
}

// The engine's tokens name a key. The origin has given up the state of the pages before: callers such as the deletion of
// a large collection go on in the newest one.
func TestList_OffersTheNewestStateWhereTheEnginesTokenHasExpired(t *testing.T) {
	f := front(t, "http://origin.localhost", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		if r.URL.Query().Get("resourceVersion") == "3" {
			http.Error(w, "it is gone", http.StatusGone)
			return
		}
		_, _ = io.WriteString(w, threePages("third"))
	})
	b := backendAt(t, f.URL)
	_, err := b.List(t.Context(), backend.ListOptions{Continue: backend.Token{Revision: 3, Start: "default/b"}.Encode(), Limit: 1})
	var expired *backend.ExpiredContinueError
	require.ErrorAs(t, err, &expired)
	require.EqualValues(t, 3, expired.Expired.Requested)
	rest, err := b.List(t.Context(), backend.ListOptions{Continue: expired.Continue, Limit: 1})
	require.NoError(t, err)
	require.Len(t, rest.Items, 1)
	require.Equal(t, "default/c", rest.Items[0].Key)
	_, err = b.List(t.Context(), backend.ListOptions{Revision: 3, Start: "default/b"})
	require.ErrorIs(t, err, store.ErrExpired)
	var continued *backend.ExpiredContinueError
	require.NotErrorAs(t, err, &continued, "it is a first page")
}
