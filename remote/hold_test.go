package remote_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// busy is an origin that has more events than its window while a replica lists. A list of several pages
// has one object in each, and is followed by the events when it is complete.
type busy struct {
	*server
	url string
	// last is the newest revision.
	last engine.Revision
	// complete counts the lists that were complete.
	complete atomic.Int64
}

// window is how many events the window of a busy origin has.
const window = 40

func newBusy(t *testing.T, edit ...func(*registry.Config[Widget])) *busy {
	t.Helper()
	o := &busy{server: newServer(t, append(edit, func(cfg *registry.Config[Widget]) { cfg.Engine.Window.MaxEvents = window })...)}
	o.create("a", 1)
	o.create("b", 1)
	o.write()
	o.url = front(t, o.server.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		q := r.URL.Query()
		if q.Get("watch") != "" || q.Get("limit") == "1" {
			next.ServeHTTP(w, r)
			return
		}
		if q.Get("resourceVersionMatch") == "" {
			q.Set("limit", "1")
			r.URL.RawQuery = q.Encode()
		}
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		if answer.Code == http.StatusOK && !strings.Contains(answer.Body.String(), `"continue":`) {
			o.complete.Add(1)
			o.write()
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w) // the replica may be gone
	}).URL
	return o
}

// write writes more events than the window has, but no more at once than its watches can follow.
func (o *busy) write() {
	w, err := o.store.Engine().Watch(o.t.Context(), engine.WatchOptions{Linearizable: true})
	require.NoError(o.t, err)
	defer w.Stop()
	for range 2 * window / 5 {
		for range 5 {
			o.last = o.resize("a", int(o.last%100)+1).Revision
		}
		for seen := engine.Revision(0); seen < o.last; {
			events, err := w.Next(o.t.Context())
			require.NoError(o.t, err)
			seen = events[len(events)-1].Revision
		}
	}
}

// quick has a cache that lists again at once.
func quick(cfg *registry.Config[Widget]) {
	cfg.Engine.Backoff = engine.Backoff{Initial: time.Millisecond, Max: time.Millisecond}
}

// The list's revision leaves the origin's window before the replica watches from there.
func TestReplica_StartsByOneListWhileTheOriginsWindowMovesOn(t *testing.T) {
	for name, noHistory := range map[string]bool{"at the newest state": true, "at the oldest state": false} {
		t.Run(name, func(t *testing.T) {
			origin := newBusy(t)
			b := backendAt(t, origin.url, func(c *remote.Config) { c.NoHistory = noHistory })
			r := newServer(t, quick, func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = b })
			_, err := r.store.Engine().List(t.Context(), engine.ListOptions{Read: engine.Cached()})
			require.NoError(t, err)
			last := origin.resize("a", 1000).Revision
			require.NoError(t, r.store.Engine().WaitForRevision(t.Context(), last))
			require.Equal(t, int64(1), origin.complete.Load())
		})
	}
}

// origin5 answers lists at revision 5, with nothing, and watches with frames, after which they stay. It notes
// what it was asked for.
type origin5 struct {
	frames string
	mu     sync.Mutex
	asked  []string
}

func (o *origin5) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := r.URL.Query()
	if q.Has("watch") {
		o.asked = append(o.asked, "watch "+q.Get("resourceVersion"))
		return staying(o.frames)(r)
	}
	o.asked = append(o.asked, "list "+q.Get("resourceVersion"))
	return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"5"},"items":[]}`))
}

func TestList_ForACacheBeginsTheWatchThatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin5{frames: event("ADDED", "a", 6)}
		b := pretend(t, o.RoundTrip)
		for range 2 {
			_, err := b.List(t.Context(), backend.ListOptions{State: true})
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, 1, remote.Watches(b), "that of the list before is closed")
		}
		notified := 0
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() { notified++ }})
		require.NoError(t, err)
		require.Equal(t, []string{"list ", "watch 5", "list ", "watch 5"}, o.asked)
		batch, err := w.Next(10)
		require.NoError(t, err)
		require.Equal(t, store.Revision(5), batch.After)
		require.Equal(t, []string{"a@6"}, textOf(batch.Events))
		_, err = w.Next(10)
		require.NoError(t, err)
		require.Zero(t, notified)
		require.NoError(t, b.Close())
		require.Equal(t, 1, notified, "of the end")
	})
}

// What has to be read and decoded after the revision is known may take longer than the server has a window.
func TestList_ForACacheBeginsItsWatchAsSoonAsItKnowsTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin5{}
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			resp, err := o.RoundTrip(r)
			if q := r.URL.Query(); !q.Has("watch") && !q.Has("continue") {
				return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"5","continue":"more"},"items":[]}`))
			}
			return resp, err
		})
		_, err := b.List(t.Context(), backend.ListOptions{State: true})
		require.NoError(t, err)
		require.Equal(t, []string{"list ", "watch 5", "list "}, o.asked)
		require.NoError(t, b.Close())
	})
}

