package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
)

// slowSubmit is a Seeded executor that takes a second for each submission while slow.
type slowSubmit struct {
	*actors.Seeded
	slow atomic.Bool
}

func (s *slowSubmit) Submit(t actors.Task) {
	if s.slow.Load() {
		time.Sleep(time.Second) // of virtual time
	}
	s.Seeded.Submit(t)
}

// A context ends its watches on a goroutine of its own. Close of a deterministic run, which
// cannot wait for what other goroutines do next, lets it finish.
func TestClose_DeterministicRunWhoseWatchIsBeingEndedByItsContext(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		t.Run(fmt.Sprintf("NoCache=%v", noCache), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { closeWhileAContextEndsAWatch(t, noCache) })
		})
	}
}

func closeWhileAContextEndsAWatch(t *testing.T, noCache bool) {
	executor := &slowSubmit{Seeded: actors.NewSeeded(1)}
	host, err := engine.NewHost(engine.HostConfig{Executor: executor})
	require.NoError(t, err)
	config := cfg()
	config.Host, config.NoCache = host, noCache
	e, err := engine.New(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	executor.slow.Store(true)
	cancel()
	synctest.Wait() // it tells the dispatcher, which its executor does not know yet
	executor.slow.Store(false)
	require.NoError(t, e.Close())
	require.NoError(t, host.Close())
}
