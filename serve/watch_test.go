package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func TestWatch_StateThenEvents(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for _, query := range []string{"?watch=true", "?watch=1&resourceVersion=0", "?watch="} {
		s.cached()
		w := s.watch(inDefault + query)
		require.Equal(t, "application/json", w.resp.Header.Get("Content-Type"))
		w.expect("ADDED a")
		s.do("PATCH", inDefault+"/a", `{"spec":{"size":2}}`, "Content-Type", mergePatch)
		f, _ := w.next()
		require.Equal(t, "MODIFIED a 2 Widget example.com/v1", strings.Join([]string{f.String(), f.str("spec.size"), f.str("kind"), f.str("apiVersion")}, " "))
		require.NotEqual(t, "<nil>", f.str("metadata.resourceVersion"))
		s.do("PATCH", inDefault+"/a", `{"spec":{"size":1}}`, "Content-Type", mergePatch)
		w.expect("MODIFIED a")
	}
}

// Some clients, such as Ruby's kubeclient, watch by the paths that there were before the parameter.
func TestWatch_ByItsOlderPath(t *testing.T) {
	var asked []string
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Authorize = func(_ context.Context, _ serve.User, r *serve.Request) error {
			asked = append(asked, strings.Join([]string{r.Verb, r.Resource, r.Namespace, r.Name}, " "))
			return nil
		}
	})
	s.create("a", 1)
	s.create("b", 2)
	const older = "/apis/example.com/v1/watch"
	asked = nil
	all := s.watch(older + "/widgets?resourceVersion=0")
	all.expect("ADDED a")
	all.expect("ADDED b")
	s.watch(older + "/namespaces/default/widgets?fieldSelector=metadata.name%3Db").expect("ADDED b")
	one := s.watch(older + "/namespaces/default/widgets/b?labelSelector=!none")
	one.expect("ADDED b")
	require.Equal(t, []string{"watch widgets  ", "watch widgets default b", "watch widgets default b"}, asked)
	s.do("PATCH", inDefault+"/a", `{"spec":{"size":2}}`, "Content-Type", mergePatch)
	s.do("PATCH", inDefault+"/b", `{"spec":{"size":3}}`, "Content-Type", mergePatch)
	one.expect("MODIFIED b")
	require.Equal(t, 404, s.get(older+"/namespaces/default/widgets/b/status").code)
	require.Equal(t, 404, s.do("POST", older+"/namespaces/default/widgets", `{}`).code)
	require.Equal(t, 400, s.get(older+"/namespaces/default/widgets/b?fieldSelector=a").code)
}

// The protocol has no type of event for what is not state.
func TestWatch_LeavesEmittedValuesOut(t *testing.T) {
	s := newServer(t)
	before := s.create("a", 1)
	live := s.watch(inDefault + "?watch=true&resourceVersion=" + before)
	marked := s.watch(inDefault + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + before)
	marked.expect("BOOKMARK <nil>")
	sse := s.watch(inDefault+"?watch=true&resourceVersion="+before, "Accept", "text/event-stream")
	emitted, err := s.widgets.Engine().Emit(t.Context(), Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "passing"}})
	require.NoError(t, err)
	s.create("b", 2)
	live.expect("ADDED b")
	f, _ := marked.next()
	require.Equal(t, "BOOKMARK "+emitted.String(), f.Type+" "+f.str("metadata.resourceVersion"))
	marked.expect("ADDED b")
	require.Equal(t, map[string]string{"id": emitted.String()}, readSSE(t, sse.in))
	require.Equal(t, "ADDED", readSSE(t, sse.in)["event"])
	s.watch(inDefault + "?watch=true&resourceVersion=" + before).expect("ADDED b")
}

func TestWatch_FromARevision(t *testing.T) {
	s := newServer(t)
	rev := s.create("a", 1)
	s.create("b", 2)
	w := s.watch(inDefault + "?watch=true&resourceVersion=" + rev)
	w.expect("ADDED b")
	require.Equal(t, 200, s.do("DELETE", inDefault+"/b", "").code)
	f, _ := w.next()
	require.Equal(t, "DELETED b 2", f.String()+" "+f.str("spec.size"))
	require.Equal(t, s.get(inDefault).str("metadata.resourceVersion"), f.str("metadata.resourceVersion"), "the last state has the deletion's revision")
}

// Without a cache the engine's watch would wait in silence, and leave out the events up to its revision.
func TestWatch_FromTheFutureIsRefused(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		s := newServer(t, func(c *registry.Config[Widget], _ *serve.Config) {
			c.Engine.NoCache, c.Engine.FreshnessTimeout = noCache, time.Millisecond
		})
		n, err := strconv.ParseUint(s.create("a", 1), 10, 64)
		require.NoError(t, err)
		s.cached()
		rev := engine.Revision(n)
		a := s.get(inDefault + "?watch=true&timeoutSeconds=1&resourceVersion=" + (rev + 5).String())
		require.Equal(t, "504 Timeout", fmt.Sprintf("%d %s", a.code, a.str("reason")), "without a cache: %v", noCache)
		require.ErrorIs(t, s.widgets.Resources()[0].WaitForRevision(t.Context(), rev+5), engine.ErrFuture)
		require.NoError(t, s.widgets.Resources()[0].WaitForRevision(t.Context(), rev))
	}
}

