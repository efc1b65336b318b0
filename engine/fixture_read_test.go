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
	clock *actors.VirtualClock
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
	clock    *actors.VirtualClock
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
	r := newStorageFixture(t)
	r.start(adjust...)
	r.executor.Run()
	r.asked()
	return r
}

// newDownFixture starts an engine whose storage is down.
func newDownFixture(t *testing.T) *readFixture {
	r := newStorageFixture(t)
	r.setDown(true)
	r.start()
	return r
}

// newStorageFixture makes a fixture whose engine has yet to be started.
func newStorageFixture(t *testing.T) *readFixture {
	t.Helper()
	c := podsByNumber()
	r := &readFixture{t: t, clock: actors.NewVirtualClock(epoch), schema: c.Schema()}
	r.executor = &waiting{Seeded: actors.NewSeeded(1), clock: r.clock}
	beneath, err := memory.New(r.schema, memory.Options{Clock: r.clock})
	require.NoError(t, err)
	r.storage = faulty.New(beneath, faulty.Options{})
	r.storage.Add(faulty.Rule{Ops: reading, Do: faulty.Before(func(_ context.Context, c *faulty.Call) {
		r.calls = append(r.calls, c.Op.String())
	})})
	return r
}

// podsByNumber are pods with a field for their number and an index on a label.
func podsByNumber() engine.Config[pod] {
	c := cfg()
	c.Fields = engine.Fields[pod]{"n": func(p pod) string { return fmt.Sprint(p.N) }}
	c.IndexLabels = []string{"app"}
	return c
}

// start starts the engine, as adjust leaves its configuration.
func (r *readFixture) start(adjust ...func(*engine.Config[pod])) {
	r.t.Helper()
	var err error
	r.host, err = engine.NewHost(engine.HostConfig{
		Clock: r.clock, Executor: r.executor, Seed: 1,
		OnFailure: func(f actors.Failure) { r.failures = append(r.failures, f) },
	})
	require.NoError(r.t, err)
	c := podsByNumber()
	c.Host, c.Backend, c.OnError = r.host, r.storage, func(err error) { r.errs = append(r.errs, err) }
	for _, a := range adjust {
		a(&c)
	}
	r.Engine, err = engine.New(c)
	require.NoError(r.t, err)
	r.t.Cleanup(func() {
		require.NoError(r.t, r.Close())
		require.NoError(r.t, r.storage.Close())
		require.Zero(r.t, r.host.Actors())
		require.Zero(r.t, r.host.Timers())
		require.NoError(r.t, r.host.Close())
	})
}

// reading are the calls by which an engine reads from storage, but for those to
// a running watch.
var reading = []faulty.Op{faulty.OpGet, faulty.OpList, faulty.OpRevision, faulty.OpWatch}

// asked returns what storage was asked since the last time, "nothing" if
// nothing.
func (r *readFixture) asked() string {
	calls := r.calls
	r.calls = nil
	if len(calls) == 0 {
		return "nothing"
	}
	return strings.Join(calls, ", ")
}

// setDown has storage refuse to be read, and break its watches; it can still be
// written.
func (r *readFixture) setDown(down bool) {
	r.set(&r.down, down, faulty.Rule{Ops: append([]faulty.Op{faulty.OpNext}, reading...), Do: faulty.Fail(errDown)})
}

// setHeld has the watches of storage show nothing.
func (r *readFixture) setHeld(held bool) {
	r.set(&r.held, held, faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
}

// setWrong has the watches of storage show objects that it does not have.
func (r *readFixture) setWrong(wrong bool) {
	r.set(&r.wrong, wrong, faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.After(func(_ context.Context, c *faulty.Call) {
		c.Batch.Events = slices.Clone(c.Batch.Events)
		for i, ev := range c.Batch.Events {
			c.Batch.Events[i].Object = r.schema.Clone(ev.Object)
			c.Batch.Events[i].Object.Created++
		}
	})})
}

// setProgress has the watches of storage say that nothing happened up to rev,
// and nothing will.
func (r *readFixture) setProgress(rev engine.Revision) {
	r.set(&r.progress, true, faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: func(_ context.Context, c *faulty.Call, _ func()) {
		c.Batch = backend.Batch{After: c.Position, Through: rev}
	}})
}

// set makes a fault hold, or ends it.
func (r *readFixture) set(fault **faulty.Fault, on bool, rule faulty.Rule) {
	if *fault != nil {
		(*fault).Remove()
		*fault = nil
	}
	if on {
		*fault = r.storage.Add(rule)
		r.storage.Wake()
	}
}

// within lets up to d of virtual time pass while calls wait, from now on.
func (r *readFixture) within(d time.Duration) *readFixture {
	r.executor.until = r.clock.Now().Add(d)
	return r
}

// settle runs all that can run now.
func (r *readFixture) settle() { r.executor.Seeded.Run() }

// pass lets time pass.
func (r *readFixture) pass(d time.Duration) {
	for ; d > 0; d -= 100 * time.Millisecond {
		r.settle()
		r.clock.Advance(min(d, 100*time.Millisecond))
	}
	r.settle()
}

// put writes a pod and lets the cache see it, unless it is held back.
func (r *readFixture) put(name, app string, n int) engine.Revision {
	r.t.Helper()
	rev, err := revisionOf(r.Put(r.t.Context(), pod{Name: name, App: app, N: n}))
	require.NoError(r.t, err)
	r.settle()
	r.asked()
	return rev
}

// remove deletes a pod and lets the cache see it.
func (r *readFixture) remove(name string) engine.Revision {
	r.t.Helper()
	o, err := r.Delete(r.t.Context(), name, engine.DeleteOptions{})
	require.NoError(r.t, err)
	r.settle()
	r.asked()
	return o.Revision
}

// list returns a list as text, as in "@5: a=1@3 b=2@5 +1 more", and its token.
func (r *readFixture) list(o engine.ListOptions) (text, token string, err error) {
	r.t.Helper()
	l, err := r.List(r.t.Context(), o)
	if err != nil {
		return "", "", err
	}
	require.NotNil(r.t, l.Items)
	text = fmt.Sprintf("@%d:", l.Revision)
	for _, o := range l.Items {
		text += fmt.Sprintf(" %s=%d@%d", o.Key, o.Value.N, o.Revision)
	}
	if l.Continue != "" {
		text += fmt.Sprintf(" %+d more", l.Remaining)
	} else {
		require.Zero(r.t, l.Remaining)
	}
	return text, l.Continue, nil
}

// lists demands what a list returns and what that asks of the source.
func (r *readFixture) lists(o engine.ListOptions, want, asks string) (token string) {
	r.t.Helper()
	got, token, err := r.list(o)
	require.NoError(r.t, err)
	require.Equal(r.t, want, got)
	require.Equal(r.t, asks, r.asked())
	return token
}

// gets demands what a Get returns and what that asks of the source.
func (r *readFixture) gets(key string, read engine.Read, want, asks string) {
	r.t.Helper()
	o, err := r.Get(r.t.Context(), key, engine.GetOptions{Read: read})
	got := ""
	switch {
	case errors.Is(err, engine.ErrNotFound):
		got = "not found"
	case err != nil:
		got = err.Error()
	default:
		got = fmt.Sprintf("%s=%d@%d", o.Key, o.Value.N, o.Revision)
	}
	require.Equal(r.t, want, got)
	require.Equal(r.t, asks, r.asked())
}
