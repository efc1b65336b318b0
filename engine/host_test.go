package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

// In a deterministic run nothing is left to chance: what is there is received, though
// the context is done.
func TestHost_AwaitReceivesWhatIsThereThoughItsContextIsDone(t *testing.T) {
	host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ready := make(chan struct{})
	require.ErrorIs(t, host.Await(ctx, ready), context.Canceled)
	close(ready)
	for range 100 {
		require.NoError(t, host.Await(ctx, ready))
	}
}
