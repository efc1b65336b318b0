package remote_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// away is a server whose kind can be taken away for a time.
type away struct {
	url string
	// gone is whether the kind is away, and refused counts the requests for it meanwhile.
	gone    atomic.Bool
	refused atomic.Int64
}

// awayFrom puts a server before another, which tells its storage only if signed.
func awayFrom(t *testing.T, to string, signed bool) *away {
	t.Helper()
	a := &away{}
	a.url = front(t, to, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch {
		case a.gone.Load():
			a.refused.Add(1)
			http.NotFound(w, r)
		case signed:
			next.ServeHTTP(w, r)
		default:
			next.ServeHTTP(unsigned{w}, r)
		}
	}).URL
	return a
}

// An origin lacks a kind for a time, and its replicas ask until it is back. Their clients then get the
// difference, unless the origin says that it has other storage now.
func TestReplica_OfAKindThatIsAwayForATime(t *testing.T) {
	for _, c := range []struct {
		name                string
		signed, other, ends bool
		want                string
	}{
		{"with its objects", true, false, false, "[DELETED default/a ADDED default/d MODIFIED default/b]"},
		{"with its objects, of unknown storage", false, false, false, "[DELETED default/a ADDED default/d MODIFIED default/b]"},
		{"with other objects", true, true, true, ""},
		{"with other objects, of unknown storage", false, true, false, "[DELETED default/b DELETED default/a ADDED default/b ADDED default/d]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := func(at engine.Revision) func(*registry.Config[Widget]) {
				return func(cfg *registry.Config[Widget]) { cfg.Engine.FirstRevision = at }
			}
			before, after := newServer(t, first(100)), newServer(t, first(1000))
			before.create("a", 1)
			last := before.create("b", 1).Revision
			kind, other := awayFrom(t, before.url, c.signed), awayFrom(t, after.url, c.signed)
			p := newProxy(t, kind.url)
			middle := newServer(t, quick, over(t, p.url))
			replicas := []*server{middle, newServer(t, quick, over(t, middle.url))}
			var watches []*engine.Watch[Widget]
			for _, r := range replicas {
				require.NoError(t, r.store.Engine().WaitForRevision(t.Context(), last))
				w, err := r.store.Engine().Watch(t.Context(), engine.WatchOptions{From: last})
				require.NoError(t, err)
				watches = append(watches, w)
			}

			kind.gone.Store(true)
			p.cut()
			require.Eventually(t, func() bool { return kind.refused.Load() > 20 }, patience, time.Millisecond)
			if c.other {
				after.create("b", 2)
				last = after.create("d", 2).Revision
				p.turn(other.url)
			} else {
				_, _, err := before.store.Delete(t.Context(), "default/a", registry.DeleteOptions{})
				require.NoError(t, err)
				before.create("d", 2)
				last = before.resize("b", 2).Revision
				kind.gone.Store(false)
			}

			for i, w := range watches {
				var got []string
				for reached := engine.Revision(0); reached < last; {
					events, err := w.Next(t.Context())
					if c.ends {
						require.ErrorIs(t, err, engine.ErrExpired)
						break
					}
					require.NoError(t, err)
					for _, ev := range events {
						got = append(got, fmt.Sprint(ev.Type, " ", ev.Key()))
					}
					reached = events[len(events)-1].Revision
				}
				if !c.ends {
					require.Equal(t, c.want, fmt.Sprint(got), "level %d", i)
				}
				require.Equal(t, []string{"b", "d"}, namesOf(t, replicas[i].store.Engine()))
			}
		})
	}
}

// over makes a server a replica of the one at a URL.
func over(t *testing.T, url string) func(*registry.Config[Widget]) {
	b := backendAt(t, url)
	return func(cfg *registry.Config[Widget]) { cfg.Engine.Backend = b }
}
