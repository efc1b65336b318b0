package load

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/store"
)

// An informer that starts before the objects there are at the start sees them
// come as changes. They were due at no time: counted, each would be as late as
// the run is old.
func TestInformersAreMeasuredOnceTheLoadBegins(t *testing.T) {
	r := &run{watch: newStopwatch()}
	g := &mirrors{latency: latency.NewRecorder()}
	p := &pupil{run: r, group: g, state: map[string]store.Revision{}}
	measured := func() int64 {
		g.latency.Drain()
		return g.latency.Total().TotalCount()
	}
	tell := func(kind store.EventType, cause informer.Cause, stored int64) {
		o := &engine.Object[content.Item]{Key: "a", Revision: 7, Value: content.Item{Stored: stored}}
		p.learn(informer.Notification[content.Item]{Type: kind, Cause: cause, Object: o})
	}
	tell(store.Added, informer.Change, r.watch.now())
	require.Zero(t, g.told.Load())
	require.Zero(t, measured())

	r.watch.begin()
	tell(store.Modified, informer.Change, r.watch.at(-1))
	require.Zero(t, g.told.Load(), "it was there before")
	tell(store.Modified, informer.Change, r.watch.now())
	require.Equal(t, int64(1), measured())
	tell(store.Modified, informer.Relist, r.watch.now())
	tell(store.Deleted, informer.Change, 0)
	require.Equal(t, uint64(3), g.told.Load())
	require.Equal(t, int64(1), measured(), "changes alone are measured")
	require.Equal(t, store.Revision(0), p.state["a"])
}
