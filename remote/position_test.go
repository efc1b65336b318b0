package remote_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
)

// cut ends a body without the end of its last line, as a connection that breaks.
const cut = `{"type":"ADD`

func bookmarkAt(rev int) string {
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}`+"\n", rev)
}

// afterRevision is an answer to a watch that has to begin after rev.
func afterRevision(t *testing.T, rev int, frames string) pretended {
	return func(r *http.Request) (*http.Response, error) {
		if got := r.URL.Query().Get("resourceVersion"); got != strconv.Itoa(rev) {
			t.Errorf("the watch begins after %s, not %d", got, rev)
		}
		return sends(frames)(r)
	}
}

// A connection that breaks between the events of one revision is followed by one that has
// the others. What it repeats is dropped.
func TestWatch_GoesOnWithinARevision(t *testing.T) {
	a6, b7, c7, d7, e8 := event("ADDED", "a", 6), event("ADDED", "b", 7), event("ADDED", "c", 7), event("ADDED", "d", 7), event("ADDED", "e", 8)
	for _, c := range []struct {
		name    string
		answers []pretended
		events  []string
	}{
		{"before the first event", []pretended{afterRevision(t, 5, cut), afterRevision(t, 5, a6+gone)}, []string{"a@6"}},
		{"after some", []pretended{afterRevision(t, 5, a6+b7+cut), afterRevision(t, 6, b7+c7+cut), afterRevision(t, 6, b7+c7+d7+e8+gone)}, []string{"a@6", "b@7", "c@7", "d@7", "e@8"}},
		{"twice at the same", []pretended{afterRevision(t, 5, b7+cut), afterRevision(t, 6, b7+cut), afterRevision(t, 6, cut), afterRevision(t, 6, b7+c7+gone)}, []string{"b@7", "c@7"}},
		{"in another order", []pretended{afterRevision(t, 5, b7+c7+cut), afterRevision(t, 6, d7+c7+b7+gone)}, []string{"b@7", "c@7", "d@7"}},
		{"an older event", []pretended{afterRevision(t, 5, a6+b7+cut), afterRevision(t, 6, event("ADDED", "b", 6)+gone)}, []string{"a@6", "b@7", "b@6"}},
		{"after a bookmark of it", []pretended{afterRevision(t, 5, b7+c7+bookmarkAt(7)+cut), afterRevision(t, 7, e8+gone)}, []string{"b@7", "c@7", "e@8"}},
		{"after a bookmark that repeats", []pretended{afterRevision(t, 5, b7+cut), afterRevision(t, 6, b7+bookmarkAt(7)+cut), afterRevision(t, 7, e8+gone)}, []string{"b@7", "e@8"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := watchOf(t, func(*remote.Config) {}, c.answers...)
				require.Equal(t, c.events, textOf(events))
			})
		})
	}
}

func textOf(events []store.Event) (text []string) {
	for _, ev := range events {
		text = append(text, fmt.Sprint(strings.TrimPrefix(ev.Key(), "default/"), "@", ev.Revision))
	}
	return text
}

// Whatever the history is, and wherever connections break, each event comes once.
func TestWatch_BrokenAnywhereHasEachEventOnce(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(seed, 0))
			type line struct {
				rev  int
				text string
			}
			var history []line
			var want []string
			rev := 5
			for range 30 {
				rev += 1 + draw.IntN(3)
				if draw.IntN(4) == 0 {
					history = append(history, line{rev, bookmarkAt(rev)})
					continue
				}
				for _, i := range draw.Perm(6)[:1+draw.IntN(4)] {
					name := string(rune('a' + i))
					history = append(history, line{rev, event("MODIFIED", name, rev)})
					want = append(want, fmt.Sprint(name, "@", rev))
				}
			}
			b := backendAt(t, "http://origin.localhost", func(c *remote.Config) {
				c.Client = &http.Client{Transport: pretended(func(r *http.Request) (*http.Response, error) {
					after, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
					if err != nil {
						return nil, err
					}
					var body strings.Builder
					for _, l := range history {
						if l.rev > after {
							body.WriteString(l.text)
						}
					}
					body.WriteString(gone)
					return reply(http.StatusOK, strings.NewReader(body.String()[:min(body.Len(), draw.IntN(2_000))]))
				})}
			})
			events, err := readAll(t, b, 1+draw.IntN(3))
			require.ErrorIs(t, err, store.ErrExpired)
			require.Equal(t, want, textOf(events), "seed %d", seed)
			require.NoError(t, b.Close())
		})
	}
}

// A replica has all objects of a transaction within which its watch breaks.
func TestReplica_HasAllOfATransactionWithinWhichItsWatchBreaks(t *testing.T) {
	var watches atomic.Int64
	taken, ended := make(chan struct{}), make(chan struct{})
	f := front(t, "http://origin.localhost", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		q := r.URL.Query()
		if !q.Has("watch") {
			if watches.Load() < 2 {
				_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"5"},"items":[]}`) // the client may be gone
				return
			}
			_, _ = io.WriteString(w, fmt.Sprintf(`{"metadata":{"resourceVersion":"7"},"items":[%s,%s]}`, object("a", 7), object("b", 7)))
			return
		}
		watches.Add(1)
		switch q.Get("resourceVersion") {
		case "5":
			_, _ = io.WriteString(w, event("ADDED", "a", 7))
			return
		case "6":
			select {
			case <-taken:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, event("ADDED", "a", 7)+event("ADDED", "b", 7))
		}
		_ = http.NewResponseController(w).Flush() // the client may be gone
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	})
	defer close(ended)
	b := backendAt(t, f.URL, func(c *remote.Config) { c.NoHistory = true })
	e := newServer(t, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = b }).store.Engine()
	require.Eventually(t, func() bool { return len(namesOf(t, e)) == 1 }, patience, time.Millisecond)
	close(taken) // a replica that had not read yet would have both in one batch
	require.Eventually(t, func() bool { return len(namesOf(t, e)) == 2 }, patience, time.Millisecond)
	require.Equal(t, uint64(1), e.Stats().Relists, "events of one revision have come in two batches")
}

// An origin that no longer has the revision before is listed again.
func TestWatch_ExpiresIfTheLastRevisionMayBeIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendAt(t, "http://origin.localhost", func(c *remote.Config) {
			c.Client = &http.Client{Transport: pretended(func(r *http.Request) (*http.Response, error) {
				if r.URL.Query().Get("resourceVersion") == "6" {
					return reply(http.StatusGone, strings.NewReader(""))
				}
				return sends(event("ADDED", "a", 7))(r)
			})}
		})
		events, err := readAll(t, b, 1)
		require.Len(t, events, 1)
		var expired *store.ExpiredError
		require.ErrorAs(t, err, &expired)
		require.Equal(t, store.Revision(6), expired.Requested)
		require.NoError(t, b.Close())
	})
}
