package serve_test

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
