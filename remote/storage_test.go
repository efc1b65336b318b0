package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// originWith is a server whose storage begins at revision 1, with these widgets.
func originWith(t *testing.T, names ...string) *server {
	t.Helper()
	return originWaiting(t, patience, names...)
}

// originWaiting is originWith, for reads that wait so long for a later revision.
func originWaiting(t *testing.T, freshness time.Duration, names ...string) *server {
	t.Helper()
	s := newServer(t, func(cfg *registry.Config[Widget]) {
		cfg.Engine.FirstRevision, cfg.Engine.FreshnessTimeout = 1, freshness
	})
	for _, name := range names {
		s.create(name, 1)
	}
	require.Eventually(t, func() bool {
		return s.store.Engine().WaitForRevision(t.Context(), store.Revision(len(names)+1)) == nil
	}, patience, time.Millisecond)
	return s
}

// namesOf returns the names that an engine's cache has.
func namesOf(t *testing.T, e *engine.Engine[Widget]) (names []string) {
	t.Helper()
	l, err := e.List(t.Context(), engine.ListOptions{Read: engine.Cached()})
	require.NoError(t, err)
	for _, o := range l.Items {
		names = append(names, o.Value.Name)
	}
	return names
}

// A replica, and one of that, notice that the origin was restored, wherever its revision
// is by then: watches expire, their caches list again, and what was saved before is
// refused.
func TestReplica_NoticesThatTheOriginWasRestored(t *testing.T) {
	for name, restored := range map[string][]string{
		"at the same revision":    {"x", "y", "z"},
		"at a greater revision":   {"u", "v", "x", "y", "z"},
		"at a lower revision":     {"x"},
		"with what was there too": {"a", "b", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			// Servers close in the opposite order: those that are asked go last.
			// A watch from a revision that the restored origin does not have waits briefly.
			const freshness = 100 * time.Millisecond
			before, after := originWith(t, "a", "b", "c"), originWaiting(t, freshness, restored...)
			p := newProxy(t, before.url)
			brief := func(url string) *server {
				b := backendAt(t, url)
				return newServer(t, func(cfg *registry.Config[Widget]) {
					cfg.Engine.Backend, cfg.Engine.FreshnessTimeout = b, freshness
					cfg.Engine.Backoff = engine.Backoff{Initial: time.Millisecond, Max: 10 * time.Millisecond}
				})
			}
			middle := brief(p.url)
			replicas := []*server{middle, brief(middle.url)}
			var saved []engine.Checkpoint
			var lists []*engine.List[Widget]
			var watches []*engine.Watch[Widget]
			for _, r := range replicas {
				e := r.store.Engine()
				require.Eventually(t, func() bool { return e.WaitForRevision(ctx, 4) == nil }, patience, time.Millisecond)
				l, err := e.List(ctx, engine.ListOptions{})
				require.NoError(t, err)
				w, err := e.Watch(ctx, engine.WatchOptions{From: l.Revision, Timeline: l.Timeline})
				require.NoError(t, err)
				at, err := e.Checkpoint(ctx, 4)
				require.NoError(t, err)
				saved, lists, watches = append(saved, at), append(lists, l), append(watches, w)
			}
			require.Equal(t, saved[0], saved[1], "the identity is the origin's")

			p.turn(after.url)
			for i, r := range replicas {
				for err := error(nil); err == nil; _, err = watches[i].Next(ctx) {
				}
				require.ErrorIs(t, watches[i].Err(), engine.ErrExpired)
				require.Equal(t, restored, namesOf(t, r.store.Engine()))
				_, err := r.store.Engine().RevisionOf(ctx, saved[i])
				require.ErrorIs(t, err, engine.ErrForeignCheckpoint)
				_, err = r.store.Engine().Watch(ctx, engine.WatchOptions{From: 4, Timeline: lists[i].Timeline})
				require.ErrorIs(t, err, engine.ErrExpired)
			}
		})
	}
}

// front is a server before another, which answers by itself, or by next.
func front(t *testing.T, to string, answer func(w http.ResponseWriter, r *http.Request, next http.Handler)) *httptest.Server {
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	next := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, next) }))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// unsigned is an answer from which the header of the storage is removed, so that it is
// that of a server without the header.
type unsigned struct{ http.ResponseWriter }

func (u unsigned) WriteHeader(code int) {
	u.Header().Del(registry.StorageHeader)
	u.ResponseWriter.WriteHeader(code)
}

