package serve_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// compressing has a server compress answers above a kilobyte.
func compressing(_ *registry.Config[Widget], c *serve.Config) { c.CompressAbove = 1000 }

// unzip returns what is in a compressed answer.
func unzip(t *testing.T, a answer) string {
	t.Helper()
	require.Equal(t, "gzip", a.header.Get("Content-Encoding"))
	z, err := gzip.NewReader(strings.NewReader(a.body))
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(text)
}

// Large answers are compressed for clients that accept it, and only those. The client
// gives the header itself, so that it does not decompress by itself.
func TestCompression_OfLargeAnswers(t *testing.T) {
	s := newServer(t, compressing)
	s.create("a", 1)
	small := s.get(inDefault, "Accept-Encoding", "gzip")
	require.Empty(t, small.header.Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", small.header.Get("Vary"))
	require.Equal(t, "a", small.str("items.0.metadata.name"))
	for i := range 20 {
		s.create(fmt.Sprint("w", i), i)
	}
	s.createLarge("z", 5000)
	for path, accept := range map[string]string{inDefault: "application/json", inDefault + "/z": "application/json", allWidgets: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"} {
		plain := s.get(path, "Accept", accept, "Accept-Encoding", "identity")
		require.Empty(t, plain.header.Get("Content-Encoding"), path)
		require.Equal(t, "Accept-Encoding", plain.header.Get("Vary"))
		for _, accepted := range []string{"gzip", "deflate, GZIP;q=0.5", "br,gzip"} {
			packed := s.get(path, "Accept", accept, "Accept-Encoding", accepted)
			require.Equal(t, plain.body, unzip(t, packed), "%s for %s", path, accepted)
			require.Less(t, len(packed.body), len(plain.body)/2)
		}
		for _, refused := range []string{"gzip;q=0", "gzip;q=x", "br", "gzipped"} {
			require.Equal(t, plain.body, s.get(path, "Accept", accept, "Accept-Encoding", refused).body, "%s for %s", path, refused)
		}
	}
	missing := s.get(inDefault+"/none", "Accept-Encoding", "gzip")
	require.Equal(t, "404 NotFound", fmt.Sprintf("%d %s", missing.code, missing.str("reason")))
	w := s.watch(inDefault+"?watch=1", "Accept-Encoding", "gzip")
	w.expect("ADDED a")
	require.Empty(t, w.resp.Header.Get("Content-Encoding"), "a watch is not held back")
}

// Without the option nothing is compressed, and no cache is told that anything could be.
func TestCompression_IsAnOption(t *testing.T) {
	s := newServer(t)
	s.createLarge("z", 200_000)
	a := s.get(inDefault, "Accept-Encoding", "gzip")
	require.Empty(t, a.header.Get("Content-Encoding")+a.header.Get("Vary"))
	require.Equal(t, "z", a.str("items.0.metadata.name"))
	_, err := serve.New(serve.Config{CompressAbove: -1, Resources: []serve.Provider{s.widgets}})
	require.ErrorIs(t, err, engine.ErrConfig)
	require.ErrorContains(t, err, "CompressAbove")
}

// zipped is a request for the list of a client that takes compressed answers.
func zipped(t *testing.T, accept string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+inDefault, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Accept", accept)
	return r
}

// stuck is a client that takes nothing of an answer until it is released.
type stuck struct {
	*httptest.ResponseRecorder
	first          sync.Once
	began, release chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.first.Do(func() {
		close(s.began)
		<-s.release
	})
	return s.ResponseRecorder.Write(p)
}

// As many answers are compressed at once as there are processors; the others are sent as
// they are.
func TestCompression_TakesNoMoreThanTheProcessors(t *testing.T) {
	s := newServer(t, compressing)
	for i := range 5 {
		s.createLarge(fmt.Sprint("w", i), 200_000) // more than gzip holds back
	}
	request := func() *http.Request { return zipped(t, "application/json") }
	release := make(chan struct{})
	var all []*stuck
	var ended sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		w := &stuck{ResponseRecorder: httptest.NewRecorder(), began: make(chan struct{}), release: release}
		ended.Go(func() { s.handler.ServeHTTP(w, request()) })
		<-w.began
		all = append(all, w)
	}
	plain := httptest.NewRecorder()
	s.handler.ServeHTTP(plain, request())
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	close(release)
	ended.Wait()
	for _, w := range all {
		require.Equal(t, plain.Body.String(), unzip(t, answer{w.Code, w.Header(), w.Body.String()}))
	}
	after := httptest.NewRecorder()
	s.handler.ServeHTTP(after, request())
	require.Equal(t, "gzip", after.Header().Get("Content-Encoding"), "there is room again")
}

// An answer that is broken off leaves room for others.
func TestCompression_BrokenAnswersLeaveRoom(t *testing.T) {
	s := newServer(t, compressing, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Columns = append(w.Columns, registry.Column[Widget]{Name: "Odd", Type: "string", Value: func(w *Widget) any {
			if w.Name == "z" {
				panic("odd")
			}
			return strings.Repeat("x", 100_000) // more than is gathered of a list before any of it is sent
		}})
	})
	s.create("a", 1)
	s.create("z", 1)
	for range runtime.GOMAXPROCS(0) + 1 {
		require.Panics(t, func() {
			s.handler.ServeHTTP(httptest.NewRecorder(), zipped(t, "application/json;as=Table;v=v1;g=meta.k8s.io"))
		}, "http.ErrAbortHandler, for net/http to close the connection")
	}
	s.createLarge("large", 5000)
	require.Equal(t, "gzip", s.get(inDefault+"/large", "Accept-Encoding", "gzip").header.Get("Content-Encoding"))
}
