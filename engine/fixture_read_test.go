package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// errDown is what storage says while it is down.
var errDown = errors.New("storage is down")

// waiting is a Seeded executor that lets virtual time pass while a call waits,
// up to a bound.
type waiting struct {
	*actors.Seeded
	clock *clock.Virtual
	until time.Time
}

func (w *waiting) Run() int {
	if ran := w.Seeded.Run(); ran > 0 {
		return ran
	}
	next, armed := w.clock.Next()
	if !armed || next.After(w.until) {
		return 0
	}
	w.clock.Advance(next.Sub(w.clock.Now()))
	return 1 + w.Seeded.Run()
}

// readFixture is an engine on a deterministic host, over storage of which it
// knows what was asked, and that can be down, hold its changes back, or show
// others than there were.
type readFixture struct {
	t        *testing.T
	clock    *clock.Virtual
	executor *waiting
	host     *engine.Host
	storage  *faulty.Backend
	schema   store.Schema
	calls    []string
	// These are the faults that hold at present, nil if they do not.
	down, held, wrong, progress *faulty.Fault

	errs     []error
	failures []actors.Failure
	*engine.Engine[pod]
}

// newReadFixture starts an engine whose cache is ready.
func newReadFixture(t *testing.T, adjust ...func(*engine.Config[pod])) *readFixture {
	f := newStorageFixture(t)
	f.start(adjust...)
	f.executor.Run()
	f.asked()
	return f
}

// newDownFixture starts an engine whose storage is down.
func newDownFixture(t *testing.T) *readFixture {
	f := newStorageFixture(t)
	f.setDown(true)
	f.start()
	return f
}

// newStorageFixture makes a fixture whose engine has yet to be started.
func newStorageFixture(t *testing.T) *readFixture {
	t.Helper()
	c := podsByNumber()
	f := &readFixture{t: t, clock: clock.NewVirtual(epoch), schema: c.Schema()}
	f.executor = &waiting{Seeded: actors.NewSeeded(1), clock: f.clock}
	f.storage = faulty.New(f.newMemory(), faulty.Options{})
	f.storage.Add(faulty.Rule{Ops: reading, Do: faulty.Before(func(_ context.Context, c *faulty.Call) {
		f.calls = append(f.calls, c.Op.String())
	})})
	return f
}

// newMemory makes storage that has nothing yet.
func (f *readFixture) newMemory() *memory.Backend {
	f.t.Helper()
	b, err := memory.New(f.schema, memory.Options{Clock: f.clock, FirstRevision: 1})
	require.NoError(f.t, err)
	return b
}

// goBack has new storage under the engine. The old one is closed at the end of the test, so
// that its watches go on.
func (f *readFixture) goBack() {
	f.t.Helper()
	old := f.storage.Replace(f.newMemory())
	f.t.Cleanup(func() { require.NoError(f.t, old.Close()) })
}

// podsByNumber are pods with a field for their number and an index on a label, in storage that is
// given.
func podsByNumber() engine.Config[pod] {
	c := cfgOver(nil)
	c.Fields = engine.Fields[pod]{"n": func(p pod) string { return fmt.Sprint(p.N) }}
	c.IndexLabels = []string{"app"}
	c.FreshnessTimeout = 0 // the default, on a virtual clock
	return c
}

// start starts the engine, as adjust leaves its configuration.
func (f *readFixture) start(adjust ...func(*engine.Config[pod])) {
	f.t.Helper()
	var err error
	f.host, err = engine.NewHost(engine.HostConfig{
		Clock: f.clock, Executor: f.executor, Seed: 1,
		OnFailure: func(failed actors.Failure) { f.failures = append(f.failures, failed) },
	})
	require.NoError(f.t, err)
	c := podsByNumber()
	c.Host, c.Backend, c.OnError = f.host, f.storage, func(err error) { f.errs = append(f.errs, err) }
	for _, a := range adjust {
		a(&c)
	}
	f.Engine, err = engine.New(c)
	require.NoError(f.t, err)
	f.t.Cleanup(func() {
		require.NoError(f.t, f.Close())
		require.NoError(f.t, f.storage.Close())
		require.Zero(f.t, f.host.Actors())
		require.Zero(f.t, f.host.Timers())
		require.NoError(f.t, f.host.Close())
	})
}

// reading are the calls by which an engine reads from storage, but for those to
// a running watch.
var reading = []faulty.Op{faulty.OpGet, faulty.OpList, faulty.OpRevision, faulty.OpWatch}

