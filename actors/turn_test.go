package actors_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
)

func TestInTurn_IsOfTheGoroutineThatRunsTheTurn(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	require.False(t, actors.InTurn())
	var deep func(n int) bool
	deep = func(n int) bool {
		if n == 0 {
			return actors.InTurn()
		}
		return deep(n - 1)
	}
	for _, executor := range []actors.Executor{sys.Pool(), sys.Blocking()} {
		found := make(chan bool, 3)
		ref := spawnProbe(sys, &probe{journal: new(journal), name: "p"}, actors.Options{Executor: executor})
		ref.Tell(run("look", func(*actors.Context) {
			found <- actors.InTurn()
			found <- deep(1000)
			apart := make(chan bool)
			go func() { apart <- actors.InTurn() }()
			found <- <-apart
		}))
		require.Equal(t, [3]bool{true, true, false}, [3]bool{<-found, <-found, <-found})
	}
}

func TestClose_InATurnGoesOnInTheBackground(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	failed := make(chan error, 1)
	ref := spawnProbe(sys, &probe{journal: new(journal), name: "closer"}, actors.Options{})
	ref.Tell(run("close", func(*actors.Context) { failed <- sys.Close(context.Background()) }))
	err := <-failed
	require.ErrorIs(t, err, actors.ErrStillRunning)
	require.ErrorIs(t, err, actors.ErrInTurn)
	var still *actors.StillRunningError
	require.ErrorAs(t, err, &still)
	require.Contains(t, still.Busy, "closer")
	require.NoError(t, sys.Close(context.Background()))
}

// Two actors of the same name are two.
func TestStillRunning_IsOfTheActorAlone(t *testing.T) {
	sys := newSystem(t, actors.SystemConfig{})
	release := make(chan struct{})
	block := func() *actors.Ref[do] {
		entered := make(chan struct{})
		ref := spawnProbe(sys, &probe{journal: new(journal), name: "same"}, actors.Options{Executor: sys.Blocking()})
		ref.Tell(run("block", func(*actors.Context) { close(entered); <-release }))
		<-entered
		return ref
	}
	one := block()
	block()
	var still *actors.StillRunningError
	require.ErrorAs(t, one.StillRunning(context.Canceled), &still)
	require.Equal(t, []string{"same"}, still.Busy)
	require.Empty(t, still.Waiting)
	close(release)
}
