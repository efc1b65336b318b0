package commit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend/bolt/internal/journal"
)

// sized is a write that is only queued.
type sized struct {
	Ticket
	size int
}

func (*sized) Log() Log                   { return nil }
func (s *sized) Size() int                { return s.size }
func (*sized) Read()                      {}
func (*sized) Stage(*journal.Batch) error { return nil }
func (*sized) Publish()                   {}

// busy returns a queue while a group is committed: the test has the turn.
func busy(t *testing.T) *Queue {
	t.Helper()
	q := NewQueue(nil, nil)
	_, turn, err := q.enter(&sized{size: 1})
	require.NoError(t, err)
	require.True(t, turn)
	require.NotNil(t, q.take())
	return q
}

// join queues a write, which must not get the turn at once.
func (q *Queue) join(t *testing.T, size int) *Ticket {
	t.Helper()
	joined, turn, err := q.enter(&sized{size: size})
	require.NoError(t, err)
	require.False(t, turn, "another goroutine has the turn")
	return joined
}

// hasTurn reports whether the group of a ticket was passed the turn, and takes it.
func hasTurn(t *Ticket) bool {
	select {
	case <-t.group.turn:
		return true
	default:
		return false
	}
}

func TestQueue_IsFreeAfterTheLastWriterWithTheTurnWithdraws(t *testing.T) {
	q := busy(t)
	last := q.join(t, 1)
	q.release()
	require.True(t, q.withdraw(last))
	require.Zero(t, q.Len())
	_, turn, err := q.enter(&sized{size: 1})
	require.NoError(t, err)
	require.True(t, turn, "no other goroutine has it")
}

func TestQueue_PassesTheTurnOnFromAGroupThatIsWithdrawn(t *testing.T) {
	q := busy(t)
	first, second, next := q.join(t, 1), q.join(t, 1), q.join(t, MaxBytes)
	q.release()
	require.True(t, q.withdraw(first))
	require.False(t, hasTurn(next), "the first group has a writer")
	require.True(t, q.withdraw(second))
	require.True(t, hasTurn(next))
	require.Same(t, next.group, q.take())
}

func TestQueue_LeavesTheTurnToAWriterThatJoined(t *testing.T) {
	q := busy(t)
	last := q.join(t, 1)
	q.release()
	joined := q.join(t, 1)
	require.True(t, q.withdraw(last))
	require.True(t, hasTurn(joined))
	require.Same(t, joined.group, q.take())
	require.Equal(t, []*Ticket{joined}, joined.group.tickets)
}

// The writer with the turn can withdraw before it commits.
func TestQueue_PassesTheTurnToAWriterThatJoinedTheOneThatWithdraws(t *testing.T) {
	q := NewQueue(nil, nil)
	leader, turn, err := q.enter(&sized{size: 1})
	require.NoError(t, err)
	require.True(t, turn)
	joined := q.join(t, 1)
	require.True(t, q.withdraw(leader))
	require.False(t, hasTurn(joined), "the leader still has it")
	q.release()
	require.True(t, hasTurn(joined))
}

// Close gets the turn of a group that is withdrawn.
func TestQueue_PassesTheTurnOfAWithdrawnGroupToClose(t *testing.T) {
	q := busy(t)
	last := q.join(t, 1)
	q.release()
	closer := q.close()
	require.True(t, q.withdraw(last))
	require.Len(t, closer, 1)
}

// A disk that hangs for long, with writers that give up and try again, costs no memory.
func TestQueue_ForgetsWritesThatAreWithdrawn(t *testing.T) {
	q := busy(t)
	waiting := q.join(t, MaxBytes)
	for range 10 * MaxWrites {
		next := q.join(t, MaxBytes)
		require.True(t, q.withdraw(waiting))
		waiting = next
	}
	require.Len(t, q.groups, 1)

	for range 10 * MaxWrites {
		require.True(t, q.withdraw(q.join(t, 1)))
	}
	require.Len(t, q.groups, 1)
	require.Same(t, waiting.group, q.groups[0])
	require.Equal(t, []*Ticket{waiting}, waiting.group.tickets)
}

