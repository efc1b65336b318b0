package remote_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store/backend"
)

// unreadable are answers of what stands before a server, such as a gateway.
var unreadable = map[string]string{
	"a page": "<html>done</html>", "nothing": "", "another kind": `{"kind":"Other","apiVersion":"v1"}`, "no name": `{"metadata":{"resourceVersion":"3"}}`,
}

// A write may have been done although its answer cannot be read, so that nothing else may be
// concluded from the error.
func TestBackend_AWriteWhoseAnswerCannotBeReadIsUncertain(t *testing.T) {
	for name, text := range unreadable {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
			defer s.Close()
			b := backendAt(t, s.URL)
			draft, err := decoded(object("a", 1))
			require.NoError(t, err)
			_, err = b.Put(t.Context(), draft, nil, backend.PutOptions{})
			require.ErrorIs(t, err, backend.ErrUncertain)
			_, err = b.Get(t.Context(), draft.Key)
			require.Error(t, err)
			require.NotErrorIs(t, err, backend.ErrUncertain)
			_, err = b.Remove(t.Context(), draft)
			require.ErrorIs(t, err, backend.ErrUncertain)
		})
	}
}

// Whether an object was created is not known of a write whose answer breaks off, whatever its beginning says.
func TestBackend_AWriteWhoseAnswerBreaksOffHasCreatedNothingForSure(t *testing.T) {
	b := pretend(t, func(*http.Request) (*http.Response, error) {
		return reply(http.StatusCreated, iotest.ErrReader(io.ErrUnexpectedEOF))
	})
	answer, created, err := b.ForwardUpdate(t.Context(), "default/a", "", []byte(object("a", 1)), registry.WriteOptions{})
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.False(t, created)
	require.Empty(t, answer)
}

// The client of a replica is not to blame for what the origin answers, nor may it take a write
// for refused.
func TestReplica_AnswersThatCannotBeReadAreNoFaultOfTheClient(t *testing.T) {
	for name, text := range unreadable {
		t.Run(name, func(t *testing.T) {
			origin := newServer(t)
			origin.create("a", 1)
			f := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/a") {
					next.ServeHTTP(w, r)
					return
				}
				next.ServeHTTP(httptest.NewRecorder(), r)
				_, _ = io.WriteString(w, text) // the client may be gone
			})
			r := replica(t, f.URL)
			for _, c := range []struct{ method, path, media, body string }{
				{"POST", "", "application/json", `{"metadata":{"name":"b"}}`},
				{"PATCH", "/a?fieldManager=m", "application/apply-patch+yaml", `{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":3}}`},
				{"GET", "/a", "", ""},
			} {
				resp, answer := r.send(c.method, c.path, c.media, c.body)
				require.GreaterOrEqual(t, resp.StatusCode, 500, "%s: %s", c.method, answer)
			}
			for key, w := range map[string]Widget{"default/c": widget("c", 1), "default/w-": inNamespace("default")} {
				_, err := r.store.Create(t.Context(), w, registry.WriteOptions{})
				var uncertain *backend.UncertainError
				require.ErrorAs(t, err, &uncertain)
				require.Equal(t, key, uncertain.Key)
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

// A client of a replica that is told that it is not authenticated would log in again, in vain if
// it is the replica's token that the origin refuses.
func TestReplica_AClientIsNotToldThatItsReplicaIsNotAuthenticated(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	origin := newServer(t)
	origin.create("a", 1)
	var token atomic.Value
	token.Store("Bearer first")
	guard := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Header.Get("Authorization") == token.Load() {
			next.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind":"Status","code":401,"reason":"Unauthorized","message":"unknown token"}`)
	})
	near := replica(t, guard.URL, func(c *remote.Config) { c.Token = "first" })
	far := replica(t, near.url)
	for _, s := range []*server{near, far} {
		_, err := s.store.Engine().List(t.Context(), engine.ListOptions{})
		require.NoError(t, err)
	}
	token.Store("Bearer second")
	for _, s := range []*server{near, far} {
		for _, c := range []struct{ method, path, body string }{
			{"POST", "", `{"metadata":{"name":"b"}}`}, {"PUT", "/a", `{"metadata":{"name":"a"}}`}, {"DELETE", "/a", ""}, {"GET", "", ""},
		} {
			resp, answer := s.send(c.method, c.path, "application/json", c.body)
			require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, "%s: %s", c.method, answer)
			require.Contains(t, answer, `"reason":"ServiceUnavailable"`)
			require.Contains(t, answer, "another server refuses this server's own credentials")
			require.Contains(t, answer, "unknown token")
		}
	}
	_, err := near.store.Create(t.Context(), widget("b", 1), registry.WriteOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "a program with the token learns what is wrong: %v", err)
	require.ErrorIs(t, err, backend.ErrDenied)
}

// A server may not tell the revision of a deletion, and then not answer the question for the
// newest one. The object is deleted.
func TestBackend_ADeletionWithoutARevisionIsNotTakenForUndone(t *testing.T) {
	b := backendAt(t, frames(t, `200 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`, "503 later").URL)
	_, _, err := b.ForwardDelete(t.Context(), "default/a", registry.DeleteOptions{})
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.False(t, backend.Retryable(err), "%v", err)
}
