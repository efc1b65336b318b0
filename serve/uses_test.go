package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend/memory"
)

const laterInA = "/apis/later.example.com/v1/namespaces/a/doodads"

// newHeld is newLater of a kind whose first write closes admitting, and waits until proceed is closed.
func newHeld(t *testing.T) (later *registry.Store[Widget], admitting, proceed chan struct{}) {
	t.Helper()
	admitting, proceed = make(chan struct{}), make(chan struct{})
	later = newLater(t, func(c *registry.Config[Widget]) {
		c.Admit = []registry.Admitter{registry.AdmitFunc(func(context.Context, *registry.Admission) error {
			close(admitting)
			<-proceed
			return nil
		})}
	})
	return later, admitting, proceed
}

// answersLater sends a request in another goroutine. The channel gets its status.
func (s *server) answersLater(method, path, body string) <-chan int {
	code := make(chan int, 1)
	go func() { code <- s.do(method, path, body).code }()
	return code
}

// isUsed reports whether a request still uses a kind.
func isUsed(t *testing.T, s *serve.Server, of serve.Provider) bool {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.WaitUnused(over, of)
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	return err != nil
}

// A write that has found its kind before that is replaced or removed is done in full before its store closes.
func TestWaitUnused_WaitsForRequestsOfBefore(t *testing.T) {
	for name, change := range map[string]func(s *serve.Server, old serve.Provider) error{
		"Replace": func(s *serve.Server, old serve.Provider) error { return s.Replace(old, newLater(t)) },
		"Remove":  func(s *serve.Server, old serve.Provider) error { s.Remove(old); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			old, admitting, proceed := newHeld(t)
			require.NoError(t, s.handler.Add(old))
			written := s.answersLater("POST", laterInA, `{"metadata":{"name":"g"}}`)
			<-admitting
			require.NoError(t, change(s.handler, old))
			require.True(t, isUsed(t, s.handler, old))
			unused := make(chan error, 1)
			go func() { unused <- s.handler.WaitUnused(t.Context(), old) }()
			close(proceed)
			require.NoError(t, <-unused)
			require.NoError(t, old.Close())
			require.Equal(t, 201, <-written)
			require.False(t, isUsed(t, s.handler, old), "and nothing uses it again")
		})
	}
}

// Requests of other kinds, and those that came after the change, are not waited for.
func TestWaitUnused_WaitsForNoOthers(t *testing.T) {
	s := newServer(t)
	slow, admitting, proceed := newHeld(t)
	old := newLater(t)
	require.NoError(t, s.handler.Add(old))
	require.Equal(t, 200, s.get(laterPath).code)
	require.NoError(t, s.handler.Replace(old, slow))
	written := s.answersLater("POST", laterInA, `{"metadata":{"name":"g"}}`)
	<-admitting
	require.NoError(t, s.handler.WaitUnused(t.Context(), old, nil, newLater(t)))
	close(proceed)
	require.Equal(t, 201, <-written)
}

// A provider that is served may get requests at any time.
func TestWaitUnused_RefusesWhatIsServed(t *testing.T) {
	s := newServer(t)
	later := newLater(t)
	require.NoError(t, s.handler.Add(later))
	var wrong *engine.ConfigError
	require.ErrorAs(t, s.handler.WaitUnused(t.Context(), later), &wrong)
	require.Equal(t, "of", wrong.Field)
	s.handler.Remove(later)
	require.NoError(t, s.handler.WaitUnused(t.Context(), later))
	require.NoError(t, s.handler.Add(later), "it may come again")
	require.Error(t, s.handler.WaitUnused(t.Context(), later))
}

// One that cannot be compared stays when it is removed, and its store is in use as long as the server.
func TestWaitUnused_RefusesWhatCannotBeRemoved(t *testing.T) {
	s := newServer(t)
	later := providers{newLater(t)}
	require.NoError(t, s.handler.Add(later))
	s.handler.Remove(later)
	require.Equal(t, 200, s.get(laterPath).code)
	var wrong *engine.ConfigError
	require.ErrorAs(t, s.handler.WaitUnused(t.Context(), later), &wrong)
	require.Equal(t, "of", wrong.Field)
}

// A watch is waited for until it has started: it lasts as long as its store.
func TestWaitUnused_WaitsForTheStartsOfWatches(t *testing.T) {
	s := newServer(t)
	old := newLater(t)
	require.NoError(t, s.handler.Add(old))
	next, err := strconv.Atoi(s.do("POST", laterInA, `{"metadata":{"name":"g1"}}`).str("metadata.resourceVersion"))
	require.NoError(t, err)
	running := s.watch(laterPath + "?watch=1")
	running.expect("ADDED g1")
	ctx, leave := context.WithCancel(t.Context())
	resp := make(chan *http.Response, 1)
	go func() { resp <- s.send(ctx, "GET", fmt.Sprint(laterPath, "?watch=1&resourceVersion=", next+1), "") }()
	require.Eventually(t, func() bool { return serve.StartingWatches(s.handler) == 1 }, time.Minute, time.Millisecond)
	s.handler.Remove(old)
	require.True(t, isUsed(t, s.handler, old), "a watch waits for the revision that it is to start from")
	_, err = old.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "g2"}}, registry.WriteOptions{})
	require.NoError(t, err)
	running.expect("ADDED g2")
	started := <-resp
	require.Equal(t, 200, started.StatusCode)
	require.NoError(t, s.handler.WaitUnused(t.Context(), old))
	leave()
	_ = started.Body.Close()
}

