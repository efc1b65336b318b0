package bench_test

import (
	"context"
	"net/http"
	"sync/atomic"
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

// repeating is a store, and an informer, that gives one watcher an event twice.
type repeating struct {
	bench.Store
	seqs     []int64
	watchers atomic.Int64
	handlers []func(int64)
}

func (s *repeating) Write(_ context.Context, o bench.Object) (uint64, error) {
	s.seqs = append(s.seqs, o.Seq)
	for _, handle := range s.handlers {
		handle(o.Seq)
	}
	return uint64(len(s.seqs)), nil
}

func (s *repeating) WaitFor(context.Context, uint64) error { return nil }
func (s *repeating) Close() error                          { return nil }

// replay calls a watcher for the writes from a revision on.
func (s *repeating) replay(from uint64, handle func(seq int64)) {
	for _, seq := range s.seqs[from:] {
		handle(seq)
	}
	if s.watchers.Add(1) == 1 {
		handle(s.seqs[from])
	}
}

func (s *repeating) Watch(_ context.Context, _ bench.Selection, from uint64, handle func(seq int64)) (bench.Watch, error) {
	s.replay(from, handle)
	return endless{}, nil
}

func (s *repeating) Start(_ context.Context, healthy []func(seq int64), _ func(seq int64)) error {
	for _, handle := range healthy {
		s.replay(0, handle)
	}
	s.handlers = healthy
	return nil
}

// endless is a watch that does not end.
type endless struct{ bench.Watch }

func (endless) Done() <-chan struct{} { return nil }

// An event too many of one watcher would hide the loss of another's.
func TestWorkloads_FindEventsThatAreRepeated(t *testing.T) {
	contender := bench.Contender{
		Store:    func(context.Context) (bench.Store, error) { return new(repeating), nil },
		Informer: func(context.Context) (bench.Informer, error) { return new(repeating), nil },
	}
	for _, id := range []string{"W11", "W14"} {
		w := workload(t, id)
		_, err := w.Run(t.Context(), contender, w.Small)
		require.ErrorContains(t, err, "events instead of", id)
	}
}
