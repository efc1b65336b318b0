package commit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

func TestQueue_CommitsOneWrite(t *testing.T) {
	f := newFixture(t, nil)
	require.NoError(t, f.set("a", 0))
	require.NoError(t, f.set("a", 1))
	require.Equal(t, 2, f.pods.get("a"))
	require.ErrorIs(t, f.set("a", 1), errConflict)
	b, err := f.journal.Bounds("pods")
	require.NoError(t, err)
	require.Equal(t, uint64(3), b.Last)
}

// What comes while a transaction is committed shares the next one, in the order in
// which it came; what fails in it fails alone.
func TestQueue_SharesTransactions(t *testing.T) {
	f := newFixture(t, nil)
	before := f.journal.Writes()
	var wait func() []error
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		wait = f.start(f.ctx, "a", "b", "a", "c")
	}))
	errs := wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], errConflict, "it sees the first, which is not durable yet")
	require.NoError(t, errs[3])
	require.Equal(t, 2, f.journal.Writes()-before)
	require.Equal(t, 2, f.pods.commits)
}

// Writers that write again when they are woken are in one group, and not in two that
// take turns.
func TestQueue_GathersTheWritersOfTheLastGroup(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what runs when a goroutine yields is then known
	const writers, rounds = 8, 50
	f := newFixture(t, nil)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range rounds {
				assert.NoError(t, f.set(fmt.Sprint("writer-", i), n))
			}
		})
	}
	wg.Wait()
	require.Less(t, f.pods.commits, rounds*3/2, "two groups that take turns need %d", 2*rounds)
}

func TestQueue_SharesTransactionsBetweenLogs(t *testing.T) {
	f := newFixture(t, nil)
	nodes := f.declare("nodes")
	var wait func() []error
	done := make(chan error, 1)
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		wait = f.start(f.ctx, "a", "b")
		go func() { done <- f.Do(f.ctx, &set{log: nodes, key: "n"}) }()
		require.Eventually(t, func() bool { return f.Len() == 3 }, time.Minute, 50*time.Microsecond)
	}))
	require.Equal(t, []error{nil, nil}, wait())
	require.NoError(t, <-done)
	require.Equal(t, 2, f.journal.Writes())
	require.Equal(t, 1, nodes.get("n"))
	require.Equal(t, 1, nodes.commits)
	require.Equal(t, []int{3, 3, 1, 1}, []int{f.pods.reads, f.pods.published, nodes.reads, nodes.published}, "each write once, for its own log")
}

func TestQueue_BoundsAGroup(t *testing.T) {
	f := newFixture(t, nil)
	var wg sync.WaitGroup
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		for i := range commit.MaxWrites + 1 {
			wg.Go(func() {
				if err := f.set(fmt.Sprint("k", i), 0); err != nil {
					t.Error(err)
				}
			})
		}
		require.Eventually(t, func() bool { return f.Len() == commit.MaxWrites+1 }, time.Minute, time.Millisecond)
	}))
	wg.Wait()
	require.Equal(t, 3, f.journal.Writes(), "the one that hung, a full one, the last write")

	large := func(key string, size int) {
		n := f.Len()
		wg.Go(func() {
			if err := f.Do(f.ctx, &set{log: f.pods, key: key, size: size}); err != nil {
				t.Error(err)
			}
		})
		require.Eventually(t, func() bool { return f.Len() == n+1 }, time.Minute, 50*time.Microsecond)
	}
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		large("l1", commit.MaxBytes/2)
		large("l2", commit.MaxBytes/2-100)
		large("l3", commit.MaxBytes*2)
		large("l4", 1)
	}))
	wg.Wait()
	require.Equal(t, 7, f.journal.Writes(), "the one that hung, two halves, one that is too large, the last")
}

