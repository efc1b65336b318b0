package informers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/timing"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/store"
)

// syncPoll is the time between two comparisons of a handler's state.
const syncPoll = 5 * time.Millisecond

// Handler is a handler of an informer that checks its notifications and keeps the
// state that they add up to.
type Handler struct {
	group     *Group
	number    int
	prefix    string
	stopwatch *timing.Stopwatch
	closing   context.Context // ends its pauses
	pace      *pace.Consumer

	mu sync.Mutex // guards the fields below
	// state is the revision of each object.
	state  map[string]store.Revision
	broken string
	stale  bool
}

// Receive handles one notification. It may block, which informers allow.
func (h *Handler) Receive(n informer.Notification[content.Item]) {
	if h.pace != nil && h.pace.Wait(h.closing, 1) != nil {
		return // the load is being closed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.check(n)
	if n.Type == store.Deleted {
		delete(h.state, n.Key())
	} else {
		h.state[n.Key()] = n.Object.Revision
	}
	h.count(n)
}

// count counts the events of the load and measures their latency. It excludes objects
// that existed before, whether they arrive in the first list or, for an informer that
// started early, as changes.
func (h *Handler) count(n informer.Notification[content.Item]) {
	it, begun := &n.Object.Value, h.stopwatch.Start()
	if begun == 0 || n.Type != store.Deleted && it.Stored < begun {
		return
	}
	h.group.received.Add(1)
	if n.Type != store.Deleted && n.Cause == informer.Change {
		h.group.Latency.Record(h.number, h.stopwatch.Now()-it.Due)
	}
}

// check checks that the old object of an addition or update is the one that the handler
// has, and that it has what is deleted, and keeps the first mismatch.
func (h *Handler) check(n informer.Notification[content.Item]) {
	known, old := h.state[n.Key()], store.Revision(0)
	if n.Old != nil {
		old = n.Old.Revision
	}
	switch {
	case h.broken != "":
	case n.Type == store.Deleted && known == 0:
		h.broken = fmt.Sprintf("got %s, and had nothing", n)
	case n.Type != store.Deleted && known != old:
		h.broken = fmt.Sprintf("got %s from revision %d, and had %d", n, old, known)
	}
}

// WaitSynced waits until the handler has the last write of every key, or ctx is done and the
// handler is stale.
func (h *Handler) WaitSynced(ctx context.Context, newest map[string]judge.Entry) {
	want := map[string]store.Revision{}
	for key, e := range newest {
		if !e.Deleted && store.HasPrefix(key, h.prefix) {
			want[key] = e.Revision
		}
	}
	for !h.has(want) {
		if pace.Sleep(ctx, syncPoll) != nil {
			h.stale = !h.has(want)
			return
		}
	}
}

func (h *Handler) has(want map[string]store.Revision) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, rev := range want {
		if h.state[key] != rev {
			return false
		}
	}
	return len(h.state) == len(want)
}
