package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limits of the flags are those of the server, and it waits for no load balancer that it need not
// wait for.
func TestServe_HasTheLimitsOfItsFlags(t *testing.T) {
	for _, limits := range [][]string{{"--max-watches", "1"}, {"--max-watches", "4", "--max-watches-per-user", "1"}} {
		p := startServer(t, append(limits, "--max-reads", "3", "--max-writes", "2", "--max-connections-per-address", "50")...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		watch := func() int {
			req, err := http.NewRequestWithContext(ctx, "GET", p.url+inDefault+"?watch=1", nil)
			require.NoError(t, err)
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			t.Cleanup(func() { resp.Body.Close() })
			return resp.StatusCode
		}
		require.Equal(t, []int{200, 429}, []int{watch(), watch()}, limits)
		require.Contains(t, p.terminate(t), "draining: /readyz fails for 0s")
	}
}
