package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// recorder is metrics that remember.
type recorder struct {
	serve.NoMetrics
	serve.NoWatchMetrics
	mu     sync.Mutex
	served []serve.Measured
	open   int
	sizes  []int
	synced int
	writes []time.Duration
	wake   chan struct{}
}

func newRecorder() *recorder { return &recorder{wake: make(chan struct{}, 1)} }

func (r *recorder) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *recorder) Served(m serve.Measured) { r.note(func() { r.served = append(r.served, m) }) }

func (r *recorder) Watching(serve.Endpoint) serve.WatchMetrics {
	r.note(func() { r.open++ })
	return r
}

func (r *recorder) Sent(bytes int)       { r.note(func() { r.sizes = append(r.sizes, bytes) }) }
func (r *recorder) Synced(time.Duration) { r.note(func() { r.synced++ }) }
func (r *recorder) Written(took time.Duration) {
	r.note(func() { r.writes = append(r.writes, took) })
}
func (r *recorder) Ended() { r.note(func() { r.open-- }) }

// await waits until what was noted is so.
func (r *recorder) await(t *testing.T, is func() bool) {
	t.Helper()
	for {
		r.mu.Lock()
		now := is()
		r.mu.Unlock()
		if now {
			return
		}
		select {
		case <-r.wake:
		case <-time.After(time.Minute):
			t.Fatal("it does not come to be")
		}
	}
}

// measured waits for the request that ends as the nth, counted from 1. A client may
// have its answer before the server has counted it.
func (r *recorder) measured(t *testing.T, n int) (m serve.Measured) {
	t.Helper()
	r.await(t, func() bool {
		if len(r.served) < n {
			return false
		}
		m = r.served[n-1]
		return true
	})
	return m
}

// asText is the request that ends as the nth, as text.
func (r *recorder) asText(t *testing.T, n int) string {
	t.Helper()
	m := r.measured(t, n)
	return strings.TrimSpace(fmt.Sprintf("%s %s/%s/%s/%s %s %v %d %s", m.Verb, m.Group, m.Version, m.Resource, m.Subresource, m.Scope, m.DryRun, m.Code, m.Refused))
}

func TestMetrics_RequestsAreTold(t *testing.T) {
	told := newRecorder()
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Metrics, c.Limits.BodyBytes = told, 500
		c.Authorize = func(context.Context, serve.User, *serve.Request) error { clocktest.Tick(); return nil }
	})
	s.create("a", 1)
	told.measured(t, 1)
	long := `{"metadata":{"name":"b","annotations":{"a":"` + strings.Repeat("x", 600) + `"}}}`
	for i, c := range []struct{ method, path, body, want string }{
		{"GET", inDefault + "/a", "", "GET example.com/v1/widgets/ resource false 200"},
		{"HEAD", inDefault + "/a", "", "GET example.com/v1/widgets/ resource false 200"},
		{"GET", inDefault, "", "LIST example.com/v1/widgets/ namespace false 200"},
		{"GET", allWidgets + "?fieldSelector=metadata.name%3Da", "", "LIST example.com/v1/widgets/ resource false 200"},
		{"GET", allWidgets, "", "LIST example.com/v1/widgets/ cluster false 200"},
		{"POST", inDefault + "?dryRun=All", `{"metadata":{"name":"b"}}`, "POST example.com/v1/widgets/ resource true 201"},
		{"PUT", inDefault + "/a/status", `{"metadata":{"name":"a"}}`, "PUT example.com/v1/widgets/status resource false 200"},
		{"POST", inDefault, long, "POST example.com/v1/widgets/ resource false 413 body"},
		{"DELETE", inDefault + "/a", `{"dryRun":["All"]}`, "DELETE example.com/v1/widgets/ resource true 200"},
		{"DELETE", inDefault, "", "DELETECOLLECTION example.com/v1/widgets/ namespace false 200"},
		{"GET", "/apis", "", "GET ///  false 200"},
		{"GET", "/apis/evil.example.com/v9/things", "", "GET ///  false 404"},
		{"GET", "/nowhere", "", "GET ///  false 404"},
		{"BREW", inDefault, "", "other example.com/v1/widgets/ namespace false 405"},
	} {
		s.do(c.method, c.path, c.body)
		require.Equal(t, c.want, told.asText(t, i+2), "%s %s", c.method, c.path)
	}
	got, created := told.measured(t, 2), told.measured(t, 7)
	require.NotZero(t, got.Took)
	require.Greater(t, got.ResponseBytes, int64(100), "the object")
	require.Zero(t, got.RequestBytes)
	require.Equal(t, int64(len(`{"metadata":{"name":"b"}}`)), created.RequestBytes)
}

