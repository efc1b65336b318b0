package websocket_test

import (
	"context"
	"testing"
	"time"

	library "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/websocket"
)

// Proxies close connections on which nothing has come for a while, as those of other watches.
func TestPing_ComesOftenEnoughForProxies(t *testing.T) {
	inBubble(t, websocket.Options{}, func(t *testing.T, s *server) {
		pinged := []time.Time{time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		conn, _, err := library.Dial(ctx, s.url+widgets+"?watch=1", &library.DialOptions{HTTPClient: s.client, OnPingReceived: func(context.Context, []byte) bool {
			pinged = append(pinged, time.Now())
			return true
		}})
		require.NoError(t, err)
		defer conn.CloseNow()
		_, _, err = conn.Read(ctx)
		require.Error(t, err)
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded, "%v", err)
		for i, at := range append(pinged[1:], time.Now()) {
			require.Less(t, at.Sub(pinged[i]), 30*time.Second)
		}
	})
}
