package serve_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve"
)

// What user code does before a watch over HTTP/2 begins ends that request, and no other.
func TestAside_ContainsUserCode(t *testing.T) {
	var does func()
	hook := func(c *serve.Config) {
		c.Authenticate = func(*http.Request) (serve.User, error) { does(); return serve.Anonymous, nil }
	}
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		watch := func() (*http.Response, error) {
			req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+inDefault+"?watch=1&timeoutSeconds=1", nil)
			require.NoError(t, err)
			return s.client.Do(req)
		}
		does = func() { panic("boom") }
		resp, err := watch()
		require.NoError(t, err)
		require.Equal(t, 500, resp.StatusCode)
		require.NoError(t, resp.Body.Close())

		for _, abort := range []func(){func() { panic(http.ErrAbortHandler) }, runtime.Goexit} {
			does = abort
			_, err = watch()
			require.ErrorContains(t, err, "stream error")
		}
		does = func() {}
		resp, err = watch()
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Watches)
	}, hook)
}

// The client of a request whose goroutine user code ends sees no answer, so that the log has to say why.
func TestServer_LogsARequestWhoseGoroutineEnds(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		var log bytes.Buffer
		m := &recorder{}
		inBubbleOver(t, protocol, func(t *testing.T, s *server) {
			for _, query := range []string{"", "?watch=1"} {
				log.Reset()
				req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+inDefault+query, nil)
				require.NoError(t, err)
				resp, err := s.client.Do(req)
				if err == nil {
					resp.Body.Close()
				}
				require.Error(t, err)
				synctest.Wait()
				require.Contains(t, log.String(), "runtime.Goexit", protocol)
				require.Contains(t, log.String(), "path="+inDefault)
			}
		}, func(c *serve.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.Metrics = m
			c.Authorize = func(context.Context, serve.User, *serve.Request) error { runtime.Goexit(); return nil }
		})
		require.Len(t, m.served, 2)
		for _, measured := range m.served {
			require.True(t, measured.Aborted, protocol)
		}
	}
}

// A client that goes away while its watch is prepared leaves nothing.
func TestAside_ClientThatDoesNotWait(t *testing.T) {
	hook := func(c *serve.Config) {
		c.Authorize = func(ctx context.Context, _ serve.User, _ *serve.Request) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
	}
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", s.url+inDefault+"?watch=1", nil)
		require.NoError(t, err)
		_, err = s.client.Do(req)
		require.True(t, errors.Is(err, context.DeadlineExceeded), err)
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Watches)
	}, hook)
}

// Of an idle watch over HTTP/2 one goroutine is left.
func TestAside_LeavesOneGoroutine(t *testing.T) {
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		const n = 20
		before := serving()
		for range n {
			resp := s.send(t.Context(), "GET", inDefault+"?watch=1", "")
			defer func() { require.NoError(t, resp.Body.Close()) }()
		}
		synctest.Wait()
		require.Equal(t, n, serving()-before)
	})
}

// serving returns how many goroutines have been started for requests, or by them.
func serving() (n int) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for one := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(one, "watchmill/serve.(") {
			n++
		}
	}
	return n
}
