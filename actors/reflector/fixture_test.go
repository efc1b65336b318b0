package reflector_test

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
)

type update = reflector.Update

// mirror is a sink that keeps the state and checks the Reflector's guarantees:
// nothing lost, nothing repeated.
type mirror struct {
	mu       sync.Mutex
	state    map[string]string
	rev      store.Revision
	storeID  string
	updates  []update
	broken   []string // guarantees that were broken
	capacity int      // updates that may wait to be taken; zero: any number
	waiting  int
	verdict  actors.Verdict // if not Accepted, the answer to everything
	panics   int            // how many of the next Offers panic
	offers   int
	outage   bool
}

func (m *mirror) Offer(u update) actors.Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offers++
	switch {
	case m.panics > 0:
		m.panics--
		panic("the sink exploded")
	case m.verdict != actors.Accepted:
		return m.verdict
	case m.capacity > 0 && m.waiting == m.capacity:
		return actors.Full
	}
	m.waiting++
	m.updates = append(m.updates, u)
	m.take(u)
	return actors.Accepted
}

// backwards are the reasons for which a list of the same storage may be older than the last one.
var backwards = []reflector.Reason{reflector.Repeated, reflector.Future, reflector.Restored}

func (m *mirror) demand(ok bool, promise string) {
	if !ok {
		m.broken = append(m.broken, promise)
	}
}

func (m *mirror) take(u update) {
	m.demand(m.state != nil || u.Kind == reflector.Replace || u.Kind == reflector.Unavailable, "Replace comes first")
	switch u.Kind {
	case reflector.Replace:
		m.outage = false
		m.state = map[string]string{}
		for _, o := range u.Objects {
			m.state[o.Key] = value(o)
		}
		m.demand(u.Revision >= m.rev || u.StoreID != m.storeID || slices.Contains(backwards, u.Reason), "revisions do not go back")
		m.storeID = u.StoreID
	case reflector.Changes:
		m.demand(len(u.Events) > 0 && !m.outage, "Changes are changes, and not in an outage")
		for _, e := range u.Events {
			m.demand(e.Revision > m.rev && e.Revision <= u.Revision, "events are new and within their update")
			m.rev = e.Revision
			m.apply(e)
		}
	case reflector.Progress:
		m.demand(u.Revision > m.rev || m.outage && u.Revision == m.rev, "Progress is progress")
		m.outage = false
	case reflector.Unavailable:
		m.demand(!m.outage || u.Final, "an outage is told once")
		m.outage = true
		return
	}
	m.rev = u.Revision
}

func (m *mirror) apply(e store.Event) {
	switch e.Type {
	case store.Added, store.Modified:
		m.state[e.Key()] = value(e.Object)
	case store.Deleted:
		delete(m.state, e.Key())
	}
}

// drain makes room for everything that waits.
func (m *mirror) drain() {
	m.mu.Lock()
	m.waiting = 0
	m.mu.Unlock()
}

// fail makes the next Offer panic.
func (m *mirror) fail() {
	m.mu.Lock()
	m.panics++
	m.mu.Unlock()
}

func (m *mirror) answer(v actors.Verdict) {
	m.mu.Lock()
	m.verdict = v
	m.mu.Unlock()
}

// told describes the updates since the last call.
func (m *mirror) told() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := []string{}
	for _, u := range m.updates {
		text := u.Kind.String()
		switch u.Kind {
		case reflector.Replace:
			text += " " + u.Reason.String() + "@" + u.Revision.String()
		case reflector.Unavailable:
			text += ": " + u.Err.Error()
		default:
			text += "@" + u.Revision.String()
		}
		told = append(told, text)
	}
	m.updates = nil
	return told
}

// fixture is a Reflector between a source and a mirror, under a parent that restarts
// it, on a deterministic system.
type fixture struct {
	*testing.T
	source *source
	mirror *mirror
	exec   *actors.Seeded
	clock  *clock.Virtual
	system *actors.System
	parent *actors.Ref[func(*actors.Context)]
	ref    *reflector.Ref
	errs   []error
}

// host is a parent that runs functions in its turns.
type host struct{ directive actors.Directive }

func (h *host) Receive(ctx *actors.Context, do func(*actors.Context)) { do(ctx) }

func (h *host) ChildFailed(*actors.Context, actors.ID, any) actors.Directive { return h.directive }

// newFixture starts nothing yet.
func newFixture(t *testing.T) *fixture {
	return newFixtureBy(t, func(c clock.Clock) clock.Clock { return c })
}

// newFixtureBy is newFixture with a clock around its own.
func newFixtureBy(t *testing.T, around func(clock.Clock) clock.Clock) *fixture {
	r := &fixture{T: t, source: newSource(), mirror: &mirror{}, exec: actors.NewSeeded(1)}
	r.clock = clock.NewVirtual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	t.Cleanup(func() { // runs when the system has been closed
		require.Empty(t, r.mirror.broken, "guarantees of the Reflector")
		r.source.tidy(t)
	})
	r.system = newSystem(t, actors.SystemConfig{Executor: r.exec, Clock: around(r.clock)})
	r.parent = actors.Spawn(r.system, "host", func() actors.Behavior[func(*actors.Context)] { return &host{actors.Restart} }, actors.Options{})
	return r
}

// newSystem returns a system that must be empty when the test has ended.
func newSystem(t *testing.T, cfg actors.SystemConfig) *actors.System {
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	system, err := actors.NewSystem(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, system.Close(context.Background()))
		require.Zero(t, system.Actors(), "actors left")
		require.Zero(t, system.Timers(), "timers left")
	})
	return system
}

// config is what start uses; tests change it first.
func (r *fixture) config() reflector.Config {
	return reflector.Config{
		Source: r.source, Sink: r.mirror, Rand: rand.New(rand.NewPCG(1, 2)),
		OnError: func(err error) { r.errs = append(r.errs, err) },
		Backoff: reflector.Backoff{Jitter: reflector.NoJitter},
	}
}

// start spawns the Reflector under the parent and lets it settle.
func (r *fixture) start(cfg reflector.Config) {
	r.parent.Tell(func(ctx *actors.Context) {
		var err error
		r.ref, err = reflector.Spawn(ctx, cfg)
		require.NoError(r, err)
	})
	r.settle()
}

// settle runs everything that can run without time passing.
func (r *fixture) settle() { r.exec.Run() }

// pass lets time pass, with all that happens in it.
func (r *fixture) pass(d time.Duration) {
	r.settle()
	for end := r.clock.Now().Add(d); ; r.settle() {
		next, ok := r.clock.Next()
		if !ok || next.After(end) {
			r.clock.Advance(end.Sub(r.clock.Now()))
			r.settle()
			return
		}
		r.clock.Advance(next.Sub(r.clock.Now()))
	}
}

// synced demands that the mirror shows the source's state.
func (r *fixture) synced() {
	r.Helper()
	r.settle()
	want := map[string]string{}
	for key, o := range r.source.objects {
		want[key] = value(o)
	}
	require.Equal(r, want, r.mirror.state)
	require.Equal(r, r.source.rev, r.mirror.rev, "revision")
}

// count counts the calls to the source that begin so.
func (r *fixture) count(prefix string) int {
	calls := r.source.asked()
	return len(calls) - len(slices.DeleteFunc(calls, func(call string) bool { return strings.HasPrefix(call, prefix) }))
}
