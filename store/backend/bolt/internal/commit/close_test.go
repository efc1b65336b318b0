package commit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

func TestClose_CommitsWhatIsQueued(t *testing.T) {
	f := newFixture(t, nil)
	var wait func() []error
	closed := make(chan error, 1)
	var after atomic.Int32
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		wait = f.start(f.ctx, "a", "b")
		go func() { closed <- f.Close(time.Minute, func() { after.Add(1) }) }()
	}))
	require.NoError(t, <-closed)
	require.Equal(t, int32(1), after.Load())
	require.Equal(t, []error{nil, nil}, wait())
	require.ErrorIs(t, f.set("c", 0), journal.ErrClosed)
}

// isClosed reports whether Close has begun.
func (f *fixture) isClosed() bool {
	ctx, cancel := context.WithTimeout(f.ctx, time.Millisecond)
	defer cancel()
	return errors.Is(f.Do(ctx, &set{log: f.pods, key: "late"}), journal.ErrClosed)
}

// Close itself commits what waits when it begins, in as many groups as that needs.
func TestClose_CommitsGroupsThatWait(t *testing.T) {
	f := newFixture(t, nil)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	closed := make(chan error, 1)
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		for i := range errs {
			wg.Go(func() {
				errs[i] = f.Do(f.ctx, &set{log: f.pods, key: fmt.Sprint("k", i), size: commit.MaxBytes})
			})
		}
		require.Eventually(t, func() bool { return f.Len() == len(errs) }, time.Minute, time.Millisecond)
		go func() { closed <- f.Close(time.Minute, func() {}) }()
		require.Eventually(t, f.isClosed, time.Minute, time.Millisecond)
	}))
	require.NoError(t, <-closed)
	wg.Wait()
	require.Equal(t, make([]error, 3), errs)
	require.Equal(t, 4, f.journal.Writes())
}

// A disk that hangs does not make Close hang. The commit that hangs still tells
// its outcome, and then calls after.
func TestClose_DoesNotWaitForEver(t *testing.T) {
	f := newFixture(t, nil)
	after := make(chan struct{})
	var wait func() []error
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		wait = f.start(f.ctx, "a", "b")
		require.ErrorIs(t, f.Close(time.Millisecond, func() { close(after) }), journal.ErrTimeout)
		for _, err := range wait() {
			require.ErrorIs(t, err, journal.ErrClosed)
		}
		select {
		case <-after:
			t.Error("the commit goes on")
		default:
		}
	}))
	<-after
	require.Equal(t, 1, f.pods.get("hanging"))
	require.Zero(t, f.pods.get("a"))
}
