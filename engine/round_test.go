package engine_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
)

// A function of the configuration that ends its goroutine in the middle of a round delays no
// watch until something else is written.
func TestDispatch_ARoundThatFailsIsMadeAgain(t *testing.T) {
	for name, noCache := range map[string]bool{"with a cache": false, "without a cache": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failing atomic.Bool
				e := newOrders(t, func(c *engine.Config[pod]) {
					c.NoCache = noCache
					c.SetRevision = func(p pod, _ engine.Revision) pod {
						if actors.InTurn() && failing.Swap(false) {
							runtime.Goexit()
						}
						return p
					}
				})
				w, err := e.Watch(t.Context(), engine.WatchOptions{Labels: "app=web"})
				require.NoError(t, err)
				put := func(app string) {
					_, err := e.Put(t.Context(), pod{Name: "a", App: app})
					require.NoError(t, err)
				}
				put("web")
				got := make(chan string, 2)
				go func() {
					for ev, err := range w.Events() {
						if err != nil {
							return
						}
						got <- ev.String()
					}
				}()
				synctest.Wait()
				failing.Store(true)
				put("db")
				synctest.Wait()
				delivered := len(got)
				require.NoError(t, e.Close())
				require.False(t, failing.Load(), "the round has failed")
				require.EqualValues(t, 1, e.Stats().Failures)
				require.Equal(t, 2, delivered)
				require.Equal(t, []string{"ADDED a@2", "DELETED a@3"}, []string{<-got, <-got})
			})
		})
	}
}
