package informer_test

import (
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
)

// subscriber is a handler of a world's informer, with what it was notified of.
type subscriber struct {
	*history
	*informer.Registration
	world    *world
	options  informer.HandlerOptions
	reached  store.Revision // of the state that its notifications add up to
	change   store.Revision // of the last change
	resynced []string       // the keys in the last resync

	during []func() // what happens during its next call, and is seen by others

	how     *informer.Removal // nil until it is removed
	removed store.Revision    // of the copy when it was removed
}

func (w *world) subscribe(options informer.HandlerOptions) {
	h := &subscriber{history: newHistory(), world: w, options: options}
	var err error
	h.Registration, err = w.Subscribe(h.handle, options)
	require.NoError(w.t, err)
	w.handlers = append(w.handlers, h)
}

func (h *subscriber) stop(how informer.Removal) {
	h.Stop(how)
	if h.how == nil {
		h.how, h.removed = &how, h.world.Snapshot().Revision()
	}
	if how == informer.Drop {
		h.how = &how
		h.ended.Store(true)
	}
}

// complete reports whether the handler gets every change: its buffer is never exceeded, or it
// holds the source back.
func (h *subscriber) complete() bool {
	return h.options.Buffer == 0 || h.options.Policy == informer.Block
}

func (h *subscriber) handle(n informer.Notification[pod]) {
	switch {
	case n.InInitialList() == h.HasSynced():
		h.fail("%v: HasSynced is %v", n, h.HasSynced())
	case h.world.Snapshot().Revision() < n.Object.Revision:
		h.fail("%v before it can be read", n)
	case n.Cause == informer.Resync && n.Old != n.Object:
		h.fail("%v is a change", n)
	case n.Cause == informer.Change && n.Stale:
		h.fail("%v, but the watch has the deletion", n)
	case n.Cause == informer.Relist && h.complete() && h.world.Stats().Source.Lists == 1:
		h.fail("%v, but the source was listed once", n)
	case n.Cause == informer.Change && h.complete():
		h.checkChange(n)
	}
	if n.Cause == informer.Resync {
		h.resynced = append(h.resynced, n.Key())
	}
	h.history.handle(n)
	actions := h.during
	h.during = nil
	for _, act := range actions {
		act()
		h.world.executor.RunN(30)
	}
}

// checkChange demands that the changes come in order, and that none of an object's is left out but
// those for which Transform fails.
func (h *subscriber) checkChange(n informer.Notification[pod]) {
	var old store.Revision
	if n.Old != nil {
		old = n.Old.Revision
	}
	if want := h.world.before[n.Object.Revision]; old != want && !h.world.left(want) {
		h.fail("%v follows revision %d, and not %d", n, old, want)
	}
	if n.Object.Revision <= h.change {
		h.fail("%v after a change at %d", n, h.change)
	}
	h.change = n.Object.Revision
}

// check demands that the notifications add up to a state that the source had, and that is not
// older than the one before: no check runs within a delivery, and each ends at such a state.
func (h *subscriber) check() {
	t := h.world.t
	if wrong := h.wrong.Load(); wrong != nil {
		require.Fail(t, *wrong)
	}
	known := contentOf(maps.Values(h.known))
	if !h.HasSynced() {
		require.Empty(t, known, "it has not synced")
		return
	}
	for _, rev := range slices.Sorted(maps.Keys(h.world.states)) {
		if rev >= h.reached && rev <= h.world.reached && h.world.shows(known, rev) {
			h.reached = rev
			return
		}
	}
	require.Fail(t, "no state", "%v is not a state of the source from %d to %d", known, h.reached, h.world.reached)
}

// checkReached demands that the handler has reached the state at rev, or the one at which it was
// removed. Nothing is demanded of one that was dropped.
func (h *subscriber) checkReached(rev store.Revision) {
	t := h.world.t
	if h.how != nil {
		rev = h.removed
	}
	if rev == 0 || h.how != nil && *h.how == informer.Drop {
		return
	}
	require.True(t, h.HasSynced())
	h.reached = max(h.reached, rev)
	h.check()
}

// checkSettled demands that the handler has reached the newest state, or has ended.
func (h *subscriber) checkSettled() {
	t := h.world.t
	h.checkReached(h.world.newest)
	if h.how == nil {
		require.NoError(t, h.Err())
		require.Zero(t, h.Lag())
		return
	}
	h.checkEnded()
	require.ErrorIs(t, h.Err(), informer.ErrRemoved)
}

// checkEnded demands that the handler has ended. A notification after that is an error.
func (h *subscriber) checkEnded() {
	t := h.world.t
	for _, signal := range []<-chan struct{}{h.Done(), h.SyncedSignal()} {
		select {
		case <-signal:
		default:
			require.Fail(t, "the handler has not ended")
		}
	}
	require.Zero(t, h.Lag())
	h.ended.Store(true)
}
