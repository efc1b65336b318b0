package backendtest_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// began is when the clocks of the tests start.
var began = time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)

// recorder is a test that may fail without failing this one.
type recorder struct {
	ctx    context.Context
	mu     sync.Mutex
	failed bool
	log    string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.log += fmt.Sprintf(format, args...)
}

func (r *recorder) FailNow() {
	r.mu.Lock()
	r.failed = true
	r.mu.Unlock()
	runtime.Goexit()
}

// judge runs one check on a backend that was broken, in a bubble where waiting
// takes no time.
func judge(t *testing.T, check backendtest.Check, wreck func(honest) *wrapper) *recorder {
	verdict := &recorder{ctx: context.Background()}
	synctest.Test(t, func(t *testing.T) {
		virtual := clock.NewVirtual(began)
		b, err := memory.New(backendtest.Schema(), memory.Options{Clock: virtual, FirstRevision: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, b.Close()) }()
		var wrecked backend.Backend = wreck(b)
		done := make(chan struct{})
		go func() {
			defer close(done)
			check.Run(verdict, backendtest.Harness{Backend: wrecked, Pass: virtual.Advance, Patience: time.Minute})
		}()
		<-done
		synctest.Wait()
	})
	return verdict
}

func intact(h honest) *wrapper { return &wrapper{honest: h} }

func TestHonestBackendPasses(t *testing.T) {
	for _, check := range backendtest.Checks() {
		verdict := judge(t, check, intact)
		require.False(t, verdict.failed, "%s: %s", check.Name, verdict.log)
	}
}

func TestBrokenBackendsAreFound(t *testing.T) {
	checks := map[string]backendtest.Check{}
	for _, check := range backendtest.Checks() {
		checks[check.Name] = check
	}
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			check, ok := checks[b.found]
			require.True(t, ok, "there is no check %q", b.found)
			require.True(t, judge(t, check, b.wreck).failed, "%s did not find it", b.found)
		})
	}
}

// A check that finds nothing in any of the broken backends may be unable to.
func TestEveryCheckCanFail(t *testing.T) {
	found := map[string]bool{}
	for _, b := range breakages {
		found[b.found] = true
	}
	for _, check := range backendtest.Checks() {
		require.True(t, found[check.Name], "no breakage is found by %s", check.Name)
	}
}
