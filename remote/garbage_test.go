package remote_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// A replica follows its origin again when what stood in for it, such as a gateway, is gone,
// whatever that has answered: at the start, and to a replica that has read before.
func TestReplica_OutlivesAnswersThatAreNotOfItsOrigin(t *testing.T) {
	for _, c := range []struct {
		name string
		code int
		body string
	}{
		{"a page", 200, "<html>we are back soon</html>"},
		{"nothing", 200, ""},
		{"no content", 204, ""},
		{"null", 200, "null"},
		{"an empty object", 200, "{}"},
		{"a text", 200, `"maintenance"`},
		{"a success", 200, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`},
		{"a list at no revision", 200, `{"metadata":{"resourceVersion":"0"},"items":[]}`},
		{"objects without names", 200, `{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"resourceVersion":"3"}}]}`},
		{"items that are not objects", 200, `{"metadata":{"resourceVersion":"5"},"items":[1]}`},
		{"a list that is cut", 200, `{"metadata":{"resourceVersion":"5"},"items":[{"meta`},
		{"a bookmark at no revision", 200, `{"type":"BOOKMARK","object":{"metadata":{}}}` + "\n"},
		{"a redirection to nowhere", 302, ""},
		{"a page that is not there", 404, "no such page"},
		{"a refusal of the method", 405, "not allowed"},
		{"a failure", 500, "oops"},
	} {
		t.Run(c.name, func(t *testing.T) {
			origin := newServer(t)
			var away atomic.Bool
			told := make(chan struct{}, 1)
			f := front(t, origin.url, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if !away.Load() {
					next.ServeHTTP(w, r)
					return
				}
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.body)) // the client may be gone
				select {
				case told <- struct{}{}:
				default:
				}
			})
			away.Store(true)
			b := backendAt(t, f.URL)
			e := newServer(t, func(cfg *registry.Config[Widget]) {
				cfg.Engine.Backend = b
				cfg.Engine.Backoff = engine.Backoff{Initial: time.Millisecond, Max: 10 * time.Millisecond}
			}).store.Engine()
			for _, name := range []string{"a", "b"} {
				last := origin.create(name, 1)
				away.Store(true)
				f.CloseClientConnections()
				<-told
				away.Store(false)
				require.Eventually(t, func() bool {
					return e.Stats().Revision >= last.Revision || e.Stats().Source.Phase == reflector.Ended
				}, patience, time.Millisecond)
				require.NotEqual(t, reflector.Ended, e.Stats().Source.Phase, "%v", e.Stats().Source.LastError)
				for len(told) > 0 {
					<-told
				}
			}
		})
	}
}