// The initial state of a watch has every write that was acknowledged before, unless the client asks for the
// cache's with resourceVersion=0.
func TestWatch_BeginsWithTheNewestStateUnlessTheCacheWillDo(t *testing.T) {
	var storage *faulty.Backend
	s := newServer(t, func(of *registry.Config[Widget], _ *serve.Config) {
		beneath, err := memory.New(registry.Schema(*of), memory.Options{})
		require.NoError(t, err)
		storage = faulty.New(beneath, faulty.Options{})
		of.Engine.Backend, of.Engine.FreshnessTimeout = storage, time.Millisecond
	})
	s.create("a", 1)
	s.cached()
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
	newest := s.create("b", 1) // which the cache does not get to know
	const initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	const query = "?watch=1"
	for _, refused := range []string{query, query + initial, query + initial + "&resourceVersion=" + newest} {
		a := s.get(inDefault + refused + "&timeoutSeconds=1") // which ends a watch that begins nevertheless
		require.Equal(t, "504 1", fmt.Sprintf("%d %s", a.code, a.header.Get("Retry-After")), "%s: %s", refused, a.body)
		// By the cause client-go's informers know that they are not to list, but to ask for the state again.
		require.Equal(t, "Timeout ResourceVersionTooLarge 1", a.str("reason")+" "+a.str("details.causes.0.reason")+" "+a.str("details.retryAfterSeconds"))
	}
	for _, lenient := range []string{query, query + initial} {
		s.watch(inDefault + lenient + "&resourceVersion=0").expect("ADDED a")
	}
}

func TestWatch_InitialEventsEndInABookmark(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	rev := s.create("b", 1)
	w := s.watch(inDefault + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=" + rev)
	w.expect("ADDED a", "ADDED b")
	f, _ := w.next()
	require.Equal(t, "BOOKMARK Widget", f.Type+" "+f.str("kind"))
	require.Equal(t, "map[k8s.io/initial-events-end:true]", f.str("metadata.annotations"))
	require.Equal(t, rev, f.str("metadata.resourceVersion"))
	none := s.watch(inDefault + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=" + rev)
	none.expect("ADDED a", "ADDED b")
	s.create("c", 1)
	none.expect("ADDED c")
	only := s.watch(inDefault + "?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	s.create("d", 1)
	only.expect("ADDED d")
}

func TestWatch_SelectorsDecideOnTypes(t *testing.T) {
	s := newServer(t)
	w := s.watch(allWidgets + "?watch=true&labelSelector=app%3Dweb")
	s.create("a", 1)
	patch := func(label string) {
		require.Equal(t, 200, s.do("PATCH", inDefault+"/a", `{"metadata":{"labels":{"app":"`+label+`"}}}`, "Content-Type", mergePatch).code)
	}
	patch("web")
	w.expect("ADDED a")
	patch("db")
	w.expect("DELETED a")
	one := s.watch(inDefault + "?watch=true&fieldSelector=metadata.name%3Db")
	s.create("c", 1)
	s.create("b", 1)
	one.expect("ADDED b")
}

func TestWatch_EndsCleanlyAtItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		w := s.watch(inDefault + "?watch=true&timeoutSeconds=1&allowWatchBookmarks=true")
		last := frame{}
		for f, ok := w.next(); ok; f, ok = w.next() {
			last = f
		}
		require.Equal(t, "BOOKMARK", last.Type, "there is one shortly before the end")
	})
}

