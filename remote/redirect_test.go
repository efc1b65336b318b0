package remote_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store/backend"
)

// redirecting answers every request with a redirect to the same path and query at a URL.
func redirecting(t *testing.T, code int, to string) (url string) {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.RequestURI(), code)
	}))
	t.Cleanup(h.Close)
	return h.URL
}

// A redirect after which HTTP reads, in place of writing, must not make a write look as if it
// had been carried out.
func TestRedirect_DoesNotTurnAWriteIntoARead(t *testing.T) {
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			origin := newServer(t)
			stored := origin.create("a", 1)
			b := backendAt(t, redirecting(t, code, origin.url))
			was, err := b.Get(t.Context(), "default/a")
			require.NoError(t, err)
			opts := registry.WriteOptions{}
			_, err = b.Put(t.Context(), was, was, backend.PutOptions{})
			require.ErrorIs(t, err, backend.ErrUnavailable)
			require.ErrorContains(t, err, "redirects a PUT")
			_, _, err = b.ForwardUpdate(t.Context(), "default/a", "", []byte(`{"metadata":{"name":"a"},"spec":{"size":2}}`), opts)
			require.ErrorIs(t, err, backend.ErrUnavailable)
			_, err = b.ForwardCreate(t.Context(), "default", []byte(`{"metadata":{"name":"b"},"spec":{"size":2}}`), opts)
			require.ErrorIs(t, err, backend.ErrUnavailable)
			_, _, err = b.ForwardDelete(t.Context(), "default/a", registry.DeleteOptions{})
			require.ErrorIs(t, err, backend.ErrUnavailable)
			now, err := b.Get(t.Context(), "default/a")
			require.NoError(t, err)
			require.Equal(t, stored.Revision, now.Revision)
		})
	}
}

// A redirect that keeps the method is followed.
func TestRedirect_OfAWriteIsFollowed(t *testing.T) {
	origin := newServer(t)
	b := backendAt(t, redirecting(t, http.StatusTemporaryRedirect, origin.url))
	_, err := b.ForwardCreate(t.Context(), "default", []byte(`{"metadata":{"name":"a"},"spec":{"size":2}}`), registry.WriteOptions{})
	require.NoError(t, err)
	_, err = b.Get(t.Context(), "default/a")
	require.NoError(t, err)
}

// between is a transport that redirects requests to one URL to another one, and records the
// authorization that comes there.
type between struct {
	to   string
	sent atomic.Pointer[string]
}

func (b *between) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
	if at := r.URL.Scheme + "://" + r.URL.Host; at != b.to {
		answer.StatusCode = http.StatusTemporaryRedirect
		answer.Header.Set("Location", b.to+r.URL.RequestURI())
		return answer, nil
	}
	token := r.Header.Get("Authorization")
	b.sent.Store(&token)
	return answer, nil
}

// Only the server itself gets the token, not one that it redirects to: also of a domain below its
// own, at another port, or without TLS.
func TestRedirect_ToAnotherServerDoesNotGetTheToken(t *testing.T) {
	const from = "https://example.com"
	for _, to := range []string{"https://other.com", "https://pods.example.com", "https://example.com:8443", "http://example.com"} {
		t.Run(to, func(t *testing.T) {
			way := &between{to: to}
			client := &http.Client{Transport: way}
			b := backendAt(t, from, func(cfg *remote.Config) { cfg.Token, cfg.Client = "secret", client })
			_, err := b.Get(t.Context(), "default/a")
			require.Error(t, err)
			require.Empty(t, *way.sent.Load())
			_, err = remote.Kinds(t.Context(), remote.Config{URL: from, Token: "secret", Client: client})
			require.Error(t, err)
			require.Empty(t, *way.sent.Load())
			require.Nil(t, client.CheckRedirect, "the client is the user's")
		})
	}
}

// A client that follows no redirects, or ends them by an error, goes on to do so; one without an
// opinion follows ten.
func TestRedirect_IsUpToTheClient(t *testing.T) {
	var requests atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(h.Close)
	_, err := backendAt(t, h.URL).Get(t.Context(), "default/a")
	require.ErrorIs(t, err, backend.ErrUnavailable)
	require.EqualValues(t, 10, requests.Swap(0))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(client.CloseIdleConnections)
	_, err = backendAt(t, h.URL, func(cfg *remote.Config) { cfg.Client = client }).Get(t.Context(), "default/a")
	status := (*remote.StatusError)(nil)
	require.ErrorAs(t, err, &status)
	require.EqualValues(t, http.StatusFound, status.Status.Code)
	require.EqualValues(t, 1, requests.Load())
}
