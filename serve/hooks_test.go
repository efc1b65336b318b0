package serve_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// broken are metrics of which every method panics.
type broken struct{ serve.NoMetrics }

func (broken) Served(serve.Measured)                      { panic("Served is broken") }
func (broken) Watching(serve.Endpoint) serve.WatchMetrics { panic("Watching is broken") }

// brokenWatches are metrics of which every method of a watch panics.
type brokenWatches struct {
	serve.NoMetrics
	serve.NoWatchMetrics
}

func (brokenWatches) Served(serve.Measured)                      {}
func (brokenWatches) Watching(serve.Endpoint) serve.WatchMetrics { return brokenWatches{} }
func (brokenWatches) Sent(int)                                   { panic("Sent is broken") }
func (brokenWatches) Synced(time.Duration)                       { panic("Synced is broken") }
func (brokenWatches) Written(time.Duration)                      { panic("Written is broken") }
func (brokenWatches) Ended()                                     { panic(http.ErrAbortHandler) }

// A hook that panics changes no answer: a write that is committed is acknowledged. Each hook is
// called, whatever those before it do, and the log has the panic.
func TestHooks_PanicChangesNoAnswer(t *testing.T) {
	var audited atomic.Int32
	var log bytes.Buffer
	inBubble(t, func(t *testing.T, s *server) {
		audited.Store(0)
		log.Reset()
		s.create("a", 1)
		require.Equal(t, 200, s.get(inDefault+"/a").code)
		require.Equal(t, 404, s.get(inDefault+"/b").code)
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1&timeoutSeconds=1", "")
		read, ended := lines(resp.Body, 10)
		require.Contains(t, <-read, `{"type":"ADDED"`)
		_, more := <-read
		require.False(t, more)
		require.EqualError(t, *ended, "EOF", "it ends cleanly")
		require.NoError(t, resp.Body.Close())
		synctest.Wait()
		require.Equal(t, int32(4), audited.Load())
		for hook, times := range map[string]int{"Metrics.Served": 4, "Metrics.Watching": 1, "Config.Audit": 4} {
			require.Equal(t, times, strings.Count(log.String(), "hook="+hook+" "), "%s", log.String())
		}
		require.Contains(t, log.String(), "Served is broken")
	}, func(c *serve.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Metrics = broken{}
		c.Audit = func(context.Context, serve.Audited) {
			audited.Add(1)
			panic("no record")
		}
	})
}

// quitting are metrics that end the goroutine of each request.
type quitting struct{ brokenWatches }

func (quitting) Served(serve.Measured) { runtime.Goexit() }

// No request goes without its record, since what records it may be obliged to have all.
func TestHooks_AuditIsCalledAlsoIfMetricsEndTheGoroutine(t *testing.T) {
	audited := 0
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Metrics = quitting{}
		c.Audit = func(context.Context, serve.Audited) { audited++ }
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost"+inDefault, nil))
	}()
	<-ended
	require.Equal(t, 1, audited)
}

// A watch goes on when its metrics panic, and ends as it would have ended.
func TestHooks_PanicChangesNoWatch(t *testing.T) {
	var ended error
	inBubble(t, func(t *testing.T, s *server) {
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1&timeoutSeconds=1", "")
		read, failed := lines(resp.Body, 10)
		for _, name := range []string{"a", "b"} {
			s.create(name, 1)
			require.Contains(t, <-read, `"name":"`+name+`"`)
		}
		_, more := <-read
		require.False(t, more)
		require.EqualError(t, *failed, "EOF", "it ends cleanly")
		require.NoError(t, resp.Body.Close())
		synctest.Wait()
		require.NoError(t, ended)
	}, func(c *serve.Config) {
		ended = errors.New("it has not ended")
		c.Metrics = brokenWatches{}
		c.Audit = func(_ context.Context, e serve.Audited) {
			if e.Request.Verb == "watch" {
				ended = e.End
			}
		}
	})
}

// A policy that allows what a selector selects must not allow what does not select by it.
func TestAuthorize_SelectorsAreOfVerbsThatSelect(t *testing.T) {
	var asked []string
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			asked = append(asked, strings.TrimSpace(strings.Join([]string{r.Verb, r.Labels, r.Fields}, " ")))
			return errors.New("not you")
		}
	})
	const selectors = "?labelSelector=a%3Db&fieldSelector=spec.color%3Dred"
	for _, request := range [][2]string{{"GET", "/a"}, {"PUT", "/a"}, {"PATCH", "/a"}, {"DELETE", "/a"}, {"POST", ""}, {"GET", ""}, {"DELETE", ""}} {
		s.do(request[0], inDefault+request[1]+selectors, "{}")
	}
	s.get(inDefault + selectors + "&watch=1")
	s.get(strings.Replace(inDefault, "/v1/", "/v1/watch/", 1) + "/a" + selectors)
	require.Equal(t, []string{
		"get", "update", "patch", "delete", "create", "list a=b spec.color=red", "deletecollection a=b spec.color=red",
		"watch a=b spec.color=red", "watch a=b metadata.name=a,spec.color=red",
	}, asked)
}

