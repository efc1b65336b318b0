package serve_test

import (
	"bufio"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store"
)

// The header is of Server-Sent Events alone, as a browser sends it.
func TestWatch_OfJSONIgnoresTheLastEventID(t *testing.T) {
	s := newServer(t)
	first := s.create("a", 1)
	s.create("b", 2)
	s.watch(inDefault+"?watch=1", "Last-Event-ID", first).expect("ADDED a", "ADDED b")
}

func TestWatch_ServerSentEvents(t *testing.T) {
	s := newServer(t)
	rev := s.create("a", 1)
	w := s.watch(inDefault+"?watch=1&allowWatchBookmarks=true", "Accept", "text/event-stream")
	require.Equal(t, "text/event-stream", w.resp.Header.Get("Content-Type"))
	event := readSSE(t, w.in)
	require.Equal(t, "ADDED", event["event"])
	require.Equal(t, "a", answer{body: event["data"]}.str("metadata.name"))
	end := readSSE(t, w.in)
	require.Equal(t, "BOOKMARK", end["event"])
	require.Equal(t, rev, end["id"])
	s.create("b", 1)
	resumed := s.watch(inDefault+"?watch=1", "Accept", "text/event-stream", "Last-Event-ID", rev)
	require.Equal(t, "b", answer{body: readSSE(t, resumed.in)["data"]}.str("metadata.name"))
	const withState = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0" // of the page, which a browser repeats
	resumed = s.watch(inDefault+withState, "Accept", "text/event-stream", "Last-Event-ID", rev)
	require.Equal(t, "b", answer{body: readSSE(t, resumed.in)["data"]}.str("metadata.name"))
	require.Equal(t, 406, s.get(inDefault, "Accept", "text/event-stream").code)
}

// The initial state is in the order of keys. A client that resumes from the revision of one of
// its objects would miss the older ones behind it, so only the end of the state is a position.
func TestWatch_ServerSentEventsAreResumedAfterTheirInitialStateOnly(t *testing.T) {
	s := newServer(t)
	s.create("a", 1)
	s.create("b", 1)
	newest := s.do("PATCH", inDefault+"/a", `{"spec":{"size":2}}`, "Content-Type", "application/merge-patch+json").str("metadata.resourceVersion")
	w := s.watch(inDefault+"?watch=1", "Accept", "text/event-stream")
	for _, name := range []string{"a", "b"} {
		event := readSSE(t, w.in)
		require.Equal(t, name, answer{body: event["data"]}.str("metadata.name"))
		require.NotContains(t, event, "id")
	}
	require.Equal(t, map[string]string{"id": newest}, readSSE(t, w.in), "a position without an event")
	later := s.create("c", 1)
	event := readSSE(t, w.in)
	for event["event"] == "" { // the position may be told again a second after the start
		require.Equal(t, newest, event["id"])
		event = readSSE(t, w.in)
	}
	require.Equal(t, later, event["id"])
}

// readSSE returns the fields of the next event.
func readSSE(t *testing.T, in *bufio.Reader) map[string]string {
	t.Helper()
	event := map[string]string{}
	for {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			if len(event) > 0 {
				return event
			}
			continue
		}
		if name, value, ok := strings.Cut(line, ": "); ok {
			event[name] = value
		}
	}
}

// Storage that other programs write, too, may have several changes at one revision. A client that resumed from there
// after the first of them would miss the others, so only the last is a position.
func TestWatch_IsResumedAfterWholeRevisionsOnly(t *testing.T) {
	later := newLater(t)
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) {
		c.Resources = append(c.Resources, inPairs{later.Resources()[0]})
	})
	named := func(name string) Widget {
		return Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	create := func(name string) string {
		o, err := later.Create(t.Context(), named(name), registry.WriteOptions{})
		require.NoError(t, err)
		return o.Revision.String()
	}
	const fromNow = laterPath + "?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
	w := s.watch(fromNow, "Accept", "text/event-stream")
	create("a")
	rev := create("b")
	require.NotContains(t, readSSE(t, w.in), "id")
	require.Equal(t, rev, readSSE(t, w.in)["id"])

	marked := s.watch(fromNow + "&allowWatchBookmarks=true")
	_, err := later.Engine().Emit(t.Context(), named("passing"))
	require.NoError(t, err)
	create("c")
	marked.expect("ADDED c")
}

// inPairs is a kind of which storage has every two changes at one revision.
type inPairs struct{ registry.Resource }

func (k inPairs) Resources() []registry.Resource { return []registry.Resource{k} }

func (k inPairs) Watch(ctx context.Context, opts engine.WatchOptions) (registry.Stream, error) {
	s, err := k.Resource.Watch(ctx, opts)
	return pairing{s}, err
}

// pairing is a watch of it, without bookmarks.
type pairing struct{ registry.Stream }

// Next returns the next two changes.
func (p pairing) Next(ctx context.Context) (pair []store.Event, err error) {
	for len(pair) < 2 {
		events, err := p.Stream.Next(ctx)
		if err != nil {
			return nil, err
		}
		pair = append(pair, slices.DeleteFunc(slices.Clone(events), func(ev store.Event) bool { return ev.Type == store.Bookmark })...)
	}
	for i := range pair {
		pair[i].Revision = pair[len(pair)-1].Revision
	}
	return pair, nil
}
