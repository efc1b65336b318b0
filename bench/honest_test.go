package bench_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/bench"
)

// workload returns the workload of that ID.
func workload(t *testing.T, id string) bench.Workload {
	t.Helper()
	selected, err := bench.Select([]string{id})
	require.NoError(t, err)
	require.Equal(t, id, selected[0].ID)
	return selected[0]
}

// asked is a server that notes how the answers to its requests may be encoded.
type asked struct {
	bench.Server
	encodings chan string
}

func (s asked) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.encodings <- r.Header.Get("Accept-Encoding")
		s.Server.Handler().ServeHTTP(w, r)
	})
}

// A rival that compresses what a client accepts would do more work than ours, which does not by default.
func TestServedLists_AreAskedForWithoutCompression(t *testing.T) {
	const requests = 100
	encodings := make(chan string, requests)
	contender := bench.Contender{Server: func(ctx context.Context) (bench.Server, error) {
		server, err := bench.Watchmill().Server(ctx)
		return asked{server, encodings}, err
	}}
	w := workload(t, "W20")
	require.Less(t, w.Small.Events, requests)
	_, err := w.Run(t.Context(), contender, w.Small)
	require.NoError(t, err)
	close(encodings)
	require.NotEmpty(t, encodings)
	for encoding := range encodings {
		require.Empty(t, encoding)
	}
}
