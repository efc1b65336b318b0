package remote_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// spaces is a body without end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// oversized answers every request with a body of four times MaxFrameBytes, compressed or not.
func oversized(t *testing.T, compressed bool) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var out io.Writer = w
		if compressed {
			w.Header().Set("Content-Encoding", "gzip")
			out = gzip.NewWriter(w)
		}
		_, _ = io.CopyN(out, spaces{}, 4*remote.MaxFrameBytes) // the client hangs up
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A server that answers without end, which may be tiny as long as it is compressed, takes
// no more memory than the configuration allows, and the error says how much.
func TestBackend_AnswersAreBounded(t *testing.T) {
	for name, compressed := range map[string]bool{"plain": false, "compressed": true} {
		t.Run(name, func(t *testing.T) {
			url := oversized(t, compressed)
			b := backendAt(t, url, func(c *remote.Config) { c.MaxListBytes, c.RequestTimeout = 1<<20, time.Hour }) // much is read
			tooLarge := func(err error, limit int, field string) {
				t.Helper()
				var size *remote.SizeError
				require.ErrorAs(t, err, &size)
				require.Equal(t, limit, size.Limit)
				require.Equal(t, field, size.Field)
				require.ErrorContains(t, err, "raise remote.Config."+field)
			}
			_, err := b.List(t.Context(), backend.ListOptions{})
			tooLarge(err, 1<<20, "MaxListBytes")
			_, err = b.Revision(t.Context())
			tooLarge(err, 1<<20, "MaxListBytes")
			_, err = b.Get(t.Context(), "default/a")
			tooLarge(err, remote.MaxFrameBytes, "BufferBytes")
			_, err = b.ForwardCreate(t.Context(), "default", []byte(object("a", 1)), registry.WriteOptions{})
			tooLarge(err, remote.MaxFrameBytes, "BufferBytes")
			require.ErrorIs(t, err, backend.ErrUncertain, "the server may have written it")
			_, err = remote.Kinds(t.Context(), remote.Config{URL: url, RequestTimeout: time.Hour})
			tooLarge(err, remote.MaxFrameBytes, "BufferBytes")
			_, err = readAll(t, b, 1)
			var frame *remote.FrameError
			require.ErrorAs(t, err, &frame, "a watch")
		})
	}
}

// A list may have exactly as many bytes as the limit.
func TestList_OfTheLimitIsRead(t *testing.T) {
	body := `{"metadata":{"resourceVersion":"7"},"items":[]}`
	for extra, ok := range map[int]bool{0: true, -1: false} {
		b := backendAt(t, frames(t, "200 "+body).URL, func(c *remote.Config) { c.MaxListBytes = len(body) + extra })
		list, err := b.List(t.Context(), backend.ListOptions{})
		require.Equal(t, ok, err == nil, "%v", err)
		if ok {
			require.Equal(t, store.Revision(7), list.Revision)
		}
	}
}

// BufferBytes allows larger documents of kinds than MaxFrameBytes.
func TestKinds_OfALargerDocumentIfBufferAllowsIt(t *testing.T) {
	const size = remote.MaxFrameBytes + 100
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(w, spaces{}, size-2) // the client may hang up
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	for buffer, ok := range map[int]bool{size: true, size - 1: false} {
		_, err := remote.Kinds(t.Context(), remote.Config{URL: s.URL, BufferBytes: buffer})
		require.Equal(t, ok, err == nil, "%v", err)
	}
}
