package remote_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend"
)

// inMemory serves widgets over a network in memory, and returns their store and a transport that leads
// there. Its requests go through front, if that is not nil.
func inMemory(t *testing.T, storage backend.Backend, front func(*http.Request)) (*registry.Store[Widget], *http.Transport) {
	t.Helper()
	cfg := widgets(new(atomic.Int64))
	cfg.Engine.Backend = storage
	widgets, err := registry.New(cfg)
	require.NoError(t, err)
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	p := pipenet.Listen()
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if front != nil {
			front(r)
		}
		handler.ServeHTTP(w, r)
	})}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(p) }()
	by := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) }}
	t.Cleanup(func() {
		by.CloseIdleConnections()
		require.NoError(t, h.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
		require.NoError(t, widgets.Close())
	})
	return widgets, by
}

// behind returns the backend of the server that the transport leads to.
func behind(t *testing.T, by *http.Transport, edit ...func(*remote.Config)) *remote.Backend {
	t.Helper()
	return backendAt(t, "http://origin.localhost", append(edit, func(c *remote.Config) { c.Client = &http.Client{Transport: by} })...)
}

func inNamespace(namespace string) Widget {
	return Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "w-"}}
}

// oneNamespace selects widgets.
func oneNamespace(c *remote.Config) { c.Namespace = "default" }

// What is written elsewhere moves the origin's revision, and is not an event for a replica of a part. That
// learns of it all the same before a reader has waited long, also behind another replica, and serves the
// watches from that revision.
func TestReplica_OfAPartKeepsUpWithWhatIsWrittenElsewhere(t *testing.T) {
	for name, between := range map[string]func(t *testing.T, by *http.Transport) *http.Transport{
		"of its origin": func(_ *testing.T, by *http.Transport) *http.Transport { return by },
		"in a tree": func(t *testing.T, by *http.Transport) *http.Transport {
			_, by = inMemory(t, behind(t, by), nil)
			return by
		},
		"in a tree of parts": func(t *testing.T, by *http.Transport) *http.Transport {
			_, by = inMemory(t, behind(t, by, oneNamespace), nil)
			return by
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				origin, by := inMemory(t, nil, nil)
				r, _ := inMemory(t, behind(t, between(t, by), oneNamespace), nil)
				e := r.Engine()
				require.NoError(t, e.WaitForRevision(t.Context(), 1))
				for range 10 {
					o, err := origin.Create(t.Context(), inNamespace("other"), registry.WriteOptions{})
					require.NoError(t, err)
					began := time.Now()
					list, err := e.List(t.Context(), engine.ListOptions{Read: engine.Latest()})
					require.NoError(t, err)
					require.Empty(t, list.Items)
					require.Equal(t, o.Revision, list.Revision)
					require.Less(t, time.Since(began), time.Second, "of virtual time")
					require.NoError(t, e.WaitForRevision(t.Context(), list.Revision))
				}
				require.Zero(t, e.Stats().Fallbacks)
				o, err := origin.Create(t.Context(), inNamespace("default"), registry.WriteOptions{})
				require.NoError(t, err)
				list, err := e.List(t.Context(), engine.ListOptions{Read: engine.Latest()})
				require.NoError(t, err)
				require.Len(t, list.Items, 1)
				require.Equal(t, o.Key, list.Items[0].Key)
			})
		})
	}
}

// A server that does not know how to tell of progress is asked in the place of the cache.
func TestReplica_OfAPartOfAServerThatTellsOfNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin, by := inMemory(t, nil, func(r *http.Request) {
			query := r.URL.Query()
			query.Del("progressNotify")
			r.URL.RawQuery = query.Encode()
		})
		r, _ := inMemory(t, behind(t, by, oneNamespace), nil)
		e := r.Engine()
		require.NoError(t, e.WaitForRevision(t.Context(), 1))
		o, err := origin.Create(t.Context(), inNamespace("other"), registry.WriteOptions{})
		require.NoError(t, err)
		list, err := e.List(t.Context(), engine.ListOptions{Read: engine.Latest()})
		require.NoError(t, err)
		require.Equal(t, o.Revision, list.Revision)
		require.EqualValues(t, 1, e.Stats().Fallbacks)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for e.WaitForRevision(ctx, list.Revision) != nil {
			require.NoError(t, ctx.Err(), "a bookmark comes each 25 s or so")
		}
	})
}
