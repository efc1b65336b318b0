package informers

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/latency"
	"github.com/watchmill/watchmill/sim/load/internal/timing"
	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
	"github.com/watchmill/watchmill/store"
)

// Config is what the groups of a load have in common.
type Config struct {
	Plan      *scenario.Plan
	Engine    *engine.Engine[content.Item]
	Host      *engine.Host
	Stopwatch *timing.Stopwatch
	// Closing ends when the load is being closed, which ends the pauses of slow handlers.
	Closing context.Context
	// OnError gets the errors of informers.
	OnError func(error)
	// Own gets each informer as soon as there is one, to close it at the end.
	Own func(io.Closer)
}

// Group is a group of informers with the same specification.
type Group struct {
	Spec *scenario.Informer
	// Latency is that of changes that the handlers were told.
	Latency *latency.Recorder

	informers []*informer.SharedInformer[content.Item]
	handlers  []*Handler
	received  atomic.Uint64
}

// policies are the policies of handlers, by their names in scenarios.
var policies = map[scenario.HandlerPolicy]informer.Policy{
	scenario.MergeChanges: informer.Merge, scenario.Resnapshot: informer.Resnapshot, scenario.Block: informer.Block,
}

// Start makes the informers of a group of the plan, on the engine's host and over the engine.
func Start(cfg Config, spec *scenario.Informer) (*Group, error) {
	g := &Group{Spec: spec, Latency: latency.NewRecorder()}
	for n := range spec.Count {
		if err := g.start(&cfg, n); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *Group) start(cfg *Config, n int) error {
	prefix := cfg.Plan.SelectInformer(*g.Spec, n).Prefix
	of := informer.Config[content.Item]{Source: cfg.Engine.Source(), Host: cfg.Host, Name: g.Spec.Name, Prefix: prefix, OnError: cfg.OnError}
	of.Backoff.Initial, of.Backoff.Max = cfg.Plan.Engine.Backoff, cfg.Plan.Engine.BackoffMax
	inf, err := informer.New(of)
	if err != nil {
		return err
	}
	cfg.Own(inf)
	g.informers = append(g.informers, inf)
	for range g.Spec.Handlers {
		number := len(g.handlers)
		random := rand.New(rand.NewPCG(cfg.Plan.Seed, uint64(number)+30_000_000))
		h := &Handler{
			group: g, number: number, prefix: prefix, stopwatch: cfg.Stopwatch, closing: cfg.Closing,
			state: map[string]store.Revision{}, pace: pace.NewConsumer(g.Spec.Consume, random.Float64()),
		}
		g.handlers = append(g.handlers, h)
		opts := informer.HandlerOptions{Policy: policies[g.Spec.Policy], Buffer: g.Spec.Buffer}
		if _, err := inf.Subscribe(h.Receive, opts); err != nil {
			return err
		}
	}
	return nil
}

// Sync waits until the informers have the initial objects.
func (g *Group) Sync(ctx context.Context) error {
	for _, inf := range g.informers {
		if err := inf.WaitSynced(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("waiting for informers %s: %w", g.Spec.Name, err)
		}
	}
	return nil
}

// Handlers returns the handlers of all informers of the group.
func (g *Group) Handlers() []*Handler { return g.handlers }

// Received returns how many notifications of the load the handlers have received.
func (g *Group) Received() uint64 { return g.received.Load() }

// Stale returns how many of the handlers do not have the newest state.
func (g *Group) Stale() (n int) {
	for _, h := range g.handlers {
		if h.stale {
			n++
		}
	}
	return n
}

// Mismatches describes the first notification of each handler that did not fit its
// state, for at most that many handlers; "" if there is none.
func (g *Group) Mismatches(most int) string {
	var all []string
	for _, h := range g.handlers {
		if h.broken != "" && len(all) < most {
			all = append(all, fmt.Sprintf("%s, handler %d, %s", g.Spec.Name, h.number, h.broken))
		}
	}
	return strings.Join(all, "; ")
}