func (u unsigned) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// A server that does not tell its storage is followed by its revisions, and StoreID asks
// it once only.
func TestBackend_OfAServerThatDoesNotTellItsStorage(t *testing.T) {
	origin := originWith(t, "a")
	var asked atomic.Int64
	b := backendAt(t, front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		asked.Add(1)
		next.ServeHTTP(unsigned{w}, r)
	}).URL)
	for range 3 {
		_, err := backend.StoreID(t.Context(), b)
		require.ErrorIs(t, err, store.ErrUnsupported)
	}
	require.Equal(t, int64(1), asked.Load())

	r := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = b })
	require.NoError(t, r.store.Engine().WaitForRevision(t.Context(), 2))
	w, err := r.store.Engine().Watch(t.Context(), engine.WatchOptions{From: 2})
	require.NoError(t, err)
	defer w.Stop()
	origin.create("b", 1)
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "default/b", events[0].Key())
	_, err = r.store.Engine().Checkpoint(t.Context(), 2)
	require.ErrorIs(t, err, engine.ErrUnsupported)
	now, err := r.store.Engine().Timeline(t.Context())
	require.NoError(t, err)
	require.Empty(t, now.Store())
}

// Answers without the header, as through some of several proxies, are of the storage that
// is known: nothing is listed again, and watches go on.
func TestReplica_AnswersWithoutTheHeaderAreOfTheSameStorage(t *testing.T) {
	for name, bare := range map[string]func(n int64, r *http.Request) bool{
		"watches":           func(_ int64, r *http.Request) bool { return r.URL.Query().Get("watch") != "" },
		"all but the first": func(n int64, _ *http.Request) bool { return n > 1 },
		"lists at revisions and watches": func(_ int64, r *http.Request) bool {
			return r.URL.Query().Get("resourceVersion") != ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			origin := originWith(t, "a")
			var n atomic.Int64
			before := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if bare(n.Add(1), r) {
					w = unsigned{w}
				}
				next.ServeHTTP(w, r)
			})
			e := replica(t, before.URL).store.Engine()
			require.Eventually(t, func() bool { return e.WaitForRevision(t.Context(), 2) == nil }, patience, time.Millisecond)
			w, err := e.Watch(t.Context(), engine.WatchOptions{From: 2})
			require.NoError(t, err)
			defer w.Stop()
			now, err := e.Timeline(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, now.Store())
			lists := origin.lists.Load()
			for _, name := range []string{"b", "c", "d"} {
				origin.create(name, 1)
				events, err := w.Next(t.Context())
				require.NoError(t, err)
				require.Equal(t, "default/"+name, events[0].Key())
				before.CloseClientConnections()
			}
			require.Zero(t, e.Stats().Relists)
			require.Equal(t, lists, origin.lists.Load(), "those of the start")
		})
	}
}

// A list whose answer does not tell its storage is of what was known when it was asked
// for, whatever other answers tell before it arrives.
func TestList_WithoutTheHeaderIsOfWhatWasKnownBefore(t *testing.T) {
	now := "before"
	var b *remote.Backend
	b = backendAt(t, "http://origin", func(c *remote.Config) {
		c.Client = &http.Client{Transport: pretended(func(r *http.Request) (*http.Response, error) {
			resp, err := reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[]}`))
			resp.Header = http.Header{registry.StorageHeader: {now}}
			if r.URL.Query().Get("limit") != "" {
				return resp, err
			}
			now = "after"
			_, asked := b.Revision(r.Context())
			resp.Header = http.Header{}
			return resp, errors.Join(err, asked)
		})}
	})
	_, err := b.Revision(t.Context())
	require.NoError(t, err)
	for _, want := range []string{"before", "after"} {
		l, err := b.List(t.Context(), backend.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, want, l.StoreID)
	}
}

// StoreID returns identities unchanged, and asks again as long as the server tells one.
// Texts that are too long, or would disturb a log, are none.
func TestBackend_StoreIDIsWhatTheServerTells(t *testing.T) {
	var tells atomic.Pointer[string]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(registry.StorageHeader, url.PathEscape(*tells.Load()))
		fmt.Fprint(w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[]}`)
	}))
	t.Cleanup(s.Close)
	b := backendAt(t, s.URL)
	for _, id := range []string{"memory:1", "etcd:5/über/pods x", "a%2Fb", strings.Repeat("x", 1<<10)} {
		tells.Store(&id)
		got, err := backend.StoreID(t.Context(), b)
		require.NoError(t, err)
		require.Equal(t, id, got)
	}
	last := *tells.Load()
	for _, id := range []string{"", "two\nlines", "a\x1b[31mb", "\xff", strings.Repeat("x", 1<<10+1)} {
		tells.Store(&id)
		got, err := backend.StoreID(t.Context(), b)
		require.NoError(t, err)
		require.Equal(t, last, got, "%q is not an identity", id)

		fresh := backendAt(t, s.URL)
		_, err = backend.StoreID(t.Context(), fresh)
		require.ErrorIs(t, err, store.ErrUnsupported, "%q is not an identity", id)
	}
	require.NoError(t, b.Close())
	_, err := backend.StoreID(t.Context(), b)
	require.ErrorIs(t, err, store.ErrClosed)
}

