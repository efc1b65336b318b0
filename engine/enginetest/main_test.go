package enginetest_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pod is what the tests store.
type pod struct {
	Name string
	App  string
	N    int
}

func pods() engine.Config[pod] {
	return engine.Config[pod]{
		Key:    func(p pod) string { return p.Name },
		Labels: func(p pod) labels.Set { return labels.Set{"app": p.App} },
	}
}

// recorder is a testing.TB that records how a test fails.
type recorder struct {
	testing.TB // the real one, for what is not below
	ctx        context.Context
	isParallel bool

	mu       sync.Mutex
	failures []string
	logs     []string
	cleanups []func()
}

// failuresOf runs test as a test of its own and returns how it failed.
func failuresOf(t *testing.T, test func(t *recorder)) []string {
	t.Helper()
	return record(t, &recorder{}, test).failures
}

func record(t *testing.T, r *recorder, test func(t *recorder)) *recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r.TB, r.ctx = t, ctx
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() {
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		defer cancel()
		test(r)
	}()
	<-over
	return r
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Cleanup(f func())         { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Setenv(string, string) {
	if r.isParallel {
		panic("test using t.Setenv can not use t.Parallel")
	}
}

func (r *recorder) Log(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, fmt.Sprint(args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