// A write that is not in a transaction yet can be taken back, and is not written;
// one that is waits for the outcome.
func TestQueue_HonoursTheContextUntilTheTransaction(t *testing.T) {
	f := newFixture(t, nil)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(f.ctx)
	var taken, left func() []error
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		taken = f.start(ctx, "a", "b")
		left = f.start(f.ctx, "c")
		cancel(cause)
		for _, err := range taken() {
			require.ErrorIs(t, err, cause)
		}
	}))
	require.Equal(t, []error{nil}, left())
	require.Zero(t, f.pods.get("a")+f.pods.get("b"))
	require.Equal(t, 1, f.pods.get("c"))
	require.ErrorIs(t, f.Do(ctx, &set{log: f.pods, key: "a"}), cause)

	ctx, cancel = context.WithCancelCause(f.ctx)
	entered, wait, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f.journal.Add(journaltest.Fault{Entered: entered, Wait: wait})
	go func() { done <- f.Do(ctx, &set{log: f.pods, key: "a"}) }()
	<-entered
	cancel(cause)
	close(wait)
	require.NoError(t, <-done, "it was in a transaction")
	require.Equal(t, 1, f.pods.get("a"))
}

// Writers that do not commit their group themselves wait for the outcome, too.
func TestQueue_TellsWritersThatGiveUpTooLateTheOutcome(t *testing.T) {
	for _, outcome := range []error{nil, &journal.FullError{Cause: syscall.ENOSPC}} {
		tellLateWriters(t, outcome)
	}
}

func tellLateWriters(t *testing.T, outcome error) {
	t.Helper()
	f := newFixture(t, nil)
	ctx, cancel := context.WithCancel(f.ctx)
	entered, hang := make(chan struct{}), make(chan struct{})
	keys := make([]string, 50)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	var wait func() []error
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		f.journal.Add(journaltest.Fault{Entered: entered, Wait: hang, Err: outcome})
		wait = f.start(ctx, keys...)
	}))
	<-entered
	cancel()
	for range keys {
		runtime.Gosched()
	}
	close(hang)
	for _, err := range wait() {
		require.Equal(t, outcome, err)
	}
}

// unwanted is a write that must not be queued.
type unwanted struct{ set }

func (unwanted) Size() int { panic("it was asked for its size") }

func TestQueue_DoesNotTakeAWriteWhoseContextIsDone(t *testing.T) {
	f := newFixture(t, nil)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	require.ErrorIs(t, f.Do(ctx, &unwanted{set{log: f.pods, key: "a"}}), context.Canceled)
}

// resigning is a write whose context ends when it is queued.
type resigning struct {
	set
	resign func()
}

func (r *resigning) Size() int { r.resign(); return r.set.Size() }

// The writer that commits a group checks its context once more, since others may have run first.
func TestQueue_WritesNothingForAWriterThatGivesUpBeforeItCommits(t *testing.T) {
	f := newFixture(t, nil)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(f.ctx)
	w := &resigning{set: set{log: f.pods, key: "a"}, resign: func() { cancel(cause) }}
	require.ErrorIs(t, f.Do(ctx, w), cause)
	require.Zero(t, f.journal.Writes())
	require.NoError(t, f.set("a", 0), "the next writer can commit")
}

// A group all of which was taken back writes nothing, and the next goes on.
func TestQueue_SkipsWhatWasTakenBack(t *testing.T) {
	f := newFixture(t, nil)
	ctx, cancel := context.WithCancel(f.ctx)
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		wait := f.start(ctx, "a", "b")
		cancel()
		wait()
	}))
	require.NoError(t, f.set("a", 0))
	require.Equal(t, 2, f.journal.Writes())
}

// Many writers, some that give up, on two logs: what was acknowledged is counted,
// and what was not is not.
func TestQueue_LosesAndDoublesNothing(t *testing.T) {
	f := newFixture(t, nil)
	logs := []*counters{f.pods, f.declare("nodes")}
	var wg sync.WaitGroup
	acked := make([]int, 24)
	for w := range acked {
		wg.Go(func() {
			log, key := logs[w%2], fmt.Sprint("w", w/2)
			for i := range 60 {
				ctx, cancel := context.WithCancel(f.ctx)
				if i%5 == 0 {
					go cancel()
				}
				err := f.Do(ctx, &set{log: log, key: key, from: acked[w]})
				cancel()
				switch {
				case err == nil:
					acked[w]++
				case !errors.Is(err, context.Canceled):
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for w, n := range acked {
		require.Equal(t, n, logs[w%2].get(fmt.Sprint("w", w/2)))
		total += n
	}
	require.Less(t, f.journal.Writes(), total, "they share")
	require.NoError(t, f.Close(time.Minute, func() {}))
}
