package informers

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/load/internal/timing"
	"github.com/watchmill/watchmill/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An informer that starts before the initial objects sees them as changes. They were
// not due at any time, so they must not be measured.
func TestHandler_IsMeasuredOnceTheLoadBegins(t *testing.T) {
	watch := timing.NewStopwatch()
	g := &Group{Latency: latency.NewRecorder()}
	p := &Handler{group: g, stopwatch: watch, state: map[string]store.Revision{}}
	measured := func() int64 {
		g.Latency.Drain()
		return g.Latency.Total().TotalCount()
	}
	tell := func(kind store.EventType, cause informer.Cause, stored int64) {
		o := &engine.Object[content.Item]{Key: "a", Revision: 7, Value: content.Item{Stored: stored}}
		p.Receive(informer.Notification[content.Item]{Type: kind, Cause: cause, Object: o})
	}
	tell(store.Added, informer.Change, watch.Now())
	require.Zero(t, g.Received())
	require.Zero(t, measured())

	watch.Begin()
	tell(store.Modified, informer.Change, watch.At(-1))
	require.Zero(t, g.Received(), "it was there before")
	tell(store.Modified, informer.Change, watch.Now())
	require.Equal(t, int64(1), measured())
	tell(store.Modified, informer.Relist, watch.Now())
	tell(store.Deleted, informer.Change, 0)
	require.Equal(t, uint64(3), g.Received())
	require.Equal(t, int64(1), measured(), "changes alone are measured")
	require.Equal(t, store.Revision(0), p.state["a"])
}

func TestHandler_FindsNotificationsThatDoNotFit(t *testing.T) {
	object := func(rev store.Revision) *engine.Object[content.Item] {
		return &engine.Object[content.Item]{Key: "a", Revision: rev}
	}
	type notification = informer.Notification[content.Item]
	added := notification{Type: store.Added, Object: object(7)}
	for name, c := range map[string]struct {
		all    []notification
		broken string
	}{
		"added, updated, deleted": {[]notification{added, {Type: store.Modified, Object: object(8), Old: object(7)}, {Type: store.Deleted, Object: object(8)}}, ""},
		"update of another state": {[]notification{added, {Type: store.Modified, Object: object(9), Old: object(8)}}, "from revision 8, and had 7"},
		"deletion of nothing":     {[]notification{{Type: store.Deleted, Object: object(8)}}, "and had nothing"},
		"deleted twice":           {[]notification{added, {Type: store.Deleted, Object: object(8)}, {Type: store.Deleted, Object: object(8)}}, "and had nothing"},
		"the first mismatch":      {[]notification{{Type: store.Deleted, Object: object(8)}, added, added}, "and had nothing"},
	} {
		p := &Handler{group: &Group{}, stopwatch: timing.NewStopwatch(), state: map[string]store.Revision{}}
		for _, n := range c.all {
			p.Receive(n)
		}
		require.Equal(t, c.broken == "", p.broken == "", name)
		require.Contains(t, p.broken, c.broken, name)
	}
}
