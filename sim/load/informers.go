package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
)

// informerGroup is a group of informers with the same specification.
type informerGroup struct {
	spec      *scenario.Informer
	informers []*informer.SharedInformer[content.Item]
	handlers  []*handlerCheck
	latency   *latency.Recorder
	received  atomic.Uint64
}

// handlerCheck is a handler of an informer that checks its notifications and keeps the
// state that they add up to.
type handlerCheck struct {
	run    *run
	group  *informerGroup
	number int
	prefix string
	pace   *pace.Consumer

	mu sync.Mutex // guards the fields below
	// state is the revision of each object.
	state  map[string]store.Revision
	broken string
	stale  bool
}

// syncPoll is the time between two comparisons of a handler's state.
const syncPoll = 5 * time.Millisecond

// informerPolicies are the policies of handlers, by their names in scenarios.
var informerPolicies = map[scenario.HandlerPolicy]informer.Policy{
	scenario.MergeChanges: informer.Merge, scenario.Resnapshot: informer.Resnapshot, scenario.Block: informer.Block,
}

// startInformers makes the informers, on the engine's host and over the engine.
func (r *run) startInformers() error {
	for i := range r.plan.Informers {
		g := &informerGroup{spec: &r.plan.Informers[i], latency: latency.NewRecorder()}
		r.informerGroups = append(r.informerGroups, g)
		for n := range g.spec.Count {
			if err := r.startInformer(g, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) startInformer(g *informerGroup, n int) error {
	prefix := r.plan.SelectInformer(*g.spec, n).Prefix
	cfg := informer.Config[content.Item]{Source: r.engine.Source(), Host: r.host, Name: g.spec.Name, Prefix: prefix, OnError: r.failed.engine}
	cfg.Backoff.Initial, cfg.Backoff.Max = r.plan.Engine.Backoff, r.plan.Engine.BackoffMax
	inf, err := informer.New(cfg)
	if err != nil {
		return err
	}
	r.closers = append(r.closers, inf)
	g.informers = append(g.informers, inf)
	for range g.spec.Handlers {
		number := len(g.handlers)
		random := rand.New(rand.NewPCG(r.plan.Seed, uint64(number)+30_000_000))
		h := &handlerCheck{run: r, group: g, number: number, prefix: prefix, state: map[string]store.Revision{}, pace: pace.NewConsumer(g.spec.Consume, random.Float64())}
		g.handlers = append(g.handlers, h)
		opts := informer.HandlerOptions{Policy: informerPolicies[g.spec.Policy], Buffer: g.spec.Buffer}
		if _, err := inf.Subscribe(h.receive, opts); err != nil {
			return err
		}
	}
	return nil
}

// syncInformers waits until the informers have the initial objects.
func (r *run) syncInformers(ctx context.Context) error {
	for _, g := range r.informerGroups {
		for _, inf := range g.informers {
			if err := inf.Synced(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("waiting for informers %s: %w", g.spec.Name, err)
			}
		}
	}
	return nil
}

// receive handles one notification. It may block, which informers allow.
func (h *handlerCheck) receive(n informer.Notification[content.Item]) {
	if h.pace != nil && h.pace.Wait(h.run.closing, 1) != nil {
		return // the run is being closed
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
func (h *handlerCheck) count(n informer.Notification[content.Item]) {
	it, begun := &n.Object.Value, h.run.stopwatch.Start()
	if begun == 0 || n.Type != store.Deleted && it.Stored < begun {
		return
	}
	h.group.received.Add(1)
	if n.Type != store.Deleted && n.Cause == informer.Change {
		h.group.latency.Record(h.number, h.run.stopwatch.Now()-it.Due)
	}
}

// check checks that the old object of an addition or update is the one that the handler
// has, and that it has what is deleted, and keeps the first mismatch.
func (h *handlerCheck) check(n informer.Notification[content.Item]) {
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

// settleInformers starts goroutines in settling that wait until every handler has the newest
// state or ctx is done.
func (r *run) settleInformers(ctx context.Context, settling *sync.WaitGroup) {
	if len(r.informerGroups) == 0 {
		return
	}
	newest := r.ledger.NewestByKey()
	for _, g := range r.informerGroups {
		for _, h := range g.handlers {
			r.settling.Add(1)
			settling.Go(func() {
				defer r.settling.Add(-1)
				h.waitSynced(ctx, newest)
			})
		}
	}
}

// waitSynced waits until the handler has the last write of every key, or ctx is done and the
// handler is stale.
func (h *handlerCheck) waitSynced(ctx context.Context, newest map[string]judge.Entry) {
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

func (h *handlerCheck) has(want map[string]store.Revision) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, rev := range want {
		if h.state[key] != rev {
			return false
		}
	}
	return len(h.state) == len(want)
}

// staleHandlers returns how many of the group's handlers do not have the newest state.
func (g *informerGroup) staleHandlers() (n int) {
	for _, h := range g.handlers {
		n += oneIf(h.stale)
	}
	return n
}

// firstMismatches describes the first notification of each handler that did not fit its
// state, for the first few such handlers; "" if there is none.
func (g *informerGroup) firstMismatches() string {
	var all []string
	for _, h := range g.handlers {
		if h.broken != "" && len(all) < maxBroken {
			all = append(all, fmt.Sprintf("%s, handler %d, %s", g.spec.Name, h.number, h.broken))
		}
	}
	return strings.Join(all, "; ")
}
