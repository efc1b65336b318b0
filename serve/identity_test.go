package serve_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// revision parses a resourceVersion, which is a decimal number without leading zeros.
func revision(t *testing.T, text string) uint64 {
	t.Helper()
	require.Regexp(t, `^[1-9][0-9]*$`, text)
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return n
}

// Revisions grow with each write, and over a restart, so that no client takes what the
// new server has for what it has seen.
func TestRevisions_GrowAlsoOverARestart(t *testing.T) {
	s := newServer(t)
	empty := revision(t, s.get(inDefault).str("metadata.resourceVersion"))
	first := revision(t, s.create("a", 1))
	changed := s.do("PATCH", inDefault+"/a", `{"spec":{"size":2}}`, "Content-Type", mergePatch)
	second := revision(t, changed.str("metadata.resourceVersion"))
	require.Equal(t, 200, s.do("DELETE", inDefault+"/a", "").code)
	gone := revision(t, s.get(inDefault).str("metadata.resourceVersion"))
	require.IsIncreasing(t, []uint64{empty, first, second, gone})

	again := newServer(t)
	require.Greater(t, revision(t, again.get(inDefault).str("metadata.resourceVersion")), gone)
	expired, _ := again.watch(inDefault + "?watch=1&resourceVersion=" + strconv.FormatUint(gone, 10)).next()
	require.Equal(t, "ERROR 410 Expired", expired.Type+" "+expired.str("code")+" "+expired.str("reason"), "nothing is missed unseen")
}

// While others write, a list is as new as its newest item, and later lists are not older.
func TestRevisions_ListsAreAsNewAsTheirItems(t *testing.T) {
	s := newServer(t)
	done := make(chan error, 1)
	go func() { done <- s.postAll(200) }()
	newest := map[string]uint64{}
	for writing := true; writing; {
		select {
		case err := <-done:
			require.NoError(t, err)
			writing = false
		default:
		}
		for _, query := range []string{"", "?resourceVersion=0"} {
			list := decodeJSON(t, s.get(inDefault+query).body)
			at := revision(t, list["metadata"].(map[string]any)["resourceVersion"].(string))
			require.GreaterOrEqual(t, at, newest[query], query)
			newest[query] = at
			for _, item := range list["items"].([]any) {
				require.LessOrEqual(t, revision(t, item.(map[string]any)["metadata"].(map[string]any)["resourceVersion"].(string)), at)
			}
		}
	}
	require.Len(t, decodeJSON(t, s.get(inDefault).body)["items"], 200)
}

// postAll creates n widgets. It may be called in any goroutine.
func (s *server) postAll(n int) error {
	for i := range n {
		body := fmt.Sprintf(`{"metadata":{"name":"w%d"},"spec":{"size":1}}`, i)
		resp, err := s.client.Post(s.url+inDefault, "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusCreated {
			return fmt.Errorf("creating w%d: %s", i, resp.Status)
		}
	}
	return nil
}

// In a watch with several bookmarks no revision goes back: a bookmark is at least as new as
// the events before it, and older than the next.
func TestRevisions_BookmarksNeverGoBack(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.Engine.BookmarkPeriod = time.Millisecond })
	w := s.watch(inDefault + "?watch=1&allowWatchBookmarks=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	var last uint64
	bookmarks := 0
	for i := 0; bookmarks < 3; i++ {
		if i%2 == 0 {
			s.create(fmt.Sprint("w", i), i)
		}
		f, ok := w.next()
		require.True(t, ok)
		at := revision(t, f.str("metadata.resourceVersion"))
		if f.Type == "BOOKMARK" {
			require.GreaterOrEqual(t, at, last)
			bookmarks++
		} else {
			require.Greater(t, at, last)
		}
		last = at
	}
}

// A watch from a revision with nothing to replay gets a bookmark at once, one now and then,
// and one before its deadline.
func TestWatch_BookmarksAtTheStartInBetweenAndAtTheEnd(t *testing.T) {
	s := newServer(t)
	at := s.create("a", 1)
	s.cached()
	w := s.watch(inDefault + "?watch=1&allowWatchBookmarks=1&resourceVersion=" + at)
	first, _ := w.next()
	require.Equal(t, "BOOKMARK example.com/v1 Widget "+at, strings.Join([]string{first.Type, first.str("apiVersion"), first.str("kind"), first.str("metadata.resourceVersion")}, " "))
	require.Equal(t, "<nil>", first.str("metadata.annotations"), "it ends no initial state")

	inBubble(t, func(t *testing.T, s *server) {
		at := s.create("a", 1)
		short := s.watch(inDefault + "?watch=1&allowWatchBookmarks=1&timeoutSeconds=1&resourceVersion=" + at)
		var got []string
		for f, ok := short.next(); ok; f, ok = short.next() {
			got = append(got, f.Type+" "+f.str("metadata.resourceVersion"))
		}
		require.Equal(t, "BOOKMARK "+at, got[len(got)-1])
	})

	often := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) { w.Engine.BookmarkPeriod = time.Millisecond })
	busy := often.watch(inDefault + "?watch=1&allowWatchBookmarks=1&resourceVersion=" + often.create("a", 1))
	busy.expect("BOOKMARK <nil>", "BOOKMARK <nil>", "BOOKMARK <nil>")
}

