package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// slowWrite is a write whose body is sent as the test says.
type slowWrite struct {
	body   *io.PipeWriter
	answer chan *http.Response // without its body; nil if there is none
}

// slow begins to create a widget, as a user, and sends a first byte of its body.
func (s *server) slow(user string) slowWrite {
	s.t.Helper()
	body, in := io.Pipe()
	w := slowWrite{in, make(chan *http.Response, 1)}
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", s.url+inDefault, body)
	require.NoError(s.t, err)
	req.Header.Set("User", user)
	go func() {
		defer close(w.answer)
		if resp, err := s.client.Do(req); err == nil {
			resp.Body.Close()
			w.answer <- resp
		}
	}()
	_, _ = io.WriteString(in, "{") // fails if the server has refused it already
	synctest.Wait()
	return w
}

// finish sends the rest of the body, and returns the status of the answer.
func (w slowWrite) finish(name string) int {
	_, _ = fmt.Fprintf(w.body, `"metadata":{"name":%q}}`, name) // fails if the server has given it up
	_ = w.body.Close()
	if resp := <-w.answer; resp != nil {
		return resp.StatusCode
	}
	return 0
}

// byHeader tells users by a header, and allows that many writes.
func byHeader(writes int) func(*serve.Config) {
	return func(c *serve.Config) {
		c.Limits.Writes = writes
		c.Authenticate = func(r *http.Request) (serve.User, error) { return serve.User{Name: r.Header.Get("User")}, nil }
	}
}

// Bodies that arrive slowly hold no place among the writes.
func TestArrive_SlowBodiesKeepNoOtherFromWriting(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		a, b := s.slow("a"), s.slow("a")
		require.Equal(t, 2, s.handler.Stats().Arriving)
		require.Zero(t, s.handler.Stats().InFlight)
		time.Sleep(time.Second)
		s.create("quick", 1)
		synctest.Wait()
		require.Equal(t, 1, s.handler.Stats().Arriving, "one has given way")
		first := <-a.answer
		require.Equal(t, 429, first.StatusCode)
		require.Equal(t, "1", first.Header.Get("Retry-After"))
		a.body.Close()
		require.Equal(t, 201, b.finish("b"))
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Arriving)
	}, byHeader(2))
}

// Over HTTP/2 a body that gives way ends its own request, and not the connection, which others share.
func TestArrive_OverHTTP2TheConnectionStays(t *testing.T) {
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		dials, by := 0, s.client.Transport.(*http.Transport)
		dial := by.DialContext
		by.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return dial(ctx, network, address)
		}
		a := s.slow("a")
		time.Sleep(time.Second)
		s.create("quick", 1)
		require.Equal(t, 429, (<-a.answer).StatusCode)
		a.body.Close()
		synctest.Wait()
		s.create("next", 1)
		require.Equal(t, 1, dials)
	}, byHeader(1))
}

// The user with the most gives way, not the one that came first.
func TestArrive_OneUserDisplacesNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		patient := s.slow("patient")
		var greedy []slowWrite
		for range 10 {
			greedy = append(greedy, s.slow("greedy"))
			time.Sleep(time.Second)
		}
		require.Equal(t, 3, s.handler.Stats().Arriving)
		require.Equal(t, 201, patient.finish("patient"))
		for i, w := range greedy {
			if i < 8 {
				require.Equal(t, 429, w.finish("none"))
			} else {
				require.Equal(t, 201, w.finish(fmt.Sprintf("w%d", i)))
			}
		}
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Arriving)
	}, byHeader(3))
}

// Under more load than there is room for, bodies that have begun arrive, and others are refused: if each
// displaced another one, none would arrive whole. A body of another user, which has fewer, is let in.
func TestArrive_OverloadLetsWholeBodiesThrough(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		var begun []slowWrite
		for range 4 {
			begun = append(begun, s.slow("a"))
		}
		require.Equal(t, 429, s.slow("a").finish("none"))
		other := s.slow("b")
		require.Equal(t, 429, begun[0].finish("none"), "it has given way to another user")
		require.Equal(t, 201, other.finish("b"))
		for i, w := range begun[1:] {
			require.Equal(t, 201, w.finish(fmt.Sprintf("w%d", i)))
		}
	}, byHeader(4), func(c *serve.Config) { c.Limits.WritesPerUser = 4 })
}

// Two users of whom one has one more body than the other do not displace each other's bodies in turn.
func TestArrive_UsersWithAboutAsManyBodiesLetEachOtherBe(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		begun := []slowWrite{s.slow("a"), s.slow("a"), s.slow("a"), s.slow("b")}
		require.Equal(t, 429, begun[0].finish("none"), "it has given way to the other user")
		require.Equal(t, 429, s.slow("b").finish("none"))
		for i, w := range begun[1:] {
			require.Equal(t, 201, w.finish(fmt.Sprint("w", i)))
		}
	}, byHeader(3), func(c *serve.Config) { c.Limits.WritesPerUser = 3 })
}

