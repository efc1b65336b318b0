package remote_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// originWith is a server whose storage begins at revision 1, with these widgets.
func originWith(t *testing.T, names ...string) *server {
	t.Helper()
	s := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Engine.FirstRevision = 1 })
	for _, name := range names {
		s.create(name, 1)
	}
	require.NoError(t, s.store.Engine().WaitFor(t.Context(), store.Revision(len(names)+1)))
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
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// Servers close in the opposite order: those that are asked go last.
			before, after := originWith(t, "a", "b", "c"), originWith(t, restored...)
			p := newProxy(t, before.url)
			middle := replica(t, p.url)
			replicas := []*server{middle, replica(t, middle.url)}
			var saved []engine.Checkpoint
			var lists []*engine.List[Widget]
			var watches []*engine.Watch[Widget]
			for _, r := range replicas {
				e := r.store.Engine()
				require.NoError(t, e.WaitFor(ctx, 4))
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

// silent is a proxy that removes the header of the storage from answers, so that they are
// those of a server without the header, and counts requests.
func silent(t *testing.T, target *atomic.Pointer[url.URL], asked *atomic.Int64) string {
	t.Helper()
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			asked.Add(1)
			r.SetURL(target.Load())
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del(registry.StorageHeader)
			return nil
		},
		FlushInterval: -1,
	}
	s := httptest.NewServer(p)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// A server that does not tell its storage is followed by its revisions, and StoreID asks
// it once only.
func TestBackend_OfAServerThatDoesNotTellItsStorage(t *testing.T) {
	origin := originWith(t, "a")
	target, asked := new(atomic.Pointer[url.URL]), new(atomic.Int64)
	to, err := url.Parse(origin.url)
	require.NoError(t, err)
	target.Store(to)
	b := backendAt(t, silent(t, target, asked))
	for range 3 {
		_, err := backend.StoreID(t.Context(), b)
		require.ErrorIs(t, err, store.ErrUnsupported)
	}
	require.Equal(t, int64(1), asked.Load())

	r := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = b })
	require.NoError(t, r.store.Engine().WaitFor(t.Context(), 2))
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

// StoreID returns any identity unchanged, and asks again as long as the server tells one.
func TestBackend_StoreIDIsWhatTheServerTells(t *testing.T) {
	var tells atomic.Pointer[string]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(registry.StorageHeader, url.PathEscape(*tells.Load()))
		fmt.Fprint(w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[]}`)
	}))
	t.Cleanup(s.Close)
	b := backendAt(t, s.URL)
	for _, id := range []string{"memory:1", "etcd:5/über/pods\n x", "a%2Fb"} {
		tells.Store(&id)
		got, err := backend.StoreID(t.Context(), b)
		require.NoError(t, err)
		require.Equal(t, id, got)
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
	require.ErrorContains(t, err, "restored or replaced")
}
