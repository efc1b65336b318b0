package load

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/load/internal/timing"
	"github.com/watchmill/watchmill/store"
)

// An informer that starts before the initial objects sees them as changes. They were
// not due at any time, so they must not be measured.
func TestInformers_AreMeasuredOnceTheLoadBegins(t *testing.T) {
	r := &run{stopwatch: timing.NewStopwatch()}
	g := &informerGroup{latency: latency.NewRecorder()}
	p := &handlerCheck{run: r, group: g, state: map[string]store.Revision{}}
	measured := func() int64 {
		g.latency.Drain()
		return g.latency.Total().TotalCount()
	}
	tell := func(kind store.EventType, cause informer.Cause, stored int64) {
		o := &engine.Object[content.Item]{Key: "a", Revision: 7, Value: content.Item{Stored: stored}}
		p.receive(informer.Notification[content.Item]{Type: kind, Cause: cause, Object: o})
	}
	tell(store.Added, informer.Change, r.stopwatch.Now())
	require.Zero(t, g.received.Load())
	require.Zero(t, measured())

	r.stopwatch.Begin()
	tell(store.Modified, informer.Change, r.stopwatch.At(-1))
	require.Zero(t, g.received.Load(), "it was there before")
	tell(store.Modified, informer.Change, r.stopwatch.Now())
	require.Equal(t, int64(1), measured())
	tell(store.Modified, informer.Relist, r.stopwatch.Now())
	tell(store.Deleted, informer.Change, 0)
	require.Equal(t, uint64(3), g.received.Load())
	require.Equal(t, int64(1), measured(), "changes alone are measured")
	require.Equal(t, store.Revision(0), p.state["a"])
}

func TestInformers_NotifyOfChangesToWhatTheHandlerHas(t *testing.T) {
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
		p := &handlerCheck{run: &run{stopwatch: timing.NewStopwatch()}, group: &informerGroup{}, state: map[string]store.Revision{}}
		for _, n := range c.all {
			p.receive(n)
		}
		require.Equal(t, c.broken == "", p.broken == "", name)
		require.Contains(t, p.broken, c.broken, name)
	}
}
