package informer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
)

// Nothing that an informer starts outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pod is the object of all tests.
type pod struct {
	Name string
	Node string
	N    int
}

func podConfig() engine.Config[pod] {
	return engine.Config[pod]{
		Key:    func(p pod) string { return p.Name },
		Labels: func(p pod) labels.Set { return labels.Set{"node": p.Node} },
	}
}

func byNode(p pod) ([]string, error) {
	switch p.Node {
	case "bad":
		return []string{"bad"}, errBad // the value does not count
	case "panic":
		panic(errBad)
	}
	return []string{p.Node}, nil
}

var errBad = errors.New("bad node")

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	require.TestingT
	Helper()
	Cleanup(func())
}

// fixture is an informer over a fake source on a deterministic host: nothing runs
// but in run, pass and calls that wait. It is closed, and checked to leave
// nothing behind, when the test ends.
type fixture struct {
	*informer.SharedInformer[pod]
	t        tester
	clock    *clock.Virtual
	executor *actors.Seeded
	host     *engine.Host
	source   *enginetest.Source[pod]

	mu   sync.Mutex
	errs []error
}

// quick is a backoff for tests that go by the real clock.
var quick = reflector.Backoff{Initial: time.Microsecond, Max: time.Microsecond}

// newFixture makes a fixture whose configuration is as configure leaves it; nil
// changes nothing.
func newFixture(t tester, configure func(*informer.Config[pod])) *fixture {
	t.Helper()
	return newSeededFixture(t, 1, configure)
}

// newSeededFixture makes a fixture whose actors take the turns that seed determines.
func newSeededFixture(t tester, seed uint64, configure func(*informer.Config[pod])) *fixture {
	t.Helper()
	r := &fixture{t: t, clock: enginetest.NewVirtualClock(), executor: actors.NewSeeded(seed)}
	var err error
	r.host, err = engine.NewHost(engine.HostConfig{Clock: r.clock, Executor: r.executor, Seed: 1})
	require.NoError(t, err)
	r.source = enginetest.NewSourceWith(podConfig(), enginetest.SourceOptions{Clock: r.host.Clock()})
	cfg := informer.Config[pod]{
		Source: engine.SourceOf[pod](r.source), Host: r.host, Name: "pods", OnError: r.failed,
		Backoff: reflector.Backoff{Initial: time.Second, Max: time.Second, Jitter: reflector.NoJitter},
	}
	if configure != nil {
		configure(&cfg)
	}
	r.SharedInformer, err = informer.New(cfg)
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r
}

func (r *fixture) close() {
	require.NoError(r.t, r.SharedInformer.Close())
	require.NoError(r.t, r.source.Close())
	require.Empty(r.t, r.host.ActorNames())
	require.Zero(r.t, r.host.Timers())
	require.NoError(r.t, r.host.Close())
}

func (r *fixture) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// reported returns what OnError got since the call before.
func (r *fixture) reported() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := r.errs
	r.errs = nil
	return errs
}

// put writes a pod, and lets everything run.
func (r *fixture) put(p pod) store.Revision {
	r.t.Helper()
	rev := r.write(p)
	r.executor.Run()
	return rev
}

// write writes a pod.
func (r *fixture) write(p pod) store.Revision {
	r.t.Helper()
	rev, err := r.source.Modify(p)
	if errors.Is(err, store.ErrNotFound) {
		rev, err = r.source.Add(p)
	}
	require.NoError(r.t, err)
	return rev
}

// remove deletes a pod, and lets everything run.
func (r *fixture) remove(key string) store.Revision {
	r.t.Helper()
	rev, err := r.source.Delete(key)
	require.NoError(r.t, err)
	r.executor.Run()
	return rev
}

// relist hides what write does from the informer's watch, and makes the informer
// list again.
func (r *fixture) relist(write func() error) {
	r.t.Helper()
	require.NoError(r.t, r.source.Hide(write))
	require.NoError(r.t, r.source.Forget())
	r.source.ResetWatches(engine.ErrExpired)
	r.pass(time.Minute)
}

// pass moves the clock, timer by timer.
func (r *fixture) pass(d time.Duration) {
	r.executor.Run()
	end := r.clock.Now().Add(d)
	for {
		next, armed := r.clock.Next()
		if !armed || next.After(end) {
			break
		}
		r.clock.Advance(next.Sub(r.clock.Now()))
		r.executor.Run()
	}
	r.clock.Advance(end.Sub(r.clock.Now()))
	r.executor.Run()
}

// recorder is a handler that records its notifications.
type recorder struct {
	mu    sync.Mutex
	lines []string
	// before, if any, is called first.
	before func(informer.Notification[pod])
}