// A policy, and the log of the audit, have the name of the path, which is in the field selector, too.
func TestAuthorize_NameOfAnOlderWatchIsThatOfItsPath(t *testing.T) {
	names := make(chan string, 1)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			names <- r.Name
			return errors.New("not you")
		}
	})
	older := strings.Replace(inDefault, "/v1/", "/v1/watch/", 1)
	for path, want := range map[string]string{inDefault: "a", older: "a", older + "/b": "b"} {
		s.get(path + "?watch=1&fieldSelector=metadata.name%3Da")
		require.Equal(t, want, <-names, path)
	}
}

// A name that the server has made is known once the object is there.
func TestAudit_HasTheNameThatWasGenerated(t *testing.T) {
	audited := make(chan serve.Audited, 1)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Audit = func(_ context.Context, a serve.Audited) { audited <- a }
	})
	created := s.do("POST", inDefault, `{"metadata":{"generateName":"w-"}}`)
	require.Equal(t, 201, created.code, created.body)
	require.Equal(t, created.str("metadata.name"), (<-audited).Request.Name)
	require.Equal(t, 422, s.do("POST", inDefault, `{"metadata":{"generateName":"w-"},"spec":{"size":-1}}`).code)
	require.Empty(t, (<-audited).Request.Name)
}

// A name that no object can have may be as large as a body, which would fill the log of the audit.
func TestAudit_HasNoNameThatNoObjectCanHave(t *testing.T) {
	audited := make(chan serve.Audited, 1)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Audit = func(_ context.Context, a serve.Audited) { audited <- a }
	})
	for length, want := range map[int]int{253: 253, 254: 0, 1 << 20: 0} {
		a := s.do("POST", inDefault, `{"metadata":{"name":"`+strings.Repeat("a", length)+`"}}`)
		require.Equal(t, want > 0, a.code == 201, a.code)
		require.Len(t, (<-audited).Request.Name, want)
	}
}

// userless is a provider whose watches report whether they know their user.
type userless struct {
	serve.Provider
	saw func(what string, ctx context.Context)
}

func (p userless) Resources() []registry.Resource {
	all := p.Provider.Resources()
	all[0] = userlessResource{all[0], p.saw}
	return all
}

type userlessResource struct {
	registry.Resource
	saw func(what string, ctx context.Context)
}

func (r userlessResource) Watch(ctx context.Context, o engine.WatchOptions) (registry.Stream, error) {
	r.saw("Watch", ctx)
	return r.Resource.Watch(ctx, o)
}

// Functions of the configuration that get a request's context find its user there.
func TestUserOf_IsKnownToAllThatGetTheContext(t *testing.T) {
	var mu sync.Mutex
	users, audited, bounded := map[string]string{}, make(chan struct{}, 1), false
	saw := func(what string, ctx context.Context) {
		mu.Lock()
		defer mu.Unlock()
		u, _ := serve.UserOf(ctx)
		users[what] = u.Name
	}
	gadgets, err := registry.New(registry.Config[Widget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Gadget"}, Engine: widgetConfig().Engine,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, gadgets.Close()) })
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Resources = []serve.Provider{userless{gadgets, saw}}
		c.Authenticate = serve.BearerTokens(map[string]serve.User{"secret": {Name: "sue"}})
		c.Impersonation = true
		c.Authorize = func(ctx context.Context, _ serve.User, r *serve.Request) error {
			saw("Authorize "+r.Verb, ctx)
			return nil
		}
		c.Audit = func(ctx context.Context, _ serve.Audited) {
			saw("Audit", ctx)
			audited <- struct{}{}
		}
		c.MetricsHandler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			saw("MetricsHandler", r.Context())
			_, bounded = r.Context().Deadline()
		})
	})
	require.Equal(t, 200, s.get("/metrics", "Authorization", "Bearer secret").code)
	<-audited
	require.True(t, bounded, "by ReadTimeout")
	require.Equal(t, map[string]string{"Authorize get": "sue", "MetricsHandler": "sue", "Audit": "sue"}, users)
	clear(users)
	require.Equal(t, 200, s.get("/apis/example.com/v1/gadgets?watch=1&timeoutSeconds=1", "Authorization", "Bearer secret", "Impersonate-User", "tom").code)
	<-audited
	require.Equal(t, map[string]string{"Authorize impersonate": "sue", "Authorize watch": "tom", "Watch": "tom", "Audit": "tom"}, users)
}
