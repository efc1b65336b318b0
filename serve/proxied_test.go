package serve_test

import (
	"testing"

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
