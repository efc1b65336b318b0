package engine

import (
	"cmp"
	"slices"
	"time"
)

// WatchInfo describes one watch, or subscription, and how far behind it is. Its figures
// are of about the same moment.
type WatchInfo struct {
	// Name is the name of the watch: its [WatchOptions].Name, or the file and line of
	// the call that started it.
	Name string
	// Selector is what it selects, as text; "everything" without a selector.
	Selector string
	// Policy is what happens if it stays too far behind.
	Policy Policy
	// Consumer is how it is consumed: "pull", "channel", "handler", or "source" for
	// one of [Engine.Source]; "" while its consumer has not asked for anything.
	Consumer string
	// Revision is the revision up to which it has delivered; see [Watch.Revision].
	Revision Revision
	// Lag is how many events it has yet to deliver, Behind how long ago the oldest of
	// them was committed; see [Watch.Lag] and [Watch.Behind].
	Lag    uint64
	Behind time.Duration
	// Delivered is how many events it has delivered, Lost how many were left out; see
	// [Watch.Lost].
	Delivered, Lost uint64
	// Age is how long ago it was started. Setting the machine's clock does not change it; by
	// a host's clock without monotonic readings that is set back it may be zero.
	Age time.Duration
	// StalledSince is when it was called stalled; zero if it is not.
	StalledSince time.Time
}

// Watches describes the running watches, including those of informers and other clients of
// [Engine.Source], sorted by how long they are behind, longest first: the first is the slowest.
// It takes about a microsecond for each watch, and delays none.
func (e *Engine[T]) Watches() []WatchInfo { return e.core.watches() }

func (e *core) watches() []WatchInfo {
	now := e.clockNow()
	running := e.registry.Watches()
	infos := make([]WatchInfo, len(running))
	for i, w := range running {
		info := w.Info(now)
		infos[i] = WatchInfo{
			Name: info.Name, Selector: info.Filter.String(), Policy: info.Policy, Consumer: info.Consumer,
			Revision: info.Revision, Lag: info.Lag, Behind: info.Behind,
			Delivered: info.Delivered, Lost: info.Lost, Age: info.Age, StalledSince: info.StalledSince,
		}
	}
	slices.SortFunc(infos, slowestFirst)
	return infos
}

// slowestFirst orders watches by how far behind they are.
func slowestFirst(a, b WatchInfo) int {
	return cmp.Or(
		cmp.Compare(b.Behind, a.Behind), cmp.Compare(b.Lag, a.Lag),
		cmp.Compare(a.Name, b.Name), cmp.Compare(b.Age, a.Age),
	)
}

// Watches is [Engine.Watches] for a topic: its subscriptions.
func (t *Topic[T]) Watches() []WatchInfo { return t.core.watches() }

func (t *topic) watches() []WatchInfo {
	if t.misuse != nil {
		return nil
	}
	return t.engine.watches()
}