// An apply is a verb of its own, and any other patch is not.
func TestMetrics_AppliesAreToldApart(t *testing.T) {
	told := newRecorder()
	s := newServer(t, withApply, func(_ *registry.Config[Widget], c *serve.Config) { c.Metrics = told })
	require.Equal(t, 201, s.apply("?fieldManager=one", "{size: 1}").code)
	require.Equal(t, "APPLY example.com/v1/widgets/ resource false 201", told.asText(t, 1))
	require.Equal(t, 200, s.do("PATCH", inDefault+"/a", `{"spec":{"size":2}}`, "Content-Type", mergePatch).code)
	require.Equal(t, "PATCH example.com/v1/widgets/ resource false 200", told.asText(t, 2))
	require.Equal(t, 415, s.do("PUT", inDefault+"/a", "{}", "Content-Type", applyPatch).code)
	require.Equal(t, "PUT example.com/v1/widgets/ resource false 415", told.asText(t, 3))
}

func TestMetrics_WatchesAndTheirEventsAreTold(t *testing.T) {
	told := newRecorder()
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Metrics, c.Limits.Watches = told, 1 })
	s.create("a", 1)
	told.measured(t, 1)
	w := s.watch(inDefault + "?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	w.expect("ADDED a", "BOOKMARK <nil>")
	told.await(t, func() bool { return told.open == 1 && told.synced == 1 && len(told.sizes) >= 2 })
	require.Equal(t, 429, s.get(inDefault+"?watch=1").code)
	require.Equal(t, "WATCH example.com/v1/widgets/ namespace false 429 watches", told.asText(t, 2))
	w.resp.Body.Close()
	told.await(t, func() bool { return told.open == 0 })
	require.Equal(t, "WATCH example.com/v1/widgets/ namespace false 200", told.asText(t, 3))
	sum := 0
	for _, size := range told.sizes {
		sum += size
	}
	require.Equal(t, int64(sum), told.measured(t, 3).ResponseBytes)
	require.Greater(t, told.sizes[0], 200, "the size of a frame")
}

// failingAfter is an Upgrader whose connections take as many messages, and then no more.
type failingAfter struct {
	handshaker
	messages int
}

func (u failingAfter) Upgrade(w http.ResponseWriter, r *http.Request, gone func(error)) (serve.Messages, error) {
	to, err := u.handshaker.Upgrade(w, r, gone)
	return &failingMessages{to, u.messages}, err
}

type failingMessages struct {
	serve.Messages
	left int
}

func (m *failingMessages) Send(context.Context, []byte) error {
	if m.left--; m.left < 0 {
		return net.ErrClosed
	}
	return nil
}

// A watch has more events in hand when its connection fails. They are not sent, and not counted.
func TestMetrics_EventsThatFindTheConnectionBrokenAreNotSent(t *testing.T) {
	told := newRecorder()
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Metrics, c.WebSocket = told, failingAfter{messages: 2}
	})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.create(name, 1)
	}
	resp := s.send(t.Context(), "GET", inDefault+"?watch=1", "", "Connection", "Upgrade", "Upgrade", "test")
	told.await(t, func() bool { return len(told.served) == 6 })
	require.NoError(t, resp.Body.Close())
	require.Len(t, told.sizes, 2)
	require.NotContains(t, told.sizes, 0)
	require.EqualValues(t, 2, s.handler.Stats().Events)
}

// counting are metrics that count requests, and measure nothing else.
type counting struct {
	serve.NoMetrics
	served func(serve.Measured)
}

func (c counting) Served(m serve.Measured) { c.served(m) }

// A watch that metrics do not measure is like any other, and its end is counted.
func TestMetrics_NeedNotMeasureWatches(t *testing.T) {
	told, log := newRecorder(), new(bytes.Buffer)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Metrics, c.Logger = counting{served: told.Served}, slog.New(slog.NewTextHandler(log, nil))
	})
	s.create("a", 1)
	w := s.watch(inDefault + "?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	w.expect("ADDED a", "BOOKMARK <nil>")
	w.resp.Body.Close()
	require.Equal(t, "WATCH example.com/v1/widgets/ namespace false 200", told.asText(t, 2))
	require.Empty(t, log.String())
}

