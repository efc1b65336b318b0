package explore

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/world"
	"github.com/watchmill/watchmill/sim/judge"
)

// seeds returns cfg with n seeds to explore, the first being from.
func seeds(cfg Config[world.Thing], from uint64, n int) Config[world.Thing] {
	cfg.From, cfg.Seeds = from, n
	return cfg
}

func TestRun_SeedsHold(t *testing.T) {
	report, err := Run(t.Context(), seeds(Things(), 0, 100))
	require.NoError(t, err)
	require.Nil(t, report.Finding)
	require.Equal(t, 100, report.Seeds)
	require.Greater(t, report.Messages(), uint64(10_000))
}

// A seed has the same hash however it is run.
func TestRun_ASeedIsOneExecution(t *testing.T) {
	hash := func(workers, n int) string {
		cfg := seeds(Things(), 42, n)
		cfg.Workers = workers
		r, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		return r.Hash
	}
	one, ten := hash(1, 1), hash(1, 10)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2} {
		runtime.GOMAXPROCS(procs)
		require.Equal(t, one, hash(1, 1))
		require.Equal(t, ten, hash(3, 10), "in any order")
	}
	require.NotEqual(t, one, ten)
}

// A type may have few values. A write of an equal one changes nothing, and so does not conflict with another.
func TestRun_ValuesMayRepeat(t *testing.T) {
	cfg := seeds(Things(), 0, 60)
	cfg.Draw = func(r *rand.Rand) world.Thing {
		return world.Thing{Key: []string{"a/1", "a/2"}[r.IntN(2)], App: "web", Node: "n1", N: uint32(r.IntN(2))}
	}
	report, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Nil(t, report.Finding)
}

// counter counts the existing objects by the events of a watch.
type counter struct{ objects, wrong int }

func (c *counter) handle(ev engine.Event[world.Thing]) {
	switch ev.Type {
	case engine.Added:
		c.objects++
	case engine.Deleted:
		c.objects -= 1 + c.wrong
	}
}

// withCounter attaches a counter, as a user's handler that is judged by an invariant of the
// user's.
func withCounter(wrong int) Config[world.Thing] {
	cfg := Things()
	cfg.Attach = func(w *world.World[world.Thing]) error {
		c := &counter{wrong: wrong}
		_, err := w.Handle(engine.WatchOptions{InitialState: true, Policy: engine.Conflate}, c.handle)
		w.Always("never negative", func() error {
			if c.objects < 0 {
				return errors.New("less than nothing is there")
			}
			return nil
		})
		return err
	}
	return cfg
}

func TestAttach_AUsersInvariantIsCheckedInEveryInterleaving(t *testing.T) {
	r, err := Run(t.Context(), seeds(withCounter(0), 0, 30))
	require.NoError(t, err)
	require.Nil(t, r.Finding)
	r, err = Run(t.Context(), seeds(withCounter(3), 0, 30))
	require.NoError(t, err)
	require.NotNil(t, r.Finding)
	require.Equal(t, judge.Invariant("never negative"), r.Finding.Invariant)
	require.Less(t, len(r.Finding.Steps), 10)
}

// A handler may call the engine and wait for it, and may write.
func TestHandle_MayWaitForTheEngine(t *testing.T) {
	cfg := Things()
	calls := 0
	cfg.Attach = func(w *world.World[world.Thing]) error {
		_, err := w.Handle(engine.WatchOptions{Policy: engine.Conflate, Labels: "app=web"}, func(ev engine.Event[world.Thing]) {
			l, err := w.Engine().List(context.Background(), engine.ListOptions{Labels: "app=web"})
			if err != nil || l.Revision < ev.Revision {
				return
			}
			if _, err := w.Engine().Put(context.Background(), world.Thing{Key: "seen", App: "none", N: uint32(ev.Revision)}); err == nil {
				calls++
			}
		})
		return err
	}
	cfg.Workers = 1
	r, err := Run(t.Context(), seeds(cfg, 0, 20))
	require.NoError(t, err)
	require.Nil(t, r.Finding)
	require.Positive(t, calls)
}

func TestHandle_APanicIsFound(t *testing.T) {
	cfg := Things()
	cfg.Attach = func(w *world.World[world.Thing]) error {
		_, err := w.Handle(engine.WatchOptions{Policy: engine.Conflate}, func(ev engine.Event[world.Thing]) {
			if ev.Type == engine.Deleted {
				panic("no deletes, please")
			}
		})
		return err
	}
	r, err := Run(t.Context(), seeds(cfg, 0, 20))
	require.NoError(t, err)
	require.NotNil(t, r.Finding)
	require.Equal(t, world.HandlerPanics, r.Finding.Invariant)
	require.Contains(t, r.Finding.ShortProblem, "no deletes, please")
}

// A panic in a step is a finding, and does not end the exploration.
func TestRun_APanicOutsideOfHandlersIsContained(t *testing.T) {
	cfg := Things()
	cfg.Attach = func(w *world.World[world.Thing]) error {
		w.Always("panics", func() error { panic("in a check") })
		return nil
	}
	first, err := Run(t.Context(), seeds(cfg, 0, 1))
	require.NoError(t, err)
	f := first.Finding
	require.Equal(t, world.Contained, f.Invariant)
	require.Equal(t, "contained: in a check", f.Problem)
	require.Equal(t, "BROKEN: contained: in a check", f.Trace[len(f.Trace)-1])
	require.Contains(t, f.Stack, "explore_test.go")
	require.Contains(t, f.String(), f.Stack[:20])
	again, err := Run(t.Context(), seeds(cfg, 0, 1))
	require.NoError(t, err)
	f.Stack, again.Finding.Stack = "", ""
	require.Equal(t, f, again.Finding, "all but the stack is the same each time")
}

func TestAttach_AFailureEndsTheExploration(t *testing.T) {
	cfg, failed := Things(), errors.New("not today")
	cfg.Attach = func(*world.World[world.Thing]) error { return failed }
	_, err := Run(t.Context(), seeds(cfg, 0, 3))
	require.ErrorIs(t, err, failed)
}

func TestRun_InterruptedReportsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := seeds(Things(), 0, 1_000_000)
	cfg.OnProgress = func(p Progress) {
		if p.Done == 5 {
			cancel()
		}
	}
	r, err := Run(ctx, cfg)
	require.NoError(t, err)
	require.True(t, r.Interrupted)
	require.GreaterOrEqual(t, r.Seeds, 5)
	require.Less(t, r.Seeds, 1000)
}

func TestRun_EndsAfterItsTime(t *testing.T) {
	cfg := Things()
	cfg.For = time.Nanosecond
	r, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.False(t, r.Interrupted)
	require.Equal(t, 1, r.Seeds, "at least one")
}

// A context that ends when everything has been explored has interrupted nothing.
func TestRun_IsInterruptedOnlyIfSeedsAreLeft(t *testing.T) {
	for endsAt, want := range map[int]bool{2: true, 3: false} {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := seeds(Things(), 0, 3)
		cfg.Workers = 1
		cfg.OnProgress = func(p Progress) {
			if p.Done == endsAt {
				cancel()
			}
		}
		r, err := Run(ctx, cfg)
		require.NoError(t, err)
		require.Equal(t, endsAt, r.Seeds)
		require.Equal(t, want, r.Interrupted)
	}
}