// asked returns what storage was asked since the last time, "nothing" if
// nothing.
func (f *readFixture) asked() string {
	calls := f.calls
	f.calls = nil
	if len(calls) == 0 {
		return "nothing"
	}
	return strings.Join(calls, ", ")
}

// setDown has storage refuse to be read, and break its watches; it can still be
// written.
func (f *readFixture) setDown(down bool) {
	f.set(&f.down, down, faulty.Rule{Ops: append([]faulty.Op{faulty.OpNext}, reading...), Do: faulty.Fail(errDown)})
}

// setHeld has the watches of storage show nothing.
func (f *readFixture) setHeld(held bool) {
	f.set(&f.held, held, faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
}

// setWrong has the watches of storage show objects that it does not have.
func (f *readFixture) setWrong(wrong bool) {
	f.set(&f.wrong, wrong, faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		c.Batch.Events = slices.Clone(c.Batch.Events)
		for i, ev := range c.Batch.Events {
			c.Batch.Events[i].Object = f.schema.Clone(ev.Object)
			c.Batch.Events[i].Object.Created++
		}
	})})
}

// setProgress has the watches of storage say that nothing happened up to rev,
// and nothing will.
func (f *readFixture) setProgress(rev engine.Revision) {
	f.set(&f.progress, true, faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: func(_ context.Context, c *faulty.Call, _ func()) {
		c.Batch = backend.Batch{After: c.Position, Through: rev}
	}})
}

// set makes a fault hold, or ends it.
func (f *readFixture) set(fault **faulty.Fault, on bool, rule faulty.Rule) {
	if *fault != nil {
		(*fault).Remove()
		*fault = nil
	}
	if on {
		*fault = f.storage.Add(rule)
		f.storage.Wake()
	}
}

// within lets up to d of virtual time pass while calls wait, from now on.
func (f *readFixture) within(d time.Duration) *readFixture {
	f.executor.until = f.clock.Now().Add(d)
	return f
}

// settle runs all that can run now.
func (f *readFixture) settle() { f.executor.Seeded.Run() }

// pass lets time pass.
func (f *readFixture) pass(d time.Duration) {
	for ; d > 0; d -= 100 * time.Millisecond {
		f.settle()
		f.clock.Advance(min(d, 100*time.Millisecond))
	}
	f.settle()
}

// put writes a pod and lets the cache see it, unless it is held back.
func (f *readFixture) put(name, app string, n int) engine.Revision {
	f.t.Helper()
	rev, err := revisionOf(f.Put(f.t.Context(), pod{Name: name, App: app, N: n}))
	require.NoError(f.t, err)
	f.settle()
	f.asked()
	return rev
}

// remove deletes a pod and lets the cache see it.
func (f *readFixture) remove(name string) engine.Revision {
	f.t.Helper()
	o, err := f.Delete(f.t.Context(), name, engine.DeleteOptions{})
	require.NoError(f.t, err)
	f.settle()
	f.asked()
	return o.Revision
}

// list returns a list as text, as in "@5: a=1@3 b=2@5 +1 more", and its token.
func (f *readFixture) list(o engine.ListOptions) (text, token string, err error) {
	f.t.Helper()
	l, err := f.List(f.t.Context(), o)
	if err != nil {
		return "", "", err
	}
	require.NotNil(f.t, l.Items)
	text = fmt.Sprintf("@%d:", l.Revision)
	for _, o := range l.Items {
		text += fmt.Sprintf(" %s=%d@%d", o.Key, o.Value.N, o.Revision)
	}
	if l.Continue != "" {
		text += fmt.Sprintf(" %+d more", l.Remaining)
	} else {
		require.Zero(f.t, l.Remaining)
	}
	return text, l.Continue, nil
}

// lists demands what a list returns and what that asks of the source.
func (f *readFixture) lists(o engine.ListOptions, want, asks string) (token string) {
	f.t.Helper()
	got, token, err := f.list(o)
	require.NoError(f.t, err)
	require.Equal(f.t, want, got)
	require.Equal(f.t, asks, f.asked())
	return token
}

// gets demands what a Get returns and what that asks of the source.
func (f *readFixture) gets(key string, read engine.Read, want, asks string) {
	f.t.Helper()
	o, err := f.Get(f.t.Context(), key, engine.GetOptions{Read: read})
	got := ""
	switch {
	case errors.Is(err, engine.ErrNotFound):
		got = "not found"
	case err != nil:
		got = err.Error()
	default:
		got = fmt.Sprintf("%s=%d@%d", o.Key, o.Value.N, o.Revision)
	}
	require.Equal(f.t, want, got)
	require.Equal(f.t, asks, f.asked())
}
