package remote_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/internal/pipenet"
	"github.com/watchmill/watchmill/remote"
)

// Servers and proxies close connections without a request. A write that is under way meanwhile fails, and it is unknown
// whether it was done. So the client leaves such a connection first.
func TestClient_LeavesAnIdleConnectionBeforeTheServerDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kept = 30 * time.Second
		p := pipenet.Listen()
		h := &http.Server{
			Handler:     http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }),
			IdleTimeout: kept, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		}
		ended := make(chan error, 1)
		go func() { ended <- h.Serve(p) }()
		client := remote.NewClient(nil)
		defer func() {
			client.CloseIdleConnections()
			time.Sleep(time.Second) // until the server knows
			require.NoError(t, h.Close())
			require.ErrorIs(t, <-ended, http.ErrServerClosed)
		}()
		client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := p.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return pipenet.Far(conn, 50*time.Millisecond), nil
		}
		for pause := kept - 200*time.Millisecond; pause <= kept; pause += 20 * time.Millisecond {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://origin.localhost/", strings.NewReader("{}"))
			require.NoError(t, err)
			resp, err := client.Do(req)
			require.NoError(t, err, "after a pause of %v", pause)
			require.NoError(t, resp.Body.Close())
			time.Sleep(pause)
		}
	})
}