// A watch or a list that is cut off since its client takes nothing is counted as that.
func TestMetrics_StalledClientsAreTold(t *testing.T) {
	for query, verb := range map[string]string{"?watch=1": "WATCH", "": "LIST"} {
		var told *recorder
		inBubble(t, func(t *testing.T, s *server) {
			s.client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 16 << 10}
			for i := range 20 {
				s.createLarge(fmt.Sprint("w", i), 200_000)
			}
			resp := s.send(t.Context(), "GET", inDefault+query, "")
			defer resp.Body.Close()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			m := told.measured(t, 1)
			require.Equal(t, verb+" write_stall", m.Verb+" "+string(m.Refused))
		}, func(c *serve.Config) {
			told = newRecorder()
			c.Metrics = told
		})
	}
}

// What the metrics are told of a client that reads nothing for ten seconds is those seconds,
// for the events which it was sent meanwhile alone.
func TestMetrics_SlowReadersAreTold(t *testing.T) {
	var told *recorder
	test := func(t *testing.T, s *server) {
		s.client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 1}
		create := func(name string) {
			_, err := s.widgets.Create(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}, registry.WriteOptions{})
			require.NoError(t, err)
		}
		create("a")
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1", "")
		defer resp.Body.Close()
		synctest.Wait()
		written := len(told.writes) // the header, and whatever was taken without waiting
		time.Sleep(10 * time.Second)
		read, _ := lines(resp.Body, 100)
		require.Contains(t, <-read, `"name":"a"`)
		synctest.Wait()
		require.Contains(t, told.writes, 10*time.Second)
		create("b")
		require.Contains(t, <-read, `"name":"b"`)
		synctest.Wait()
		var waited time.Duration
		for _, took := range told.writes[written:] {
			waited += took
		}
		require.Equal(t, 10*time.Second, waited)
	}
	inBubble(t, test, func(c *serve.Config) {
		told = newRecorder()
		c.Metrics = told
	})
}

// A 504 is also the whole answer to a client that is ahead of the server.
func TestMetrics_TellTimeoutsFromRevisionsToCome(t *testing.T) {
	told := newRecorder()
	var fault error
	s := newFaulty(t, func(context.Context) error { return fault }, func(_ *registry.Config[Widget], c *serve.Config) { c.Metrics = told })
	for i, timedOut := range []bool{true, false} {
		fault = map[bool]error{true: context.DeadlineExceeded, false: engine.ErrFuture}[timedOut]
		require.Equal(t, 504, s.get(gadgets+"/a").code)
		require.Equal(t, timedOut, told.measured(t, i+1).TimedOut)
	}
}

// A client that sends its body only once it is asked for it is refused at once, with metrics, too.
func TestMetrics_RefusalsDoNotWaitForTheBody(t *testing.T) {
	test := func(t *testing.T, s *server) {
		s.client.Transport.(*http.Transport).ExpectContinueTimeout = time.Hour
		began := time.Now()
		require.Equal(t, 403, s.do("POST", inDefault, `{"metadata":{"name":"a"}}`, "Expect", "100-continue").code)
		require.Zero(t, time.Since(began))
	}
	inBubble(t, test, func(c *serve.Config) {
		c.Metrics = newRecorder()
		c.Authorize = func(context.Context, serve.User, *serve.Request) error { return errors.New("no writes") }
	})
}

func TestMetrics_PageIsForThoseThatMayGetIt(t *testing.T) {
	var left time.Duration
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Limits.ReadTimeout = time.Minute
		c.MetricsHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			end, _ := r.Context().Deadline()
			left = time.Until(end)
			fmt.Fprint(w, "figures 1\n")
		})
		c.Authenticate = serve.BearerTokens(map[string]serve.User{"secret": {Name: "prometheus"}})
	})
	require.Equal(t, 401, s.get("/metrics").code)
	got := s.get("/metrics", "Authorization", "Bearer secret")
	require.Equal(t, "200 figures 1\n", fmt.Sprintf("%d %s", got.code, got.body))
	require.Positive(t, left)
	require.LessOrEqual(t, left, time.Minute, "the handler has the time of a read")
	require.Equal(t, 405, s.do("POST", "/metrics", "", "Authorization", "Bearer secret").code)
	require.Equal(t, 404, newServer(t).get("/metrics").code, "none unless given")
}