// A watch ends when its connection comes back to other storage, and the error names both
// storages.
func TestWatch_EndsWhenItsConnectionComesBackToOtherStorage(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(registry.StorageHeader, fmt.Sprint("life-", (n.Add(1)+1)/2)) // two connections each
		fmt.Fprint(w, event("ADDED", "a", int(5+n.Load())))
	}))
	t.Cleanup(s.Close)
	events, err := readAll(t, backendAt(t, s.URL), 10)
	require.Len(t, events, 2, "those of the first life")
	require.ErrorIs(t, err, store.ErrExpired)
	var replaced *remote.StorageError
	require.ErrorAs(t, err, &replaced)
	require.Equal(t, remote.StorageError{Before: "life-1", Now: "life-2"}, *replaced)
	require.ErrorContains(t, err, `the storage "life-2", and had "life-1"`)
	require.ErrorContains(t, err, "restored or replaced")
}

// Lists and watches tell themselves which storage they are of: a replica sends no request
// for that, even when the origin was restored.
func TestReplica_AsksForTheStorageByNoRequestOfItsOwn(t *testing.T) {
	before, after := originWith(t, "a", "b"), originWith(t, "x", "y", "z")
	p := newProxy(t, before.url)
	e := replica(t, p.url, func(c *remote.Config) { c.NoHistory = true }).store.Engine()
	require.NoError(t, e.WaitForRevision(t.Context(), 3))
	lists := before.lists.Load()
	now, err := e.Timeline(t.Context())
	require.NoError(t, err)
	w, err := e.Watch(t.Context(), engine.WatchOptions{From: 3, Timeline: now})
	require.NoError(t, err)
	before.create("c", 1)
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "default/c", events[0].Key())
	require.Zero(t, before.questions.Load())
	require.Equal(t, lists, before.lists.Load(), "those of the start")

	p.turn(after.url)
	for err == nil {
		_, err = w.Next(t.Context())
	}
	require.ErrorIs(t, w.Err(), engine.ErrExpired)
	require.Equal(t, []string{"x", "y", "z"}, namesOf(t, e))
	other, err := e.Timeline(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, now.Store(), other.Store())
	require.Zero(t, after.questions.Load())
}

// What is not a key must not become the path of a collection, which a DELETE would empty.
func TestBackend_RefusesInvalidKeys(t *testing.T) {
	origin := originWith(t, "a", "b")
	b := backendAt(t, origin.url)
	ctx := t.Context()
	calls := map[string]func(key string) error{
		"get": func(key string) error { _, err := b.Get(ctx, key); return err },
		"create": func(key string) error {
			_, err := b.Put(ctx, &store.Object{Key: key}, nil, backend.PutOptions{})
			return err
		},
		"update": func(key string) error {
			_, err := b.Put(ctx, &store.Object{Key: key}, &store.Object{Key: key, Revision: 2}, backend.PutOptions{})
			return err
		},
		"remove": func(key string) error {
			_, err := b.Remove(ctx, &store.Object{Key: key, Revision: 2})
			return err
		},
		"forward create": func(namespace string) error {
			_, err := b.ForwardCreate(ctx, namespace, []byte(`{}`), registry.WriteOptions{})
			return err
		},
		"forward update": func(key string) error {
			_, _, err := b.ForwardUpdate(ctx, key, "", []byte(`{}`), registry.WriteOptions{})
			return err
		},
		"forward apply": func(key string) error {
			_, _, err := b.ForwardApply(ctx, key, "", []byte(`{}`), registry.WriteOptions{})
			return err
		},
		"forward delete": func(key string) error {
			_, _, err := b.ForwardDelete(ctx, key, registry.DeleteOptions{})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"", "default/", "default/.", "default/..", "..", "./a", "default//a"} {
				if name == "forward create" && key == "" {
					continue // of a kind without namespaces
				}
				require.ErrorIs(t, call(key), store.ErrInvalidKey, "%q", key)
			}
		})
	}
	require.ElementsMatch(t, []string{"a", "b"}, namesOf(t, origin.store.Engine()))
}

// An object without a revision is none that storage returned: it replaces and removes
// nothing.
func TestBackend_RefusesAPreviousObjectWithoutRevision(t *testing.T) {
	origin := originWith(t, "a")
	b := backendAt(t, origin.url)
	draft, err := b.Get(t.Context(), "default/a")
	require.NoError(t, err)
	_, err = b.Put(t.Context(), draft, &store.Object{Key: "default/a"}, backend.PutOptions{})
	require.ErrorIs(t, err, store.ErrExists)
	for _, prev := range []*store.Object{nil, {Key: "default/a"}} {
		_, err = b.Remove(t.Context(), prev)
		require.ErrorIs(t, err, usercode.ErrConfig)
	}
	require.Equal(t, []string{"a"}, namesOf(t, origin.store.Engine()))
}
