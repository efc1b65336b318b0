package commit_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
	"github.com/watchmill/watchmill/usercode"
)

// leaving is a write whose staging ends the goroutine, as user code in a test can.
type leaving struct{ set }

func (l *leaving) Stage(*journal.Batch) error { runtime.Goexit(); return nil }

// A goroutine that ends while it stages a group acknowledges nothing, and leaves nothing
// staged for the next group.
func TestQueue_AcknowledgesNothingOfAGroupThatIsAbandoned(t *testing.T) {
	f := newFixture(t, nil)
	var wait func() []error
	left := make(chan struct{})
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		wait = f.start(f.ctx, "a", "b", "c")
		queued := f.Len()
		go func() {
			defer close(left)
			_ = f.Do(f.ctx, &leaving{set{log: f.pods, key: "d"}})
		}()
		require.Eventually(t, func() bool { return f.Len() == queued+1 }, time.Minute, 50*time.Microsecond)
	}))
	<-left
	failed := 0
	for _, err := range wait() {
		if err == nil { // its goroutine was the one that has ended
			continue
		}
		failed++
		require.ErrorIs(t, err, usercode.ErrPanic)
		require.ErrorIs(t, err, usercode.ErrGoexit)
	}
	require.GreaterOrEqual(t, failed, 2)
	require.Equal(t, 1, f.journal.Writes(), "of the write that hung")
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, f.set(key, 0))
	}
}

// A goroutine that ends while Close commits what is queued leaves no writer waiting, and the
// file is closed all the same.
func TestQueue_ClosesIfUserCodeEndsTheGoroutine(t *testing.T) {
	f := newFixture(t, nil)
	var wait, rest func() []error
	var closing sync.WaitGroup
	after := make(chan struct{})
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		wait = f.start(f.ctx, "a")
		queued := f.Len()
		go func() { _ = f.Do(f.ctx, &leaving{set{log: f.pods, key: "b"}}) }()
		require.Eventually(t, func() bool { return f.Len() == queued+1 }, time.Minute, 50*time.Microsecond)
		rest = f.startLarge("c")
		closing.Go(func() { _ = f.Close(time.Minute, func() { close(after) }) })
		require.Eventually(t, f.IsClosing, time.Minute, 50*time.Microsecond)
	}))
	closing.Wait()
	for _, err := range wait() {
		require.ErrorIs(t, err, usercode.ErrGoexit)
	}
	require.Equal(t, []error{nil}, rest())
	<-after
}

// ending is a log with a watch whose notification ends the goroutine.
type ending struct{ *counters }

func (e ending) Commit(publish func()) { e.counters.Commit(publish); runtime.Goexit() }

// notifying is a write to such a log.
type notifying struct{ set }

func (n *notifying) Log() commit.Log { return ending{n.log} }

func TestQueue_PublishesAllLogsIfANotificationEndsTheGoroutine(t *testing.T) {
	f := newFixture(t, nil)
	nodes := f.declare("nodes")
	var wait func() []error
	done := make(chan struct{})
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		go func() {
			defer close(done)
			_ = f.Do(f.ctx, &notifying{set{log: nodes, key: "n"}})
		}()
		require.Eventually(t, func() bool { return f.Len() == 1 }, time.Minute, 50*time.Microsecond)
		wait = f.start(f.ctx, "a")
	}))
	<-done
	require.Equal(t, []error{nil}, wait())
	require.Equal(t, 1, nodes.get("n"))
	require.Equal(t, 1, f.pods.get("a"))
	require.NoError(t, f.set("a", 1), "nothing is staged any more")
}

// startLarge is start of a write that has a group of its own.
func (f *fixture) startLarge(key string) (wait func() []error) {
	f.Helper()
	queued, done := f.Len(), make(chan error, 1)
	go func() { done <- f.Do(f.ctx, &set{log: f.pods, key: key, size: commit.MaxBytes}) }()
	require.Eventually(f, func() bool { return f.Len() == queued+1 }, time.Minute, 50*time.Microsecond)
	return func() []error { return []error{<-done} }
}