func (l *recorder) handle(n informer.Notification[pod]) {
	if l.before != nil {
		l.before(n)
	}
	line := n.String()
	if n.Type == store.Modified {
		line = fmt.Sprintf("%v %s@%d→%d %v", n.Type, n.Key(), n.Old.Revision, n.Object.Revision, n.Cause)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// recorded returns the notifications since the call before.
func (l *recorder) recorded() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// subscribe adds a recorder as a handler.
func (r *fixture) subscribe(opts ...informer.HandlerOptions) (*recorder, *informer.Registration) {
	r.t.Helper()
	l := &recorder{}
	return l, r.subscribeRecorder(l, opts...)
}

func (r *fixture) subscribeRecorder(l *recorder, opts ...informer.HandlerOptions) *informer.Registration {
	r.t.Helper()
	var options informer.HandlerOptions
	if len(opts) > 0 {
		options = opts[0]
	}
	h, err := r.Subscribe(l.handle, options)
	require.NoError(r.t, err)
	return h
}

func keys(objects []*informer.Object[pod]) (list []string) {
	for _, o := range objects {
		list = append(list, o.Key)
	}
	return list
}

// history is a handler that checks that its notifications are a history: of each
// key an addition, updates that join up, at most one deletion, then all over again,
// at revisions that grow.
type history struct {
	known map[string]*informer.Object[pod]
	last  map[string]store.Revision
	wrong atomic.Pointer[string]
	ended atomic.Bool
	calls atomic.Int64
}

func newHistory() *history {
	return &history{known: map[string]*informer.Object[pod]{}, last: map[string]store.Revision{}}
}

func (h *history) handle(n informer.Notification[pod]) {
	h.calls.Add(1)
	if h.ended.Load() {
		h.fail("%v after its end", n)
	}
	known := h.known[n.Key()]
	switch {
	case n.Type == store.Added && known != nil:
		h.fail("%v, but it has %d", n, known.Revision)
	case n.Type != store.Added && known != n.Old:
		h.fail("%v of %v, but it has %v", n, n.Old, known)
	case n.Cause != informer.Resync && n.Object.Revision < h.last[n.Key()]:
		h.fail("%v after revision %d", n, h.last[n.Key()])
	case n.Type == store.Modified && n.Old.Created != n.Object.Created:
		h.fail("%v turns one object into another", n)
	}
	h.last[n.Key()] = n.Object.Revision
	if h.known[n.Key()] = n.Object; n.Type == store.Deleted {
		delete(h.known, n.Key())
	}
}

func (h *history) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.wrong.CompareAndSwap(nil, &text)
}

func (h *history) check(t *testing.T) {
	t.Helper()
	if wrong := h.wrong.Load(); wrong != nil {
		t.Error(*wrong)
	}
}

// checkState demands that the notifications add up to the state.
func (h *history) checkState(t *testing.T, state informer.Snapshot[pod]) {
	t.Helper()
	h.check(t)
	require.Len(t, h.known, state.Len())
	for object := range state.All() {
		require.Same(t, object, h.known[object.Key])
	}
}

// churn writes n times at random to one of keys objects.
func churn(t *testing.T, source *enginetest.Source[pod], seed uint64, n, keys int) (last store.Revision) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		p := pod{Name: fmt.Sprintf("p%d", random.IntN(keys)), N: i + 1}
		_, err := source.Get(context.Background(), p.Name)
		switch {
		case err != nil:
			last, err = source.Add(p)
		case random.IntN(4) == 0:
			last, err = source.Delete(p.Name)
		default:
			last, err = source.Modify(p)
		}
		if err != nil {
			t.Error(err)
		}
	}
	return last
}

// busy is an informer on a real host over a source of its own.
func busy(t *testing.T, configure func(*informer.Config[pod])) (*informer.SharedInformer[pod], *enginetest.Source[pod]) {
	t.Helper()
	source := enginetest.NewSource(podConfig())
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	cfg := informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host, Name: "pods"}
	if configure != nil {
		configure(&cfg)
	}
	s, err := informer.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, source.Close())
		enginetest.CheckLeaks(t, host)
		require.NoError(t, host.Close())
	})
	return s, source
}

// gate is a handler whose first call blocks until the gate is opened.
type gate struct {
	entered, open chan struct{}
	once          sync.Once
	seen          *history
}

func newGate() *gate {
	return &gate{entered: make(chan struct{}), open: make(chan struct{}), seen: newHistory()}
}

func (g *gate) handle(n informer.Notification[pod]) {
	g.once.Do(func() { close(g.entered) })
	<-g.open
	g.seen.handle(n)
}
