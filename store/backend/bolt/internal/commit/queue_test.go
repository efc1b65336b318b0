package commit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/commit"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
	"github.com/watchmill/watchmill/usercode"
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

// So do the writers that do not commit their group themselves.
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

func TestQueue_PassesOnThatThereIsNoSpace(t *testing.T) {
	f := newFixture(t, nil)
	full := &journal.FullError{Cause: syscall.ENOSPC}
	f.journal.Add(journaltest.Fault{Err: full})
	require.ErrorIs(t, f.set("a", 0), journal.ErrFull)
	require.Zero(t, f.pods.get("a"))
	require.NoError(t, f.set("a", 0), "as if it had not been tried")
}

func TestQueue_TriesAgainAsLongAsThereMayBeSpace(t *testing.T) {
	left, asked := 0, 0
	f := newFixture(t, func() bool { asked++; left--; return left >= 0 })
	full := journaltest.Fault{Err: &journal.FullError{Cause: syscall.ENOSPC}}
	left = 1
	f.journal.Add(full)
	require.NoError(t, f.set("a", 0))
	require.Equal(t, 1, asked)
	left = 2
	f.journal.Add(full, full)
	require.NoError(t, f.set("a", 1))
	require.Equal(t, 3, asked)
	left = 2
	f.journal.Add(full, full, full)
	require.ErrorIs(t, f.set("a", 2), journal.ErrFull)
	require.Equal(t, 6, asked)
	require.NoError(t, f.set("a", 2))
}

// raise raises the floor of its log.
type raise struct {
	commit.Ticket
	log   *counters
	to    uint64
	shown bool
}

func (r *raise) Log() commit.Log { return r.log }
func (r *raise) Size() int       { return 1 }
func (r *raise) Read()           {}
func (r *raise) Publish()        { r.shown = true }

func (r *raise) Stage(b *journal.Batch) error {
	b.Floors = append(b.Floors, journal.Floor{Log: r.log.name, Revision: r.to})
	return nil
}

// Records may not use all the space, so that history can be discarded: also beside a write for
// which there is none.
func TestQueue_RaisesAFloorThoughThereIsNoSpaceForAWrite(t *testing.T) {
	full := journaltest.Fault{Err: &journal.FullError{Cause: syscall.ENOSPC}}
	failed := journaltest.Fault{Err: &journal.FailedError{Uncertain: true, Cause: syscall.EIO}}
	for name, c := range map[string]struct {
		faults          []journaltest.Fault // of the group, and of what is tried after it
		space           bool                // is made
		write, raising  error
		uncertainRaises bool
	}{
		"there is none for the write":         {faults: []journaltest.Fault{full}, write: journal.ErrFull},
		"some is made for the write":          {faults: []journaltest.Fault{full}, space: true},
		"none is made for the write":          {faults: []journaltest.Fault{full, {}, full}, space: true, write: journal.ErrFull},
		"there is none for the floor, either": {faults: []journaltest.Fault{full, full}, write: journal.ErrFull, raising: journal.ErrFull},
		"some is made for both":               {faults: []journaltest.Fault{full, full}, space: true},
		"the disk fails":                      {faults: []journaltest.Fault{full, failed}, write: journal.ErrFailed, raising: journal.ErrFailed, uncertainRaises: true},
		"the disk fails after it":             {faults: []journaltest.Fault{full, {}, failed}, space: true, write: journal.ErrFailed},
	} {
		t.Run(name, func(t *testing.T) {
			left := c.space
			f := newFixture(t, func() bool { made := left; left = false; return made })
			r, raised := &raise{log: f.pods, to: 2}, make(chan error, 1)
			var wait func() []error
			require.NoError(t, f.during(journaltest.Fault{}, func() {
				f.journal.Add(c.faults...)
				wait = f.start(f.ctx, "a")
				go func() { raised <- f.Do(f.ctx, r) }()
				require.Eventually(t, func() bool { return f.Len() == 2 }, time.Minute, 50*time.Microsecond)
			}))
			require.ErrorIs(t, wait()[0], c.write)
			err := <-raised
			require.ErrorIs(t, err, c.raising)
			require.Equal(t, c.uncertainRaises, backend.Uncertain(err))
			require.Equal(t, c.raising == nil, r.shown)
			b, err := f.journal.Bounds("pods")
			require.NoError(t, err)
			require.Equal(t, map[bool]uint64{true: 2}[c.raising == nil], b.Floor)
			require.Equal(t, map[bool]int{true: 1}[c.write == nil], f.pods.get("a"))
			if !errors.Is(c.write, journal.ErrFailed) {
				require.NoError(t, f.set("b", 0), "nothing is staged any more")
			}
		})
	}
}

func TestQueue_FailsForGoodWhenTheDiskDoes(t *testing.T) {
	f := newFixture(t, nil)
	var wait func() []error
	fault := journaltest.Fault{Err: &journal.FailedError{Uncertain: true, Cause: syscall.EIO}}
	err := f.during(fault, func() { wait = f.start(f.ctx, "a", "b") })
	var failed *journal.FailedError
	require.ErrorAs(t, err, &failed)
	require.True(t, failed.Uncertain)
	for _, err := range append(wait(), f.set("c", 0)) {
		require.ErrorAs(t, err, &failed)
		require.False(t, failed.Uncertain, "it was never tried")
		require.ErrorIs(t, err, syscall.EIO)
	}
	require.Zero(t, f.pods.get("a"))
}

// A write that is refused because of another of its group must not be, if that one
// is not done after all.
func TestQueue_RefusesNothingForWhatIsNotDone(t *testing.T) {
	for _, err := range []error{
		&journal.FullError{Cause: syscall.ENOSPC},
		&journal.FailedError{Uncertain: true, Cause: syscall.EIO},
	} {
		f := newFixture(t, nil)
		var wait func() []error
		require.NoError(t, f.during(journaltest.Fault{}, func() {
			f.journal.Add(journaltest.Fault{Err: err})
			wait = f.start(f.ctx, "a", "a")
		}))
		errs := wait()
		require.ErrorIs(t, errs[0], err)
		require.Error(t, errs[1])
		require.NotErrorIs(t, errs[1], errConflict)
		require.Equal(t, errors.Is(err, journal.ErrFull), errors.Is(errs[1], journal.ErrFull))
		require.False(t, backend.Uncertain(errs[1]), "it was never tried")
	}
}

// A write that is refused before others of its group are staged is refused by what lasts, whether
// the others are done or not.
func TestQueue_RefusesForWhatLastsAlsoIfOthersFail(t *testing.T) {
	f := newFixture(t, nil)
	require.NoError(t, f.set("a", 0))
	full := &journal.FullError{Cause: syscall.ENOSPC}
	var wait func() []error
	require.NoError(t, f.during(journaltest.Fault{}, func() {
		f.journal.Add(journaltest.Fault{Err: full})
		wait = f.start(f.ctx, "a", "b")
	}))
	errs := wait()
	require.ErrorIs(t, errs[0], errConflict)
	require.ErrorIs(t, errs[1], full)
}

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

// startLarge is start of a write that has a group of its own.
func (f *fixture) startLarge(key string) (wait func() []error) {
	f.Helper()
	queued, done := f.Len(), make(chan error, 1)
	go func() { done <- f.Do(f.ctx, &set{log: f.pods, key: key, size: commit.MaxBytes}) }()
	require.Eventually(f, func() bool { return f.Len() == queued+1 }, time.Minute, 50*time.Microsecond)
	return func() []error { return []error{<-done} }
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