// The revision may come anywhere in a list.
func TestList_ForACacheBeginsOneWatchWhereverTheRevisionIs(t *testing.T) {
	const metadata = `"metadata":{"resourceVersion":"5"}`
	for name, body := range map[string]string{
		"first":         `{` + metadata + `,"items":[]}`,
		"after others":  `{"kind":"WidgetList","x":{"metadata":{"resourceVersion":"9"}},` + metadata + `,"items":[]}`,
		"after objects": `{"items":[` + object("a", 5) + `],` + metadata + `}`,
		"far behind":    `{"items":[` + strings.Repeat(" ", 1<<20) + `],` + metadata + `}`,
		"twice":         `{"metadata":{"resourceVersion":"4"},` + metadata + `,"items":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &origin5{}
				b := pretend(t, func(r *http.Request) (*http.Response, error) {
					resp, err := o.RoundTrip(r)
					if !r.URL.Query().Has("watch") {
						return reply(http.StatusOK, strings.NewReader(body))
					}
					return resp, err
				})
				_, err := b.List(t.Context(), backend.ListOptions{State: true})
				require.NoError(t, err)
				require.Equal(t, 1, remote.Watches(b))
				require.Equal(t, "watch 5", o.asked[len(o.asked)-1])
				require.NoError(t, b.Close())
			})
		})
	}
}

// A watch for a cache whose list arrives slowly is begun first, waits for all of it, and reads on meanwhile.
func TestList_ForACacheThatArrivesSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listed, watched time.Time
		var frames strings.Builder
		for rev := range 100 {
			frames.WriteString(event("MODIFIED", "a", 8+rev))
		}
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("watch") {
				watched = time.Now()
				return staying(frames.String())(r)
			}
			listed = time.Now()
			return reply(http.StatusOK, slowList(r.Context(), 100, 64<<10, 10*time.Second))
		}, func(c *remote.Config) { c.BufferBytes, c.WatchTimeout = 1<<10, time.Hour })
		_, err := b.List(t.Context(), backend.ListOptions{State: true})
		require.NoError(t, err)
		require.Equal(t, listed, watched)
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 7, NoPrev: true, Notify: func() {}})
		require.NoError(t, err)
		require.Equal(t, listed, watched, "it is the same")
		batch, err := w.Next(1000)
		require.NoError(t, err)
		require.Len(t, batch.Events, 100)
		require.NoError(t, b.Close())
	})
}

// A watch that is begun for a cache is only for that which the list was for, and ends if it does not come.
func TestList_ForACacheThatDoesNotWatch(t *testing.T) {
	for name, step := range map[string]func(*remote.Backend) error{
		"late": func(*remote.Backend) error {
			time.Sleep(time.Hour)
			return nil
		},
		"after a list that fails": func(b *remote.Backend) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := b.List(ctx, backend.ListOptions{State: true})
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("it has not failed: %w", err)
			}
			return nil
		},
		"closed": (*remote.Backend).Close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := pretend(t, (&origin5{}).RoundTrip)
				_, err := b.List(t.Context(), backend.ListOptions{State: true})
				require.NoError(t, err)
				for _, other := range []backend.WatchOptions{{From: 6, NoPrev: true}, {From: 5, Prefix: "default", NoPrev: true}, {From: 5}} {
					other.Notify = func() {}
					w, err := b.Watch(t.Context(), other)
					require.NoError(t, err)
					require.Equal(t, 2, remote.Watches(b), "%+v has another watch", other)
					w.Close()
				}
				require.NoError(t, step(b))
				require.Zero(t, remote.Watches(b))
				require.NoError(t, b.Close())
			})
		})
	}
}

// An origin may have past states from which no watch can go on, as in a file whose history is longer
// than the window of the engine over it. The error says which state the cache is to begin with.
func TestList_OfAPastStateIsOneToWatchFrom(t *testing.T) {
	const expired = `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","details":{"causes":[{"reason":"OldestResourceVersion","message":"9"}]}}}` + "\n"
	for _, at := range []store.Revision{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			o := &origin5{frames: expired}
			b := pretend(t, o.RoundTrip)
			_, err := b.List(t.Context(), backend.ListOptions{State: true, Revision: at})
			var why *store.ExpiredError
			require.ErrorAs(t, err, &why)
			require.Equal(t, store.Revision(9), why.Oldest)
			require.Zero(t, remote.Watches(b))
			if at == 5 {
				require.Equal(t, []string{"watch 5"}, o.asked, "nothing is listed in vain")
			}
			o.frames = ""
			_, err = b.List(t.Context(), backend.ListOptions{State: true, Revision: at})
			require.NoError(t, err, "of a server that sends nothing")
			require.Equal(t, 1, remote.Watches(b))
			require.NoError(t, b.Close())
		})
	}
}

// A list that fails is made again, from a revision of its own.
func TestList_ThatFailsLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("watch") {
				return staying("")(r)
			}
			return reply(http.StatusInternalServerError, strings.NewReader(""))
		})
		_, err := b.List(t.Context(), backend.ListOptions{State: true, Revision: 5})
		require.ErrorContains(t, err, "500")
		require.Zero(t, remote.Watches(b))
		require.NoError(t, b.Close())
	})
}

// A server that refuses the watch is listed all the same: the watch to come tells why.
func TestList_ForACacheThatMayNotWatch(t *testing.T) {
	for _, at := range []store.Revision{0, 1, 5} {
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("watch") {
				return reply(http.StatusForbidden, strings.NewReader(""))
			}
			return (&origin5{}).RoundTrip(r)
		})
		_, err := b.List(t.Context(), backend.ListOptions{State: true, Revision: at})
		require.NoError(t, err)
		_, err = b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
		require.ErrorIs(t, err, backend.ErrDenied)
	}
}