// The server cannot give up a body whose connection has no deadlines. It keeps its place, so that no more
// bodies than the limit are read at a time.
func TestArrive_ABodyWithoutDeadlinesKeepsItsPlace(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		body, in := io.Pipe()
		answered := make(chan int, 1)
		go func() {
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost"+inDefault, body))
			answered <- w.Code
		}()
		_, err := io.WriteString(in, "{")
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.Equal(t, 429, s.do("POST", inDefault, `{"metadata":{"name":"b"}}`).code)
		require.Equal(t, 1, s.handler.Stats().Arriving)
		_, err = io.WriteString(in, `"metadata":{"name":"a"}}`)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		require.Equal(t, 201, <-answered)
	}, byHeader(1))
}

// A write whose body has come takes a place then, and is refused if there is none.
func TestArrive_TakesAPlaceOnceTheBodyIsThere(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.Writes = 1
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			if r.Verb == "delete" {
				close(entered)
				<-leave
			}
			return nil
		}
	})
	body, in := io.Pipe()
	answers := make(chan *http.Response, 1)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(answers)
		if resp, err := http.Post(s.url+inDefault, "application/json", body); err == nil {
			resp.Body.Close()
			answers <- resp
		}
	})
	_, err := io.WriteString(in, "{")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.handler.Stats().Arriving == 1 }, time.Minute, time.Millisecond)
	all.Go(func() { s.do("DELETE", inDefault+"/a", "") })
	<-entered
	_, err = io.WriteString(in, "}")
	require.NoError(t, err)
	require.NoError(t, in.Close())
	refused := <-answers
	require.NotNil(t, refused)
	require.Equal(t, 429, refused.StatusCode)
	close(leave)
	all.Wait()
}

// A shutdown waits for writes whose bodies arrive, as for those in flight.
func TestArrive_AShutdownWaitsForTheBody(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		w := s.slow("a")
		ended := make(chan error, 1)
		go func() { ended <- s.handler.Shutdown(t.Context()) }()
		time.Sleep(10 * time.Second) // more than its delays
		require.Empty(t, ended)
		require.Equal(t, 201, w.finish("a"))
		require.NoError(t, <-ended)
	}, byHeader(1))
}

// Over HTTP/1.1 net/http reads the body of a write that was refused before it answers. That does
// not take the place of others.
func TestArrive_ARefusalWhoseBodyDoesNotComeHoldsNoPlace(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		conn := s.promise(t, "PATCH", inDefault+"/"+strings.Repeat("w", 8<<10))
		defer conn.Close()
		synctest.Wait()
		require.Equal(t, serve.Stats{Requests: 1, Arriving: 1}, s.handler.Stats())
		for range 2 {
			require.Equal(t, 403, s.do("POST", inDefault, "{}").code, "and not 429")
			time.Sleep(time.Second)
		}
		require.Equal(t, "403 Forbidden", status(conn), "once it has given way")
	}, byHeader(1), func(c *serve.Config) {
		c.Authorize = func(context.Context, serve.User, *serve.Request) error { return errors.New("no") }
	})
}

// A write that is refused while all places of bodies are taken is answered at once, and does not hold
// its own place until its body has come.
func TestArrive_ARefusalWithoutAPlaceForItsBodyIsAnsweredAtOnce(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		w := s.slow("a")
		began := time.Now()
		conn := s.promise(t, "PATCH", inDefault+"/w")
		defer conn.Close()
		require.Equal(t, "403 Forbidden", status(conn))
		require.Equal(t, began, time.Now())
		synctest.Wait()
		require.Zero(t, s.handler.Stats().InFlight)
		require.Equal(t, 201, w.finish("w"))
	}, byHeader(1), func(c *serve.Config) {
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			if r.Verb == "patch" {
				return errors.New("no")
			}
			return nil
		}
	})
}

// Unauthenticated clients do not displace the bodies of users.
func TestArrive_UnknownUsersDisplaceNoBody(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		w := s.slow("a")
		time.Sleep(time.Second)
		conn := s.promise(t, "POST", inDefault)
		defer conn.Close()
		synctest.Wait()
		require.Equal(t, 201, w.finish("w"))
		_, err := io.WriteString(conn, "{   }")
		require.NoError(t, err)
		require.Equal(t, "401 Unauthorized", status(conn))
	}, byHeader(1), func(c *serve.Config) {
		c.Authenticate = func(r *http.Request) (serve.User, error) {
			if r.Header.Get("User") == "" {
				return serve.User{}, serve.ErrUnauthenticated
			}
			return serve.User{Name: r.Header.Get("User")}, nil
		}
	})
}

// One user cannot have all places, if there are others.
func TestLimits_OfOneUser(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.Reads = 4
		byHeader(3)(c)
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			if r.Name == "slow" {
				entered <- struct{}{}
				<-leave
			}
			return nil
		}
	})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { s.get(inDefault+"/slow", "User", "a") })
		all.Go(func() { s.do("DELETE", inDefault+"/slow", "", "User", "a") })
		<-entered
		<-entered
	}
	for method, code := range map[string]int{"GET": 404, "DELETE": 404} {
		mine := s.do(method, inDefault+"/b", "", "User", "a")
		require.Equal(t, 429, mine.code)
		require.Contains(t, mine.str("message"), "one user")
		require.Equal(t, code, s.do(method, inDefault+"/b", "", "User", "b").code)
	}
	close(leave)
	all.Wait()
}
