package ownhost_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/ownhost"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hanging is an actor whose turn ends when it is released.
type hanging struct{ entered, released chan struct{} }

func (h hanging) Receive(*actors.Context, struct{}) {
	close(h.entered)
	<-h.released
}

// idle is an actor that does nothing.
type idle struct{}

func (idle) Receive(*actors.Context, struct{}) {}

// spawnIdle reports whether the host takes another actor.
func spawnIdle(h *engine.Host) bool {
	return actors.Spawn(engine.SystemOf(h), "idle", func() actors.Behavior[struct{}] { return idle{} }, actors.Options{}).Tell(struct{}{})
}

func stopped(h *engine.Host) bool {
	select {
	case <-engine.SystemOf(h).Stopped():
		return true
	default:
		return false
	}
}

func TestHost_ThatWasGivenStaysOpen(t *testing.T) {
	given, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	host, own, err := ownhost.Of(given)
	require.NoError(t, err)
	require.Same(t, given, host)
	require.Nil(t, own)
	ended := make(chan struct{})
	close(ended)
	own.CloseAfter(ended)
	require.NoError(t, own.Close())
	require.False(t, stopped(host))
	require.NoError(t, given.Close())
}

func TestHost_OfItsOwnIsClosed(t *testing.T) {
	host, own, err := ownhost.Of(nil)
	require.NoError(t, err)
	require.False(t, stopped(host))
	require.NoError(t, own.Close())
	require.True(t, stopped(host))
	require.NoError(t, own.Close())
}

// A host whose actor hangs for longer than the host's CloseTimeout closes once that has ended.
func TestHost_ClosesAfterTheLastOfItsActors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, own, err := ownhost.Of(nil)
		require.NoError(t, err)
		h := hanging{make(chan struct{}), make(chan struct{})}
		actor := actors.Spawn(engine.SystemOf(host), "hanging", func() actors.Behavior[struct{}] { return h }, actors.Options{})
		require.True(t, actor.Tell(struct{}{}))
		<-h.entered
		ended := make(chan struct{})
		own.CloseAfter(ended)
		own.CloseAfter(ended)
		synctest.Wait()
		require.True(t, spawnIdle(host), "the host is still open")
		close(ended)
		synctest.Wait()
		require.False(t, spawnIdle(host))
		var failed *engine.CloseError
		require.ErrorAs(t, own.Close(), &failed)
		require.False(t, stopped(host))
		close(h.released)
		synctest.Wait()
		require.True(t, stopped(host))
	})
}
