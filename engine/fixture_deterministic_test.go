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
	"github.com/watchmill/watchmill/clock"
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
	clock    *clock.Virtual
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
	f := &fixture{t: t, clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), executor: actors.NewSeeded(1)}
	f.storage = faulty.New(f.newMemory(), faulty.Options{})
	host := engine.HostConfig{
		Clock: f.clock, Executor: singleStepping{f.executor}, Seed: 1,
		OnFailure: func(failed actors.Failure) { f.failures = append(f.failures, failed) },
	}
	cfg := thingConfig()
	cfg.Backend, cfg.Name = f.storage, "things"
	cfg.Backoff = reflector.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}
	if configure != nil {
		configure(&host, &cfg)
	}
	if cfg.NoCache {
		cfg.Backoff = reflector.Backoff{} // which is the cache's
	}
	h, err := engine.NewHost(host)
	require.NoError(t, err)
	cfg.Host = h
	f.engine, err = engine.New(cfg)
	require.NoError(t, err)
	f.executor.Run()
	t.Cleanup(f.close)
	return f
}

func (f *fixture) close() {
	require.NoError(f.t, f.engine.Close())
	require.NoError(f.t, f.storage.Close())
	require.Zero(f.t, f.engine.Host().Actors(), "actors outlive the engine")
	require.Zero(f.t, f.engine.Host().Timers(), "timers outlive the engine")
	require.NoError(f.t, f.engine.Host().Close())
}

// newMemory returns empty storage.
func (f *fixture) newMemory() *memory.Backend {
	b, err := memory.New(thingConfig().Schema(), memory.Options{Clock: f.clock, FirstRevision: 1})
	require.NoError(f.t, err)
	return b
}

// fault makes calls of storage go wrong from now on.
func (f *fixture) fault(times int, do faulty.Action, ops ...faulty.Op) {
	f.faults = append(f.faults, f.storage.Add(faulty.Rule{Ops: ops, Times: times, Do: do}))
}

// heal ends all faults.
func (f *fixture) heal() {
	for _, fault := range f.faults {
		fault.Remove()
	}
	f.faults = nil
}

// batchesOf makes watches of storage hand out at most that many events at once.
func batchesOf(most int) faulty.Action {
	return faulty.Before(func(_ context.Context, c *faulty.Call) { c.Limit = min(c.Limit, most) })
}

// put writes the key with another value than ever before, and lets the engine
// run.
func (f *fixture) put(key string) engine.Revision {
	f.t.Helper()
	rev := f.write(key)
	f.executor.Run()
	return rev
}

// write is put without letting the engine run.
func (f *fixture) write(key string) engine.Revision {
	f.t.Helper()
	f.n++
	rev, err := revisionOf(f.engine.Put(f.t.Context(), thing{Key: key, App: "web", N: f.n}))
	require.NoError(f.t, err)
	return rev
}

func (f *fixture) watch(opts engine.WatchOptions) *engine.Watch[thing] {
	f.t.Helper()
	w, err := f.engine.Watch(context.Background(), opts)
	require.NoError(f.t, err)
	return w
}

// read returns what the watch has, as text, and why it ended.
func (f *fixture) read(w *engine.Watch[thing]) (seen []string, end error) {
	f.t.Helper()
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

// requireReads demands that the watch lives and has exactly these events.
func (f *fixture) requireReads(w *engine.Watch[thing], events ...string) {
	f.t.Helper()
	seen, end := f.read(w)
	require.NoError(f.t, end)
	require.Equal(f.t, events, seen)
}

// pass lets time pass, a tenth of a second at a time.
func (f *fixture) pass(d time.Duration) {
	for ; d > 0; d -= 100 * time.Millisecond {
		f.clock.Advance(min(d, 100*time.Millisecond))
		f.executor.Run()
	}
}

// advancing is an executor that lets time pass while a call waits and there is
// nothing to run: a second at a time, as many as it has.
type advancing struct {
	*actors.Seeded
	clock   *clock.Virtual
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
