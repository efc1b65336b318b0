package serve_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

func TestShutdown_EndsWatchesAndRefusesRequests(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = 1, 1
	})
	from := "?watch=1&resourceVersion=" + s.create("a", 1)
	s.becomes("/readyz", "ok")
	w, quiet := s.watch(inDefault+from), s.watch(inDefault+from+"&fieldSelector=metadata.name=b")
	s.do("PATCH", inDefault+"/a", `{"spec":{"size":2}}`, "Content-Type", mergePatch)
	w.expect("MODIFIED a")
	require.NoError(t, s.handler.Shutdown(t.Context()))
	for _, one := range []*watch{w, quiet} {
		var last frame
		for f, ok := one.next(); ok; f, ok = one.next() {
			last = f
		}
		require.NotEqual(t, "ERROR", last.Type, "%s", last.Object)
	}
	ready := s.get("/readyz")
	require.Equal(t, 500, ready.code)
	require.Contains(t, ready.body, "[-]shutdown failed")
	require.Equal(t, 200, s.get("/livez").code)
	refused := s.get(inDefault)
	require.Equal(t, "429 TooManyRequests 1", fmt.Sprintf("%d %s %s", refused.code, refused.str("reason"), refused.header.Get("Retry-After")))
	require.Zero(t, s.handler.Stats().Watches)
}

// A request may take long to authenticate. One that was not being served yet when Shutdown
// returned is not served after it, when what it needs may be closed.
func TestShutdown_RefusesRequestsThatAreStillAuthenticated(t *testing.T) {
	asked, known := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = 1, 1
		c.Authenticate = func(*http.Request) (serve.User, error) {
			asked <- struct{}{}
			<-known
			return serve.User{Name: "a"}, nil
		}
	})
	answers := make(chan answer)
	for _, path := range []string{inDefault, inDefault + "?watch=1"} {
		go func() { answers <- s.get(path) }()
		<-asked
	}
	go func() { answers <- s.do("POST", inDefault, `{"metadata":{"name":"a"}}`) }()
	<-asked
	require.NoError(t, s.handler.Shutdown(t.Context()))
	close(known)
	for range 3 {
		a := <-answers
		require.Equal(t, "429 TooManyRequests 1", fmt.Sprintf("%d %s %s", a.code, a.str("reason"), a.header.Get("Retry-After")))
		require.Equal(t, "the server is shutting down", a.str("message"))
	}
}

// unstarted is the kind Gadget, no watch of which ever starts, as when its storage is away.
type unstarted struct {
	registry.Resource
	began chan struct{}
}

func (u *unstarted) Resources() []registry.Resource { return []registry.Resource{u} }

func (u *unstarted) WaitForRevision(ctx context.Context, _ engine.Revision) error { return u.stay(ctx) }

func (u *unstarted) Watch(ctx context.Context, _ engine.WatchOptions) (registry.Stream, error) {
	return nil, u.stay(ctx)
}

func (u *unstarted) stay(ctx context.Context) error {
	u.began <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// A watch that still waits for storage is refused, since it would delay a shutdown to its end.
func TestShutdown_RefusesWatchesThatStillStart(t *testing.T) {
	store, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	kind := &unstarted{store.Resources()[0], make(chan struct{})}
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ShutdownDelay, c.Limits.DrainWatches = 1, 1
		c.Resources = append(c.Resources, kind)
	})
	answers := make(chan answer)
	for _, query := range []string{"?watch=1", "?watch=1&resourceVersion=7"} {
		go func() { answers <- s.get(gadgets + query) }()
		<-kind.began
	}
	require.Equal(t, 2, s.handler.Stats().Watches)
	require.NoError(t, s.handler.Shutdown(t.Context()))
	for range 2 {
		a := <-answers
		require.Equal(t, "429 TooManyRequests 1", fmt.Sprintf("%d %s %s", a.code, a.str("reason"), a.header.Get("Retry-After")))
		require.Equal(t, "the server is shutting down", a.str("message"))
	}
	require.Zero(t, s.handler.Stats().Watches)
}

// A watch that still waits for storage frees its place when its client leaves.
func TestWatch_ClientThatLeavesWhileItStartsLeavesNothing(t *testing.T) {
	store, err := registry.New(registry.Config[Widget]{Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	kind := &unstarted{store.Resources()[0], make(chan struct{})}
	inBubble(t, func(t *testing.T, s *server) {
		kind.began = make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			req, err := http.NewRequestWithContext(ctx, "GET", s.url+gadgets+"?watch=1", nil)
			if err == nil {
				_, err = s.client.Do(req)
			}
			failed <- err
		}()
		<-kind.began
		require.Equal(t, 1, s.handler.Stats().Watches)
		leave()
		require.ErrorIs(t, <-failed, context.Canceled)
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Watches)
	}, func(c *serve.Config) { c.Resources = append(c.Resources, kind) })
}

// A client that reads slowly does not hold a shutdown up by what it is still to be sent: its watch ends after the
// event that it reads.
func TestShutdown_EndsAWatchBetweenTwoEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 16 << 10}
		s.createLargeWidgets()
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1", "")
		defer resp.Body.Close()
		stopped := make(chan error, 1)
		go func() { stopped <- s.handler.Shutdown(t.Context()) }()
		time.Sleep(10 * time.Second)
		require.Empty(t, stopped)
		read, ended := lines(resp.Body, 2*largeWidgets)
		require.NoError(t, <-stopped)
		require.Equal(t, `{"type":"ADDED"`, (<-read)[:15])
		require.Equal(t, `{"type":"ERROR"`, (<-read)[:15], "the initial state is not complete")
		_, more := <-read
		require.False(t, more)
		require.ErrorIs(t, *ended, io.EOF)
	})
}

func TestEngineClosed_EndsWatchesCleanlyAndIsRetriedLater(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	w := s.watch(inDefault + "?watch=1&allowWatchBookmarks=1")
	w.expect("ADDED a")
	end, _ := w.next()
	require.Equal(t, "BOOKMARK", end.Type)
	require.NoError(t, s.widgets.Close())
	_, more := w.change()
	require.False(t, more)
	a := s.get(inDefault)
	require.Equal(t, "429 1", fmt.Sprintf("%d %s", a.code, a.header.Get("Retry-After")))
}
