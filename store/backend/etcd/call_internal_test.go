package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
)

// callable returns a backend that has calls and nothing else.
func callable() *Backend {
	b := &Backend{config: Config{RequestTimeout: 10 * time.Second}}
	b.life, b.end = context.WithCancelCause(context.Background())
	b.calls = newCalls(b.endOverdue)
	return b
}

// The calls share a timer, and each is cancelled at its own time all the same.
func TestCall_EndsAtItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := callable()
		begun := time.Now()
		_, first, err := b.begin(context.Background())
		require.NoError(t, err)
		time.Sleep(4 * time.Second)
		second, call, err := b.begin(context.Background())
		require.NoError(t, err)
		third, another, err := b.begin(context.Background())
		require.NoError(t, err)
		first.end()
		another.end()
		require.Equal(t, context.Canceled, context.Cause(third))
		<-second.Done()
		require.Equal(t, 14*time.Second, time.Since(begun))
		require.Equal(t, errNoAnswer, context.Cause(second))
		call.end()

		time.Sleep(time.Hour)
		later, last, err := b.begin(context.Background())
		require.NoError(t, err)
		begun = time.Now()
		<-later.Done()
		require.Equal(t, 10*time.Second, time.Since(begun), "the timer is set again after it had nothing to do")
		last.end()
		require.Empty(t, b.calls.running, "a call that has ended costs no memory")
		require.NoError(t, b.Close())
	})
}

// Each of several calls ends at its own time, though the one before it has just ended.
func TestCall_EndsAtItsOwnTimeAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := callable()
		begun := time.Now()
		var calls []*call
		var ends []context.Context
		for range 5 {
			ctx, call, err := b.begin(context.Background())
			require.NoError(t, err)
			calls, ends = append(calls, call), append(ends, ctx)
			time.Sleep(time.Second)
		}
		for i, ctx := range ends {
			<-ctx.Done()
			require.Equal(t, time.Duration(10+i)*time.Second, time.Since(begun))
			calls[i].end()
		}
		require.NoError(t, b.Close())
	})
}

// A call whose caller has a deadline has no other, and a call ends with its caller.
func TestCall_EndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := callable()
		begun := time.Now()
		patient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		long, call, err := b.begin(patient)
		require.NoError(t, err)
		leaving, leave := context.WithCancelCause(t.Context())
		short, another, err := b.begin(leaving)
		require.NoError(t, err)
		gone := errors.New("gone")
		leave(gone)
		<-short.Done()
		require.Equal(t, gone, context.Cause(short))
		another.end()
		<-long.Done()
		require.Equal(t, time.Minute, time.Since(begun))
		require.Equal(t, context.DeadlineExceeded, context.Cause(long))
		call.end()
		_, _, err = b.begin(leaving)
		require.Equal(t, gone, err)
		require.NoError(t, b.Close())
	})
}

// Close cancels the calls, waits for them, and leaves no timer.
func TestCall_EndsWithTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := callable()
		ctx, call, err := b.begin(context.Background())
		require.NoError(t, err)
		closed := make(chan error)
		go func() { closed <- b.Close() }()
		<-ctx.Done()
		require.Equal(t, store.ErrClosed, context.Cause(ctx))
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close has not waited for the call")
		default:
		}
		b.endOverdue() // as if the timer had been ringing already
		require.False(t, b.calls.timer.Stop(), "it is not set")
		call.end()
		require.NoError(t, <-closed)
		_, _, err = b.begin(context.Background())
		require.Equal(t, store.ErrClosed, err)
	})
}