// A watch that asks for progress is told of revisions that have no event for it, soon and once, if it takes
// bookmarks.
func TestWatch_ProgressIsForThoseThatAskForIt(t *testing.T) {
	for query, want := range map[string][]uint64{ // how many revisions after the start a bookmark is
		"&allowWatchBookmarks=1&progressNotify=true":  {2, 2},
		"&allowWatchBookmarks=1&progressNotify=false": {2},
		"&allowWatchBookmarks=1":                      {2},
		"&progressNotify=true":                        nil,
	} {
		inBubble(t, func(t *testing.T, s *server) {
			at := s.create("a", 1)
			w := s.watch(inDefault + "?watch=1&timeoutSeconds=20&resourceVersion=" + at + query)
			if want != nil {
				w.expect("BOOKMARK <nil>") // there is nothing to replay
			}
			for _, name := range []string{"b", "c"} {
				body := `{"metadata":{"name":"` + name + `"},"spec":{"size":1}}`
				require.Equal(t, 201, s.do("POST", strings.Replace(inDefault, "default", "other", 1), body).code)
			}
			began := time.Now()
			var got []uint64
			for f, ok := w.next(); ok; f, ok = w.next() {
				got = append(got, revision(t, f.str("metadata.resourceVersion"))-revision(t, at))
				require.Equal(t, "BOOKMARK", f.Type)
				require.Equal(t, len(got) < len(want), time.Since(began) < time.Second, "only the last one comes at the end of virtual time")
			}
			require.Equal(t, want, got, query)
		})
	}
}

// The server makes uid and creation time, and refuses names that are not path segments.
func TestIdentity_IsTheServersToGive(t *testing.T) {
	s := newServer(t)
	a := s.do("POST", inDefault, `{"metadata":{"name":"a","uid":"mine","creationTimestamp":"1999-01-01T00:00:00Z","selfLink":"/x"},"spec":{"size":1}}`)
	require.Equal(t, 201, a.code)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, a.str("metadata.uid"))
	require.Regexp(t, `^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, a.str("metadata.creationTimestamp"))
	require.Equal(t, "<nil>", a.str("metadata.selfLink"))
	changed := s.do("PATCH", inDefault+"/a", `{"metadata":{"creationTimestamp":"1999-01-01T00:00:00Z"},"spec":{"size":2}}`, "Content-Type", mergePatch)
	require.Equal(t, a.str("metadata.uid")+a.str("metadata.creationTimestamp"), changed.str("metadata.uid")+changed.str("metadata.creationTimestamp"))
	require.Equal(t, 200, s.do("DELETE", inDefault+"/a", "").code)
	again := s.do("POST", inDefault, `{"metadata":{"name":"a"},"spec":{"size":1}}`)
	require.NotEqual(t, a.str("metadata.uid"), again.str("metadata.uid"), "it is another object")
	for _, name := range []string{"a/b", "a%2Fb", "a%b", ".", "..", "", " ", "A", strings.Repeat("a", 254)} {
		refused := s.do("POST", inDefault, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
		require.Equal(t, "422 Invalid", fmt.Sprintf("%d %s", refused.code, refused.str("reason")), "%q: %s", name, refused.body)
	}
}

// A list is written in pieces that are bounded, however long it is, and large, however small
// its items are.
func TestList_IsWrittenInPieces(t *testing.T) {
	s := newServer(t)
	for i := range 50 {
		s.createLarge(fmt.Sprint("w", i), 10_000)
	}
	pieces := &pieces{}
	s.handler.ServeHTTP(pieces, zipped(t, "application/json"))
	require.Greater(t, pieces.all, 500_000)
	require.LessOrEqual(t, pieces.largest, 64<<10)
	require.LessOrEqual(t, pieces.count, pieces.all/(32<<10))
}

// pieces is a client that measures what it is sent.
type pieces struct {
	header              http.Header
	count, all, largest int
}

func (p *pieces) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}

func (p *pieces) WriteHeader(int) {}

func (p *pieces) Write(text []byte) (int, error) {
	p.count++
	p.all += len(text)
	p.largest = max(p.largest, len(text))
	return len(text), nil
}
