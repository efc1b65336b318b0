package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// thing is the object of the deterministic tests. N makes every write another
// value.
type thing struct {
	Key, App, Node string
	N              int
}

func thingConfig() engine.Config[thing] {
	return engine.Config[thing]{
		Key:    func(o thing) string { return o.Key },
		Labels: func(o thing) labels.Set { return labels.Set{"app": o.App} },
		Fields: engine.Fields[thing]{"node": func(o thing) string { return o.Node }},
	}
}

// singleStepping is a Seeded executor that runs one turn at a time while a call
// waits, so that the call goes on as soon as its answer is there, with the rest
// of the engine in the middle of something.
type singleStepping struct{ *actors.Seeded }

// Run runs one turn at most.
func (s singleStepping) Run() int { return s.RunN(1) }

// errOutage is what storage that cannot be reached fails with.
var errOutage = errors.New("the network is down")

// fixture is an engine over storage in memory on a deterministic host, for
// tests that break one thing. It is closed, and checked to leave nothing
// behind, when the test ends.
type fixture struct {
	t        *testing.T
	clock    *actors.VirtualClock
	executor *actors.Seeded
	storage  *faulty.Backend
	faults   []*faulty.Fault
	engine   *engine.Engine[thing]
	failures []actors.Failure
	n        int
}

// newFixture makes a fixture whose host and engine are as configure leaves
// their configurations; nil changes nothing.
func newFixture(t *testing.T, configure func(*engine.HostConfig, *engine.Config[thing])) *fixture {
	t.Helper()
	r := &fixture{t: t, clock: actors.NewVirtualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), executor: actors.NewSeeded(1)}
	r.storage = faulty.New(r.newMemory(), faulty.Options{})
	host := engine.HostConfig{
		Clock: r.clock, Executor: singleStepping{r.executor}, Seed: 1,
		OnFailure: func(f actors.Failure) { r.failures = append(r.failures, f) },
	}
	cfg := thingConfig()
	cfg.Backend, cfg.Name = r.storage, "things"
	cfg.Backoff = reflector.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}
	if configure != nil {
		configure(&host, &cfg)
	}
	h, err := engine.NewHost(host)
	require.NoError(t, err)
	cfg.Host = h
	r.engine, err = engine.New(cfg)
	require.NoError(t, err)
	r.executor.Run()
	t.Cleanup(r.close)
	return r
}

func (r *fixture) close() {
	require.NoError(r.t, r.engine.Close())
	require.NoError(r.t, r.storage.Close())
	require.Zero(r.t, r.engine.Host().Actors(), "actors outlive the engine")
	require.Zero(r.t, r.engine.Host().Timers(), "timers outlive the engine")
	require.NoError(r.t, r.engine.Host().Close())
}

// newMemory returns empty storage.
func (r *fixture) newMemory() *memory.Backend {
	b, err := memory.New(thingConfig().Schema(), memory.Options{Clock: r.clock})
	require.NoError(r.t, err)
	return b
}

// fault makes calls of storage go wrong from now on.
func (r *fixture) fault(times int, do faulty.Action, ops ...faulty.Op) {
	r.faults = append(r.faults, r.storage.Add(faulty.Rule{Ops: ops, Times: times, Do: do}))
}

// heal ends all faults.
func (r *fixture) heal() {
	for _, f := range r.faults {
		f.Remove()
	}
	r.faults = nil
}

// batchesOf makes watches of storage hand out at most so many events at once.
func batchesOf(most int) faulty.Action {
	return faulty.Before(func(_ context.Context, c *faulty.Call) { c.Max = min(c.Max, most) })
}

// put writes the key with another value than ever before, and lets the engine
// run.
func (r *fixture) put(key string) engine.Revision {
	r.t.Helper()
	rev := r.write(key)
	r.executor.Run()
	return rev
}

// write is put without letting the engine run.
func (r *fixture) write(key string) engine.Revision {
	r.t.Helper()
	r.n++
	rev, err := revisionOf(r.engine.Put(r.t.Context(), thing{Key: key, App: "web", N: r.n}))
	require.NoError(r.t, err)
	return rev
}

func (r *fixture) watch(opts engine.WatchOptions) *engine.Watch[thing] {
	r.t.Helper()
	w, err := r.engine.Watch(context.Background(), opts)
	require.NoError(r.t, err)
	return w
}

// read returns what the watch has, as text, and why it ended.
func (r *fixture) read(w *engine.Watch[thing]) (seen []string, end error) {
	r.t.Helper()
	for ev, err := range w.Events() {
		if errors.Is(err, engine.ErrIdle) {
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
		seen = append(seen, ev.String())
	}
	return seen, nil
}

// requireReads: the watch lives and has exactly these events.
func (r *fixture) requireReads(w *engine.Watch[thing], events ...string) {
	r.t.Helper()
	seen, end := r.read(w)
	require.NoError(r.t, end)
	require.Equal(r.t, events, seen)
}

// pass lets time pass, a tenth of a second at a time.
func (r *fixture) pass(d time.Duration) {
	for ; d > 0; d -= 100 * time.Millisecond {
		r.clock.Advance(min(d, 100*time.Millisecond))
		r.executor.Run()
	}
}

// advancing is an executor that lets time pass while a call waits and there is
// nothing to run: a second at a time, as many as it has.
type advancing struct {
	*actors.Seeded
	clock   *actors.VirtualClock
	seconds int
	// running: a turn is being run.
	running bool
}

func (x *advancing) Run() int {
	x.running = true
	ran := x.RunN(1)
	x.running = false
	if ran > 0 || x.seconds == 0 {
		return ran
	}
	x.seconds--
	x.clock.Advance(time.Second)
	return 1
}

// interruptible is an executor that runs one turn at a time while a call waits,
// and calls blow before the turn at which its fuse is used up.
type interruptible struct {
	*actors.Seeded
	fuse int
	blow func()
}

func (f *interruptible) Run() int {
	if f.blow != nil && f.fuse == 0 {
		blow := f.blow
		f.blow = nil
		blow()
	}
	f.fuse--
	return f.RunN(1)
}
