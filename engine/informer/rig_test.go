package informer_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
)

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
		return nil, errBad
	case "panic":
		panic(errBad)
	}
	return []string{p.Node}, nil
}

var errBad = errors.New("bad node")

// rig is an informer over a fake source on a deterministic host: nothing runs
// but in run, pass and calls that wait. It is closed, and checked to leave
// nothing behind, when the test ends.
type rig struct {
	*informer.SharedInformer[pod]
	t        *testing.T
	clock    *actors.VirtualClock
	executor *actors.Seeded
	host     *engine.Host
	source   *enginetest.Source[pod]

	mu   sync.Mutex
	errs []error
}

// quick is a backoff for tests that go by the real clock.
var quick = reflector.Backoff{Initial: time.Microsecond, Max: time.Microsecond}

// newRig makes a rig whose configuration is as configure leaves it; nil changes
// nothing.
func newRig(t *testing.T, configure func(*informer.Config[pod])) *rig {
	t.Helper()
	r := &rig{t: t, clock: enginetest.NewVirtualClock(), executor: actors.NewSeeded(1)}
	var err error
	r.host, err = engine.NewHost(engine.HostConfig{Clock: r.clock, Executor: r.executor, Seed: 1})
	require.NoError(t, err)
	r.source = enginetest.NewSource(podConfig(), enginetest.SourceOptions{Clock: r.host.Clock()})
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

func (r *rig) close() {
	require.NoError(r.t, r.SharedInformer.Close())
	require.NoError(r.t, r.source.Close())
	enginetest.CheckLeaks(r.t, r.host)
	require.NoError(r.t, r.host.Close())
}

func (r *rig) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// reported returns what OnError was told since the call before.
func (r *rig) reported() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := r.errs
	r.errs = nil
	return errs
}

// put writes a pod, and lets everything run.
func (r *rig) put(p pod) store.Revision {
	r.t.Helper()
	rev := r.write(p)
	r.executor.Run()
	return rev
}

// write writes a pod.
func (r *rig) write(p pod) store.Revision {
	r.t.Helper()
	rev, err := r.source.Modify(p)
	if errors.Is(err, store.ErrNotFound) {
		rev, err = r.source.Add(p)
	}
	require.NoError(r.t, err)
	return rev
}

// remove deletes a pod, and lets everything run.
func (r *rig) remove(key string) store.Revision {
	r.t.Helper()
	rev, err := r.source.Delete(key)
	require.NoError(r.t, err)
	r.executor.Run()
	return rev
}

// relist makes the informer list again, what write does being hidden from its
// watch.
func (r *rig) relist(write func() error) {
	r.t.Helper()
	require.NoError(r.t, r.source.Hide(write))
	require.NoError(r.t, r.source.Forget())
	r.source.ResetWatches(engine.ErrExpired)
	r.pass(time.Minute)
}

// pass lets time pass, timer by timer.
func (r *rig) pass(d time.Duration) {
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

// log is a handler that writes down what it is told.
type log struct {
	mu    sync.Mutex
	lines []string
	// before, if any, is called first.
	before func(informer.Notification[pod])
}

func (l *log) handle(n informer.Notification[pod]) {
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

// told returns what was written down since the call before.
func (l *log) told() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// subscribe adds a log as a handler.
func (r *rig) subscribe(opts ...informer.HandlerOptions) (*log, *informer.Registration) {
	r.t.Helper()
	l := &log{}
	return l, r.subscribeLog(l, opts...)
}

func (r *rig) subscribeLog(l *log, opts ...informer.HandlerOptions) *informer.Registration {
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
