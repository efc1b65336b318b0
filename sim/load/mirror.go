package load

import (
	"context"
	"errors"
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

// mirrors is a group of informers.
type mirrors struct {
	spec      *scenario.Informer
	informers []*informer.SharedInformer[content.Item]
	pupils    []*pupil
	latency   *latency.Recorder
	told      atomic.Uint64
}

// pupil is a handler of an informer: it learns the state from what it is told.
type pupil struct {
	run    *run
	group  *mirrors
	number int
	prefix string
	pace   *pace.Consumer

	mu sync.Mutex // guards what follows
	// state is the revision of each object.
	state  map[string]store.Revision
	broken string
	stale  bool
}

// graduation is how often a handler is asked whether it knows everything.
const graduation = 5 * time.Millisecond

// informerPolicies are the informers', by the names of scenarios.
var informerPolicies = map[scenario.HandlerPolicy]informer.Policy{
	scenario.MergeChanges: informer.Merge, scenario.Resnapshot: informer.Resnapshot, scenario.Block: informer.Block,
}

// startMirrors makes the informers, on the engine's host and over the engine.
func (r *run) startMirrors() error {
	for i := range r.plan.Informers {
		g := &mirrors{spec: &r.plan.Informers[i], latency: latency.NewRecorder()}
		r.mirrors = append(r.mirrors, g)
		for n := range g.spec.Count {
			if err := r.startMirror(g, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) startMirror(g *mirrors, n int) error {
	prefix := r.plan.SelectInformer(*g.spec, n).Prefix
	cfg := informer.Config[content.Item]{Source: r.engine.Source(), Host: r.host, Name: g.spec.Name, Prefix: prefix, OnError: r.failed.engine}
	cfg.Backoff.Initial, cfg.Backoff.Max = r.plan.Engine.Backoff, r.plan.Engine.BackoffMax
	inf, err := informer.New(cfg)
	if err != nil {
		return err
	}
	g.informers = append(g.informers, inf)
	for range g.spec.Handlers {
		number := len(g.pupils)
		chance := rand.New(rand.NewPCG(r.plan.Seed, uint64(number)+30_000_000))
		p := &pupil{run: r, group: g, number: number, prefix: prefix, state: map[string]store.Revision{}, pace: pace.NewConsumer(g.spec.Consume, chance.Float64())}
		g.pupils = append(g.pupils, p)
		opts := informer.HandlerOptions{Policy: informerPolicies[g.spec.Policy], Buffer: g.spec.Buffer}
		if _, err := inf.Subscribe(p.learn, opts); err != nil {
			return err
		}
	}
	return nil
}

// syncMirrors waits until the informers have the objects there are at the start.
func (r *run) syncMirrors(ctx context.Context) error {
	for _, g := range r.mirrors {
		for _, inf := range g.informers {
			if err := inf.Synced(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("waiting for informers %s: %w", g.spec.Name, err)
			}
		}
	}
	return nil
}

// learn is told of one change. It may block: informers allow for that.
func (p *pupil) learn(n informer.Notification[content.Item]) {
	if p.pace != nil && p.pace.Wait(p.run.living, 1) != nil {
		return // it is not used any more
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check(n)
	if n.Type == store.Deleted {
		delete(p.state, n.Key())
	} else {
		p.state[n.Key()] = n.Object.Revision
	}
	p.count(n)
}

// count counts the events of the load and measures their latency. It excludes objects
// that existed before, whether they arrive in the first list or, for an informer that
// started early, as changes.
func (p *pupil) count(n informer.Notification[content.Item]) {
	it, begun := &n.Object.Value, p.run.watch.begun.Load()
	if begun == 0 || n.Type != store.Deleted && it.Stored < begun {
		return
	}
	p.group.told.Add(1)
	if n.Type != store.Deleted && n.Cause == informer.Change {
		p.group.latency.Record(p.number, p.run.watch.now()-it.Due)
	}
}

// check demands that what the pupil is told joins up with what it was told.
func (p *pupil) check(n informer.Notification[content.Item]) {
	known, old := p.state[n.Key()], store.Revision(0)
	if n.Old != nil {
		old = n.Old.Revision
	}
	if n.Type != store.Deleted && known != old && p.broken == "" {
		p.broken = fmt.Sprintf("was told %s from revision %d, and knew %d", n, old, known)
	}
}

// settleMirrors waits until every handler knows the newest state, or ctx is done.
func (r *run) settleMirrors(ctx context.Context, settling *sync.WaitGroup) {
	if len(r.mirrors) == 0 {
		return
	}
	newest := r.ledger.NewestByKey()
	for _, g := range r.mirrors {
		for _, p := range g.pupils {
			r.settling.Add(1)
			settling.Go(func() {
				defer r.settling.Add(-1)
				p.graduate(ctx, newest)
			})
		}
	}
}

// graduate waits until the pupil knows what was written last of every key.
func (p *pupil) graduate(ctx context.Context, newest map[string]judge.Entry) {
	want := map[string]store.Revision{}
	for key, e := range newest {
		if !e.Deleted && store.HasPrefix(key, p.prefix) {
			want[key] = e.Revision
		}
	}
	for !p.knows(want) {
		if pace.Sleep(ctx, graduation) != nil {
			p.stale = !p.knows(want)
			return
		}
	}
}

func (p *pupil) knows(want map[string]store.Revision) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, rev := range want {
		if p.state[key] != rev {
			return false
		}
	}
	return len(p.state) == len(want)
}

// closeMirrors ends the informers.
func (r *run) closeMirrors() (err error) {
	for _, g := range r.mirrors {
		for _, inf := range g.informers {
			err = errors.Join(err, inf.Close())
		}
	}
	return err
}

// ignorant returns how many of the group's handlers do not know the newest state.
func (g *mirrors) ignorant() (n int) {
	for _, p := range g.pupils {
		n += rank(p.stale)
	}
	return n
}

// faulty returns what was wrong with what handlers were told, "" if nothing.
func (g *mirrors) faulty() string {
	var all []string
	for _, p := range g.pupils {
		if p.broken != "" && len(all) < maxBroken {
			all = append(all, fmt.Sprintf("%s, handler %d, %s", g.spec.Name, p.number, p.broken))
		}
	}
	return strings.Join(all, "; ")
}
