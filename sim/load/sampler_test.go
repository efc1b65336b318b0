package load

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/sim/load/internal/content"
)

// A lower value that is recorded later does not replace a higher one.
func TestRaise_KeepsTheHighestValue(t *testing.T) {
	for range 100 {
		var most atomic.Uint64
		var looking sync.WaitGroup
		for by := range uint64(4) {
			looking.Go(func() {
				for n := range uint64(100) {
					raise(&most, 4*n+by)
				}
			})
		}
		looking.Wait()
		require.Equal(t, uint64(399), most.Load())
	}
}

// A watcher that still works through its last events has no watch that could be behind.
func TestStanding_LeavesOutWatchesThatHaveEnded(t *testing.T) {
	items := engine.Config[content.Item]{Key: func(i content.Item) string { return i.Key }}
	e := enginetest.NewWith(t, items, enginetest.Deterministic(1))
	behind := e.Watch(engine.WatchOptions{Buffer: 1})
	for n := range 3 {
		e.Put(content.Item{Key: "a", Version: string(rune('a' + n))})
	}
	w := &watcher{}
	w.watch.Store(behind.Watch)
	r := &run{groups: []*watchers{{all: []*watcher{w}}}}
	e.Advance(time.Second)
	lag, stalled, watches := r.standing()
	require.Equal(t, []int{3, 1, 1}, []int{int(lag), stalled, watches})
	behind.Stop()
	lag, stalled, watches = r.standing()
	require.Equal(t, []int{0, 0, 0}, []int{int(lag), stalled, watches})
}
