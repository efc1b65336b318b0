package engine_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
)

// What ends an engine besides Close drops events, too, as those learn that drain it.
func TestDrain_IsCutShortByTheEndOfTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{})
		require.NoError(t, err)
		config := cfg()
		config.Host = host
		e, err := engine.New(config)
		require.NoError(t, err)
		_, err = e.Watch(t.Context(), engine.WatchOptions{Name: "unread"})
		require.NoError(t, err)
		_, err = e.Put(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		drained := make(chan error, 1)
		go func() { drained <- e.Drain(t.Context()) }()
		synctest.Wait()
		require.NoError(t, host.Close())
		want := []engine.Undelivered{{Name: "unread", Events: 1, Revision: 1}}
		var late *engine.UndeliveredError
		require.ErrorAs(t, <-drained, &late)
		require.Equal(t, &engine.UndeliveredError{Watches: want, Cause: engine.ErrEngineClosed}, late)
		require.Equal(t, want, e.Stats().Undelivered)
	})
}

// hasty is an executor that has run what the next turn leads to before Submit returns, once it is told to.
type hasty struct {
	*actors.Blocking
	next atomic.Bool
}

func (h *hasty) Submit(t actors.Task) {
	h.Blocking.Submit(t)
	if h.next.CompareAndSwap(true, false) {
		synctest.Wait()
	}
}

// The part that fails for the last time may be the one that ends the watches.
func TestDrain_IsCutShortByAnEngineThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The dispatcher looks for bookmarks that are due after a second, and up to a quarter of one.
		wire := &clocktest.Failing{Clock: engine.RealClock(), Counts: func(_ clocktest.Call, d time.Duration) bool {
			return d > time.Second && d < 5*time.Second/4
		}}
		executor := &hasty{Blocking: actors.NewBlocking()}
		host, err := engine.NewHost(engine.HostConfig{Clock: wire, Executor: executor})
		require.NoError(t, err)
		config := cfg()
		config.Host = host
		config.OnError = func(err error) { executor.next.Store(errors.Is(err, engine.ErrEngineClosed)) }
		e, err := engine.New(config)
		require.NoError(t, err)
		unread, err := e.Watch(t.Context(), engine.WatchOptions{Bookmarks: true})
		require.NoError(t, err)
		_, err = e.Put(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		synctest.Wait()
		wire.Fail(clocktest.AfterFunc, 0, 1<<20)
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, unread.Err(), engine.ErrEngineClosed)
		require.ErrorIs(t, e.Drain(t.Context()), engine.ErrUndelivered)
		require.NoError(t, host.Close())
	})
}