func TestWatch_Tables(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	w := s.watch(inDefault+"?watch=true&allowWatchBookmarks=true", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	first, _ := w.next()
	require.Equal(t, "ADDED Table Name a 1", strings.Join([]string{first.Type, first.str("kind"), first.str("columnDefinitions.0.name"), first.str("rows.0.cells.0"), first.str("rows.0.cells.1")}, " "))
	end, _ := w.next()
	require.Equal(t, "BOOKMARK Table <nil>", strings.Join([]string{end.Type, end.str("kind"), end.str("columnDefinitions")}, " "))
	require.Equal(t, first.str("metadata.resourceVersion"), end.str("rows.0.object.metadata.resourceVersion"))
	s.create("b", 2)
	second, _ := w.change()
	require.Equal(t, "<nil> b", second.str("columnDefinitions")+" "+second.str("rows.0.cells.0"))
	old := s.watch(inDefault+"?watch=true", "Accept", "application/json;as=Table;v=v1beta1;g=meta.k8s.io")
	first, _ = old.next()
	require.Equal(t, "Table meta.k8s.io/v1beta1", first.str("kind")+" "+first.str("apiVersion"))
}

func TestWatch_PartialMetadata(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	w := s.watch(inDefault+"?watch=true&allowWatchBookmarks=true", "Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
	for range 2 {
		f, _ := w.next()
		require.Equal(t, "PartialObjectMetadata meta.k8s.io/v1", f.str("kind")+" "+f.str("apiVersion"))
		require.NotContains(t, string(f.Object), "spec")
	}
}

func TestWatch_ExpiredAfterTheStartIsAnErrorOf410(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
		w.Engine.Window.MaxEvents, w.Engine.Window.MinAge = 8, 1
	})
	from := s.create("a", 1)
	w := s.watch(inDefault + "?watch=true&resourceVersion=" + from)
	var last frame
	for i := range 500 { // far more than a connection's buffers take
		// The client does not read: its connection fills, and the window moves on.
		if _, _, err := s.widgets.Update(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) {
			next := old.Value
			next.Annotations = map[string]string{"pad": strings.Repeat(fmt.Sprint(i%10), 100_000)}
			next.Spec.Size = i + 2
			return next, nil
		}, registry.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for f, ok := w.next(); ok; f, ok = w.next() {
		last = f
	}
	require.Equal(t, "ERROR 410 Expired", last.Type+" "+last.str("code")+" "+last.str("reason"))
}

func TestWatch_QuietOnesWithoutBookmarksAreKeptAlive(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.Engine.BookmarkPeriod = 10 * time.Millisecond })
	w := s.watch(inDefault + "?watch=1")
	for range 3 {
		line, err := w.in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "\n", line)
	}
}

// The figures count what clients are sent: bookmarks for those alone that have asked for them.
func TestWatch_EventsAreCountedAsTheyAreSent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.create("a", 1)
		s.cached()
		plain := s.watch(inDefault + "?watch=1&timeoutSeconds=50")
		plain.expect("ADDED a")
		_, more := plain.next() // there were bookmarks, behind the state and shortly before the end
		require.False(t, more)
		require.EqualValues(t, 1, s.handler.Stats().Events)

		marked := s.watch(inDefault + "?watch=1&timeoutSeconds=50&allowWatchBookmarks=1")
		sent := 0
		for _, more := marked.next(); more; _, more = marked.next() {
			sent++
		}
		require.GreaterOrEqual(t, sent, 3)
		require.EqualValues(t, 1+sent, s.handler.Stats().Events)
	})
}

func TestWatch_ClientThatGoesAwayLeavesNothing(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	for _, one := range []*server{s, behind(t, s)} {
		ctx, cancel := context.WithCancel(t.Context())
		resp := one.send(ctx, "GET", inDefault+"?watch=1", "")
		_, err := bufio.NewReader(resp.Body).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, 1, s.handler.Stats().Watches)
		require.Zero(t, serve.StartingWatches(s.handler))
		cancel()
		resp.Body.Close()
		require.Eventually(t, func() bool { return s.handler.Stats().Watches == 0 }, time.Minute, time.Millisecond)
		require.Eventually(t, func() bool { return s.widgets.Engine().Stats().Watches == 0 }, time.Minute, time.Millisecond, "nor the watch of the engine")
	}
}

func decodeJSON(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

// HEAD gets the header of a list, and starts no watch, for which no client would read.
func TestWatch_HeadStartsNone(t *testing.T) {
	s := newServer(t)
	a := s.do("HEAD", inDefault+"?watch=1", "")
	require.Equal(t, 200, a.code)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	require.Zero(t, s.handler.Stats().Watches)
}

// Logs and metrics of an engine name its watches, and the line that starts them is the same for all
// that are served.
func TestWatch_HasTheNameOfItsUser(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { byHeader(1)(c) })
	s.watch(inDefault+"?watch=1", "User", "alice")
	watches := s.widgets.Engine().Watches()
	require.Len(t, watches, 1)
	require.Equal(t, "alice", watches[0].Name)
}

// As in Kubernetes, a watch of no revision need not ask for that by sendInitialEvents.
func TestWatch_TellsTheEndOfTheInitialState(t *testing.T) {
	s := newServer(t)
	rev := s.create("a", 1)
	s.cached()
	for _, query := range []string{"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "", "&resourceVersion=0"} {
		w := s.watch(inDefault + "?watch=true&allowWatchBookmarks=true" + query)
		w.expect("ADDED a")
		f, _ := w.next()
		require.Equal(t, "BOOKMARK map[k8s.io/initial-events-end:true]", f.Type+" "+f.str("metadata.annotations"), query)
	}
	f, _ := s.watch(inDefault + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + rev).next()
	require.Equal(t, "BOOKMARK <nil>", f.Type+" "+f.str("metadata.annotations"), "there is none")
}