// However a request ends, and even if it is refused before it has used its kind, it is not waited for any more.
func TestWaitUnused_NothingIsLeftOfARequest(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		requireUnused := func(what string) {
			t.Helper()
			synctest.Wait()
			s.handler.Remove(s.widgets)
			require.False(t, isUsed(t, s.handler, s.widgets), what)
			require.NoError(t, s.handler.Add(s.widgets))
		}
		for _, ends := range []string{"", "unauthenticated", "forbidden", "panic", "abort", "goexit"} {
			for _, r := range [][3]string{
				{"GET", inDefault, ""}, {"GET", inDefault + "/none", ""}, {"GET", inDefault + "?watch=1&timeoutSeconds=1", ""}, {"GET", inDefault + "?watch=1&resourceVersion=x", ""},
				{"POST", inDefault, `{"metadata":{"generateName":"w"}}`}, {"POST", inDefault, `{"metadata":`}, {"POST", inDefault, `{"metadata":{"name":"w"},"spec":{"size":666}}`},
			} {
				req, err := http.NewRequestWithContext(t.Context(), r[0], s.url+r[1], strings.NewReader(r[2]))
				require.NoError(t, err)
				req.Header.Set("Ends", ends)
				if resp, err := s.client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body) // which may be cut off
					require.NoError(t, resp.Body.Close())
				}
				requireUnused(fmt.Sprint(ends, r))
			}
		}
		running := s.send(t.Context(), "GET", inDefault+"?watch=1", "")
		requireUnused("a watch that has started")
		require.Equal(t, 429, s.get(inDefault+"?watch=1").code)
		requireUnused("one that a limit refuses")
		require.NoError(t, running.Body.Close())

		body, in := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+inDefault, body)
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { _ = in.CloseWithError(errors.New("it has left")) })
		_, err = s.client.Do(req)
		require.ErrorContains(t, err, "it has left")
		requireUnused("a client that leaves while its body arrives")
	}, func(c *serve.Config) {
		c.Limits.Watches = 1
		c.Authenticate = func(r *http.Request) (serve.User, error) {
			switch r.Header.Get("Ends") {
			case "unauthenticated":
				return serve.User{}, serve.ErrUnauthenticated
			case "panic":
				panic("odd")
			case "abort":
				panic(http.ErrAbortHandler)
			case "goexit":
				runtime.Goexit()
			}
			return serve.User{Name: r.Header.Get("Ends")}, nil
		}
		c.Authorize = func(_ context.Context, u serve.User, _ *serve.Request) error {
			if u.Name == "forbidden" {
				return errors.New("no")
			}
			return nil
		}
	})
}

// However requests and changes of a kind meet, each request is answered by a store that is open.
func TestWaitUnused_NoRequestMeetsAClosedStore(t *testing.T) {
	s := newServer(t)
	format := widgetConfig()
	format.Kind = registry.Kind{Group: "later.example.com", Version: "v1", Kind: "Doodad"}
	objects, err := memory.New(registry.Schema(format), memory.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, objects.Close()) }()
	open := func() *registry.Store[Widget] {
		next := newLater(t, func(c *registry.Config[Widget]) { c.Engine.Backend = objects })
		require.NoError(t, next.Engine().WaitReady(t.Context()))
		return next
	}
	was := open()
	require.NoError(t, s.handler.Add(was))
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for client := range 4 {
		clients.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("g-%d-%d", client, i)
				for _, a := range []answer{
					s.do("POST", laterInA, `{"metadata":{"name":"`+name+`"}}`), s.get(laterInA + "/" + name), s.get(laterInA),
					s.do("PATCH", laterInA+"/"+name, `{"spec":{"size":2}}`, "Content-Type", mergePatch), s.do("DELETE", laterInA+"/"+name, ""),
				} {
					if a.code >= 300 {
						t.Errorf("%s: %d %s", name, a.code, a.body)
						return
					}
				}
			}
		})
	}
	for range 30 {
		next := open()
		require.NoError(t, s.handler.Replace(was, next))
		require.NoError(t, s.handler.WaitUnused(t.Context(), was))
		require.NoError(t, was.Close())
		was = next
	}
	close(stop)
	clients.Wait()
}
