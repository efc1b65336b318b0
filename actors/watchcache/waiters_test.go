package watchcache

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
)

func (w *waiters) wait(rev store.Revision, after time.Duration) <-chan error {
	reply := make(chan error, 1)
	w.add(waiter{revision: rev, until: began.Add(after), reply: reply})
	return reply
}

func TestWaiters_AreAnsweredWhenTheirRevisionComes(t *testing.T) {
	var w waiters
	late, early, same := w.wait(9, time.Second), w.wait(3, time.Second), w.wait(3, time.Minute)
	w.reached(2)
	require.Empty(t, early)
	w.reached(3)
	require.NoError(t, <-early)
	require.NoError(t, <-same)
	require.Empty(t, late)
	w.reached(100)
	require.NoError(t, <-late)
}

func TestWaiters_GiveUpWhenTheirTimeIsUp(t *testing.T) {
	var w waiters
	patient, hasty := w.wait(9, time.Minute), w.wait(9, time.Second)
	at, ok := w.next()
	require.True(t, ok)
	require.Equal(t, began.Add(time.Second), at)

	tooLate := func(rev store.Revision) error { return &store.FutureError{Requested: rev, Current: 5} }
	w.due(began.Add(time.Second), tooLate)
	require.EqualError(t, <-hasty, "too large revision: 9, current: 5: retry, or ask for one that storage has returned")
	require.Empty(t, patient)
	at, _ = w.next()
	require.Equal(t, began.Add(time.Minute), at)
}

func TestWaiters_AreAnsweredAtTheEnd(t *testing.T) {
	var w waiters
	reply := w.wait(9, time.Minute)
	w.all(ErrStopped)
	require.ErrorIs(t, <-reply, ErrStopped)
	_, ok := w.next()
	require.False(t, ok)
}

// Each waiter is answered once, for the right reason.
func TestWaiters_AnswerEachOnce(t *testing.T) {
	errLate := errors.New("late")
	rapid.Check(t, func(t *rapid.T) {
		var w waiters
		type waiting struct {
			rev   store.Revision
			until time.Duration
			reply <-chan error
			done  chan struct{}
		}
		var all []waiting
		reached, now := store.Revision(0), time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				for range rapid.IntRange(1, 9).Draw(t, "calls") {
					rev := reached + 1 + store.Revision(rapid.IntRange(0, 9).Draw(t, "rev"))
					until := now + time.Duration(rapid.IntRange(1, 9).Draw(t, "until"))
					reply, done := make(chan error, 1), make(chan struct{})
					w.add(waiter{revision: rev, until: began.Add(until), done: done, reply: reply})
					all = append(all, waiting{rev, until, reply, done})
				}
			case 1:
				reached += store.Revision(rapid.IntRange(0, 4).Draw(t, "reach"))
				w.reached(reached)
			case 2:
				now += time.Duration(rapid.IntRange(0, 4).Draw(t, "pass"))
				w.due(began.Add(now), func(store.Revision) error { return errLate })
			case 3: // some callers return
				all = slices.DeleteFunc(all, func(x waiting) bool {
					gone := rapid.Bool().Draw(t, "gone")
					if gone {
						close(x.done)
					}
					return gone
				})
			}
			open := all[:0:0]
			for _, x := range all {
				select {
				case err := <-x.reply:
					require.Equal(t, err == nil, x.rev <= reached)
					require.Equal(t, err != nil, x.until <= now && x.rev > reached)
				default:
					require.True(t, x.rev > reached && x.until > now, "revision %d until %d was forgotten", x.rev, x.until)
					open = append(open, x)
				}
			}
			all = open
		}
	})
}

// Callers that give up long before they would time out leave nothing behind that grows.
func TestWaiters_ForgetCallersThatHaveReturned(t *testing.T) {
	var w waiters
	stays, gone := make(chan error, 1), make(chan struct{})
	close(gone)
	w.add(waiter{revision: 7, done: make(chan struct{}), reply: stays})
	for n := range store.Revision(10_000) {
		w.add(waiter{revision: n, done: gone, reply: make(chan error, 1)})
	}
	require.Less(t, len(w), 100)
	require.Less(t, cap(w), 100)
	w.reached(7)
	require.NoError(t, <-stays)
}
