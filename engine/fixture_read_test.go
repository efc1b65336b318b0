package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// errDown is what a source says while it is down.
var errDown = errors.New("the source is down")

// source is a memory backend that counts what it is asked, and that can be told
// to be down, to hold its changes back, to lie about them, and to say that
// nothing happened up to a revision.
type source struct {
	*memory.Backend

	mu      sync.Mutex
	calls   []string
	down    bool
	held    bool
	lie     func(store.Event) store.Event
	watches []*sourceWatch
	// progress: nothing has happened up to there, and nothing will.
	progress store.Revision
}

func (s *source) note(call string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	if s.down {
		return errDown
	}
	return nil
}

// asked returns what the source was asked since the last time, "nothing" if
// nothing.
func (s *source) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	if len(calls) == 0 {
		return "nothing"
	}
	return strings.Join(calls, ", ")
}

func (s *source) List(ctx context.Context, o backend.ListOptions) (*backend.List, error) {
	if err := s.note("list"); err != nil {
		return nil, err
	}
	return s.Backend.List(ctx, o)
}

func (s *source) Get(ctx context.Context, key string) (*store.Object, error) {
	if err := s.note("get"); err != nil {
		return nil, err
	}
	return s.Backend.Get(ctx, key)
}

func (s *source) Revision(ctx context.Context) (store.Revision, error) {
	if err := s.note("revision"); err != nil {
		return 0, err
	}
	return s.Backend.Revision(ctx)
}

func (s *source) Watch(ctx context.Context, o backend.WatchOptions) (backend.Watcher, error) {
	if err := s.note("watch"); err != nil {
		return nil, err
	}
	w, err := s.Backend.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	mine := &sourceWatch{Watcher: w, source: s, through: o.From, notify: o.Notify}
	s.mu.Lock()
	s.watches = append(s.watches, mine)
	s.mu.Unlock()
	return mine, nil
}

// set changes the source's mood, and has the watches look again.
func (s *source) set(change func()) {
	s.mu.Lock()
	change()
	watches := slices.Clone(s.watches)
	s.mu.Unlock()
	for _, w := range watches {
		w.notify()
	}
}

func (s *source) setDown(down bool) { s.set(func() { s.down = down }) }
func (s *source) setHeld(held bool) { s.set(func() { s.held = held }) }

type sourceWatch struct {
	backend.Watcher
	source  *source
	through store.Revision
	notify  func()
}

func (w *sourceWatch) Next(most int) (backend.Batch, error) {
	w.source.mu.Lock()
	down, held, lie, progress := w.source.down, w.source.held, w.source.lie, w.source.progress
	w.source.mu.Unlock()
	switch {
	case down:
		return backend.Batch{}, errDown
	case held:
		return backend.Batch{After: w.through, Through: w.through}, nil
	case progress > 0:
		batch := backend.Batch{After: w.through, Through: progress}
		w.through = progress
		return batch, nil
	}
	batch, err := w.Watcher.Next(most)
	if w.through = batch.Through; lie != nil {
		batch.Events = slices.Clone(batch.Events)
		for i, ev := range batch.Events {
			batch.Events[i] = lie(ev)
		}
	}
	return batch, err
}

func (w *sourceWatch) Close() {
	w.source.mu.Lock()
	w.source.watches = slices.DeleteFunc(w.source.watches, func(o *sourceWatch) bool { return o == w })
	w.source.mu.Unlock()
	w.Watcher.Close()
}

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

// readFixture is an engine on a deterministic host over a source.
type readFixture struct {
	t        *testing.T
	clock    *actors.VirtualClock
	executor *waiting
	host     *engine.Host
	source   *source
	errs     []error
	failures []actors.Failure
	*engine.Engine[pod]
}

// newReadFixture starts an engine whose cache is ready.
func newReadFixture(t *testing.T, adjust ...func(*engine.Config[pod])) *readFixture {
	r := newUnreadyFixture(t, adjust...)
	r.executor.Run()
	r.source.asked()
	return r
}

// newUnreadyFixture starts an engine over a source that adjust may have taken down.
func newUnreadyFixture(t *testing.T, adjust ...func(*engine.Config[pod])) *readFixture {
	t.Helper()
	r := &readFixture{t: t, clock: actors.NewVirtualClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	r.executor = &waiting{Seeded: actors.NewSeeded(1), clock: r.clock}
	var err error
	r.host, err = engine.NewHost(engine.HostConfig{
		Clock: r.clock, Executor: r.executor, Seed: 1,
		OnFailure: func(f actors.Failure) { r.failures = append(r.failures, f) },
	})
	require.NoError(t, err)
	c := cfg()
	c.Host, c.OnError = r.host, func(err error) { r.errs = append(r.errs, err) }
	c.Fields = engine.Fields[pod]{"n": func(p pod) string { return fmt.Sprint(p.N) }}
	c.IndexLabels = []string{"app"}
	below, err := memory.New(c.Schema(), memory.Options{Clock: r.clock})
	require.NoError(t, err)
	r.source = &source{Backend: below}
	c.Backend = r.source
	for _, a := range adjust {
		a(&c)
	}
	r.Engine, err = engine.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		require.NoError(t, below.Close())
		require.Zero(t, r.host.Actors())
		require.Zero(t, r.host.Timers())
		require.NoError(t, r.host.Close())
	})
	return r
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
	r.source.asked()
	return rev
}

// remove deletes a pod and lets the cache see it.
func (r *readFixture) remove(name string) engine.Revision {
	r.t.Helper()
	o, err := r.Delete(r.t.Context(), name, engine.DeleteOptions{})
	require.NoError(r.t, err)
	r.settle()
	r.source.asked()
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
	require.Equal(r.t, asks, r.source.asked())
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
	require.Equal(r.t, asks, r.source.asked())
}
