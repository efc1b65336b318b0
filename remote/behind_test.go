package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/remote"
)

// watchFrom asks a server for a watch over the wire. The caller closes the body.
func watchFrom(ctx context.Context, url string, rev engine.Revision) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/apis/example.com/v1/widgets?watch=1&resourceVersion=%d", url, rev), nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(req)
}

// refusal returns the status, the time to wait, and the text of a watch that is refused;
// "200" if it is not.
func refusal(ctx context.Context, url string, rev engine.Revision) (string, error) {
	resp, err := watchFrom(ctx, url, rev)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return "200", nil
	}
	text, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s %s", resp.StatusCode, resp.Header.Get("Retry-After"), text), err
}

// A replica that is behind answers a watch from a revision that its origin has with 429,
// so that the client comes back and resumes, and one from a revision that the origin does
// not have with 504. The same through another replica.
func TestReplica_AWatchAheadOfItsCacheIsToComeBack(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	origin := newServer(t)
	first := origin.create("a", 1)
	var silent atomic.Bool
	silent.Store(true)
	before := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !silent.Load() || r.URL.Query().Get("watch") == "" {
			next.ServeHTTP(w, r)
			return
		}
		_ = http.NewResponseController(w).Flush() // it begins, and has no events
		<-r.Context().Done()
	})
	brief := func(at string) *server {
		b := backendAt(t, at, func(c *remote.Config) { c.NoHistory = true })
		return newServer(t, func(cfg *registry.Config[Widget]) {
			cfg.Engine.Backend, cfg.Engine.FreshnessTimeout = b, 10*time.Millisecond
		})
	}
	middle := brief(before.URL)
	leaf := brief(middle.url)
	replicas := []*server{middle, leaf}
	for _, r := range replicas {
		require.Eventually(t, func() bool { return r.store.Engine().WaitForRevision(ctx, first.Revision) == nil }, patience, time.Millisecond)
	}
	second := origin.create("b", 2)
	become := func(r *server, rev engine.Revision, code, text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			got, err := refusal(ctx, r.url, rev)
			return err == nil && strings.HasPrefix(got, code) && strings.Contains(got, text)
		}, patience, time.Millisecond)
	}
	for _, r := range replicas {
		become(r, second.Revision, "429 1", fmt.Sprintf("storage is at revision %d, and the cache is behind", second.Revision))
		become(r, second.Revision+1, "504 1", "ResourceVersionTooLarge")
	}

	silent.Store(false)
	before.CloseClientConnections()
	become(leaf, second.Revision, "200", "")
	resumed, err := watchFrom(ctx, leaf.url, second.Revision)
	require.NoError(t, err)
	defer resumed.Body.Close()
	last := origin.create("c", 3)
	line, err := bufio.NewReader(resumed.Body).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `"type":"ADDED"`)
	require.Contains(t, line, fmt.Sprintf(`"resourceVersion":"%d"`, last.Revision))
}

// A replica whose origin is away when it starts cannot know what that has. Its clients come back and
// resume, as after any failure of storage. The origin's own refusal, without a time to come back, would
// have them list.
func TestReplica_AWatchIsToComeBackOnceTheOriginAnswers(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	origin := newServer(t)
	first := origin.create("a", 1)
	var away atomic.Bool
	away.Store(true)
	before := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
	b := backendAt(t, before.URL)
	r := newServer(t, func(cfg *registry.Config[Widget]) {
		cfg.Engine.Backend, cfg.Engine.FreshnessTimeout = b, 10*time.Millisecond
	})
	refused := ""
	require.Eventually(t, func() bool {
		got, err := refusal(t.Context(), r.url, first.Revision)
		refused = got
		return err == nil && strings.Contains(got, "503") // the replica has asked by then
	}, patience, time.Millisecond)
	require.Regexp(t, `^429 [1-9]`, refused)
	away.Store(false)
	require.Eventually(t, func() bool {
		got, err := refusal(t.Context(), r.url, first.Revision)
		return err == nil && got == "200"
	}, patience, time.Millisecond)
}

// A replica asks its origin to leave managed fields out, unless it keeps them.
func TestReplica_AsksForManagedFieldsOnlyIfItKeepsThem(t *testing.T) {
	origin := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Apply = apply.New })
	for _, keep := range []bool{true, false} {
		var mu sync.Mutex
		sent := map[bool]string{} // by whether it is a watch
		before := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(&copied{w, &mu, sent, r.URL.Query().Get("watch") != ""}, r)
		})
		o := origin.create(fmt.Sprint("before-", keep), 1)
		e := replica(t, before.URL, func(c *remote.Config) { c.KeepManagedFields, c.NoHistory = keep, true }).store.Engine()
		require.NoError(t, e.WaitForRevision(t.Context(), o.Revision))
		next := origin.create(fmt.Sprint("after-", keep), 1)
		require.NoError(t, e.WaitForRevision(t.Context(), next.Revision))
		got, err := e.Get(t.Context(), next.Key, engine.GetOptions{Read: engine.Cached()})
		require.NoError(t, err)
		require.Equal(t, keep, len(got.Value.ManagedFields) > 0)
		mu.Lock()
		require.Equal(t, keep, strings.Contains(sent[true], "managedFields"), "in watches")
		require.Equal(t, keep, strings.Contains(sent[false], "managedFields"), "in lists")
		mu.Unlock()
	}
}

// copied is an answer of which a copy is kept.
type copied struct {
	http.ResponseWriter
	mu    *sync.Mutex
	sent  map[bool]string
	watch bool
}

func (c *copied) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.sent[c.watch] += string(p)
	c.mu.Unlock()
	return c.ResponseWriter.Write(p)
}

func (c *copied) Unwrap() http.ResponseWriter { return c.ResponseWriter }
