package serve_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A proxy that collects what it passes on, as nginx does, or compresses it, would hold an event back until
// there are others.
func TestWatch_AsksProxiesToPassEachEventOnAtOnce(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for _, of := range []*server{s, behind(t, s)} {
		for _, accept := range []string{"application/json", "text/event-stream", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			header := of.watch(inDefault+"?watch=1", "Accept", accept).resp.Header
			require.Equal(t, "no", header.Get("X-Accel-Buffering"), accept)
			require.Equal(t, "no-cache, private, no-transform", header.Get("Cache-Control"), accept)
		}
	}
	list := s.get(inDefault).header
	require.NotContains(t, list, "X-Accel-Buffering")
	require.Equal(t, "no-cache, private", list.Get("Cache-Control"))
}

// Proxies close connections on which nothing has come for a while: many after a minute, some after 30 s.
func TestWatch_IsNeverQuietForHalfAMinute(t *testing.T) {
	for _, query := range []string{"?watch=1", "?watch=1&allowWatchBookmarks=1"} {
		inBubble(t, func(t *testing.T, s *server) {
			s.cached()
			for _, accept := range []string{"application/json", "text/event-stream"} {
				resp := s.send(t.Context(), "GET", inDefault+query+"&timeoutSeconds=600", "", "Accept", accept)
				require.Less(t, longestPause(t, resp.Body), 30*time.Second, accept)
				require.NoError(t, resp.Body.Close())
			}
		})
	}
}

// longestPause reads to the end, and returns the longest time in which nothing came.
func longestPause(t *testing.T, from io.Reader) (longest time.Duration) {
	t.Helper()
	some := make([]byte, 1<<10)
	for at := time.Now(); ; at = time.Now() {
		_, err := from.Read(some)
		longest = max(longest, time.Since(at))
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			return longest
		}
	}
}
