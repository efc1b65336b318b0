package inspect

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server whose listener fails must not look as if it still served.
func TestListenAndServe_ReturnsWhenServingFails(t *testing.T) {
	s, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, s.listener.Close())
	require.ErrorIs(t, s.closeAfter(context.Background()), net.ErrClosed)
	require.ErrorIs(t, s.Close(), net.ErrClosed, "the reason stays")
}