// A group has room for as many bytes as it may have, also for those that a writer took back.
func TestQueue_FillsAGroupToItsLastByte(t *testing.T) {
	q := busy(t)
	first := q.join(t, MaxBytes/2)
	require.Same(t, first.group, q.join(t, MaxBytes/2).group)
	next := q.join(t, 1)
	require.NotSame(t, first.group, next.group)
	require.True(t, q.withdraw(next))

	second := q.join(t, MaxBytes/2)
	require.NotSame(t, first.group, second.group)
	left := q.join(t, MaxBytes/2)
	require.True(t, q.withdraw(left))
	require.Same(t, second.group, q.join(t, MaxBytes/2).group)
}

// A writer that gets the turn after Close has failed its write ends Close.
func TestQueue_EndsCloseIfThereIsNothingLeftToCommit(t *testing.T) {
	q := NewQueue(nil, nil)
	leader, turn, err := q.enter(&sized{size: 1})
	require.NoError(t, err)
	require.True(t, turn)
	ended := false
	require.ErrorIs(t, q.Close(0, func() { ended = true }), journal.ErrTimeout)
	require.ErrorIs(t, leader.err, journal.ErrClosed)
	require.False(t, ended, "it has the turn")
	require.False(t, q.lead(t.Context(), leader))
	require.True(t, ended)
	require.Zero(t, q.Len(), "it is usable")
}

// Close that gets the turn as its time ends fails what is queued, and ends: whichever it notices
// first.
func TestQueue_FailsWhatCloseHasNoTimeFor(t *testing.T) {
	for range 100 { // it notices one or the other at random
		q := NewQueue(nil, nil)
		left, _, err := q.enter(&sized{size: 1})
		require.NoError(t, err)
		q.taken = false // the writer has not taken the turn yet
		ended := false
		require.NoError(t, q.Close(0, func() { ended = true }))
		require.True(t, ended)
		require.ErrorIs(t, left.err, journal.ErrClosed)
		require.Zero(t, q.Len(), "it is usable")
	}
}

// stuck is a write, and its log, that hang until the channel is closed.
type stuck struct {
	sized
	until chan struct{}
}

func (s *stuck) Log() Log        { return s }
func (s *stuck) Prepare(func())  { <-s.until }
func (*stuck) Commit(pub func()) { pub() }
func (*stuck) Rollback()         {}

// Close does not wait for ever for what it commits itself, either.
func TestQueue_EndsCloseWhileAGroupThatItCommitsHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, write := NewQueue(nil, nil), &stuck{sized: sized{size: 1}, until: make(chan struct{})}
		hanging, _, err := q.enter(write)
		require.NoError(t, err)
		next := q.join(t, MaxBytes)
		q.taken = false // neither writer has taken the turn yet
		ended := false
		require.ErrorIs(t, q.Close(time.Second, func() { ended = true }), journal.ErrTimeout)
		require.ErrorIs(t, next.err, journal.ErrClosed)
		require.False(t, ended, "the commit goes on")
		close(write.until)
		synctest.Wait()
		require.NoError(t, hanging.err)
		require.True(t, ended)
	})
}

// overtaken is a context that ends while a write waits, after end.
type overtaken struct {
	context.Context
	end func()
}

func (o overtaken) Done() <-chan struct{} {
	o.end()
	done := make(chan struct{})
	close(done)
	return done
}

// A writer that gives up just when it gets the turn, after Close has failed its write, ends
// Close all the same.
func TestQueue_EndsCloseWhicheverAWriterNoticesFirst(t *testing.T) {
	for range 100 { // it notices one or the other at random
		q := busy(t)
		ended := false
		err := q.Do(overtaken{t.Context(), func() {
			q.release() // to the group of the writer
			require.ErrorIs(t, q.Close(0, func() { ended = true }), journal.ErrTimeout)
		}}, &sized{size: 1})
		require.ErrorIs(t, err, journal.ErrClosed)
		require.True(t, ended, "it has given the turn away")
	}
}

// A writer that finds the turn of a group which Close has taken waits for the outcome, whichever it
// notices first.
func TestQueue_TellsNoOutcomeBeforeCloseHasFailedTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 { // it notices one or the other at random
			q := busy(t)
			var taken *group
			told := make(chan error, 1)
			go func() {
				told <- q.Do(overtaken{t.Context(), func() {
					q.release() // to the group of the writer
					taken = q.take()
				}}, &sized{size: 1})
			}()
			synctest.Wait()
			require.Empty(t, told, "Close is about to fail it")
			taken.tickets[0].err = journal.ErrClosed
			close(taken.turn)
			require.ErrorIs(t, <-told, journal.ErrClosed)
		}
	})
}
