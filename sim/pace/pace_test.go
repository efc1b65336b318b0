package pace_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/pace"
	"github.com/watchmill/watchmill/sim/scenario"
)

// With every shape, as many calls are due as the rate says.
func TestSchedule_KeepsTheRate(t *testing.T) {
	for _, shape := range []scenario.Shape{scenario.Steady, scenario.Poisson, scenario.Bursts} {
		s := pace.NewSchedule(shape, 1000, 50, 0.5, rand.New(rand.NewPCG(1, 2)))
		n, last := 0, time.Duration(0)
		for due := s.Due(); due < 10*time.Second; due = s.Due() {
			require.GreaterOrEqual(t, due, last)
			last = due
			n++
		}
		require.InDelta(t, 10_000, n, 300, "%s", shape)
	}
}

func TestSchedule_KnowsWhatIsLeft(t *testing.T) {
	for _, shape := range []scenario.Shape{scenario.Steady, scenario.Poisson, scenario.Bursts} {
		for _, taken := range []int{0, 7, 123, 10_100} {
			s := pace.NewSchedule(shape, 1000, 50, 0.5, rand.New(rand.NewPCG(1, 2)))
			for range taken {
				s.Due()
			}
			left, n := s.Left(10*time.Second), 0
			for s.Due() < 10*time.Second {
				n++
			}
			if shape == scenario.Poisson {
				require.InDelta(t, n, left, 300)
			} else {
				require.Equal(t, uint64(n), left, "%s after %d", shape, taken)
			}
		}
	}
}

// A rate that is very low means few calls, not all of them at once.
func TestSchedule_OfALowRateDoesNotOverflow(t *testing.T) {
	for _, shape := range []scenario.Shape{scenario.Steady, scenario.Poisson, scenario.Bursts} {
		for _, rate := range []float64{1e-9, 1e-10, 1e-300, math.SmallestNonzeroFloat64} {
			s := pace.NewSchedule(shape, rate, 2, 0, rand.New(rand.NewPCG(1, 2)))
			last := time.Duration(0)
			for n := range 6 {
				due := s.Due()
				require.GreaterOrEqual(t, due, last, "%s at %g", shape, rate)
				if n >= 2 {
					require.Greater(t, due, 24*time.Hour, "%s at %g", shape, rate)
				}
				last = due
			}
			require.Zero(t, s.Left(24*time.Hour))
		}
	}
}

func TestSchedule_BurstsComeAtOnce(t *testing.T) {
	s := pace.NewSchedule(scenario.Bursts, 100, 10, 0, nil)
	for range 10 {
		require.Zero(t, s.Due())
	}
	require.Equal(t, 100*time.Millisecond, s.Due())
}

// Different parts keep several callers from calling in step.
func TestSchedule_BeginsAfterItsPart(t *testing.T) {
	for shape, want := range map[scenario.Shape]time.Duration{
		scenario.Steady: 2500 * time.Microsecond, scenario.Poisson: 2500 * time.Microsecond, scenario.Bursts: 10 * time.Millisecond,
	} {
		s := pace.NewSchedule(shape, 100, 4, 0.25, rand.New(rand.NewPCG(1, 2)))
		require.Equal(t, want, s.Due(), "%s", shape)
	}
	alone := pace.NewSchedule(scenario.Bursts, 100, 0, 0, nil)
	require.Equal(t, []time.Duration{0, 10 * time.Millisecond}, []time.Duration{alone.Due(), alone.Due()}, "a burst has a call at least")
}

func TestSchedule_HasNothingLeftAtItsEnd(t *testing.T) {
	for _, shape := range []scenario.Shape{scenario.Steady, scenario.Poisson, scenario.Bursts} {
		s := pace.NewSchedule(shape, 1, 1, 0, nil)
		require.EqualValues(t, []uint64{0, 1, 1, 2}, []uint64{s.Left(0), s.Left(1), s.Left(time.Second), s.Left(time.Second + 1)}, "%s", shape)
	}
	begun := pace.NewSchedule(scenario.Bursts, 1, 4, 0, nil)
	require.Zero(t, begun.Due())
	require.Zero(t, begun.Left(0))
	require.EqualValues(t, 3, begun.Left(1))
}

func TestSchedule_DependsOnTheSeedAlone(t *testing.T) {
	draw := func(seed uint64) (all []time.Duration) {
		s := pace.NewSchedule(scenario.Poisson, 1000, 0, 0, rand.New(rand.NewPCG(seed, 0)))
		for range 100 {
			all = append(all, s.Due())
		}
		return all
	}
	require.Equal(t, draw(1), draw(1))
	require.NotEqual(t, draw(1), draw(2))
}

func TestConsumer_KeepsItsRateIfSlow(t *testing.T) {
	for _, atOnce := range []int{1, 7, 5000} {
		synctest.Test(t, func(t *testing.T) {
			slow := pace.NewConsumer(scenario.Consume{Rate: 1000}, 0)
			start := time.Now()
			for taken := 0; taken < 5000; taken += atOnce {
				require.NoError(t, slow.Wait(t.Context(), atOnce))
			}
			require.InDelta(t, 5, time.Since(start).Seconds(), 0.01, "%d at once", atOnce)
		})
	}
}

// After an idle time a consumer takes what it takes in 100 ms at once, or one event.
func TestConsumer_SavesLittleOfItsRate(t *testing.T) {
	for rate, want := range map[float64]time.Duration{1000: 50 * time.Millisecond, 5: 149 * 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			slow := pace.NewConsumer(scenario.Consume{Rate: rate}, 0)
			time.Sleep(10 * time.Second)
			start := time.Now()
			require.NoError(t, slow.Wait(t.Context(), 150))
			require.InDelta(t, want.Seconds(), time.Since(start).Seconds(), 0.001, "%v", rate)
		})
	}
}

func TestConsumer_PausesNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := pace.NewConsumer(scenario.Consume{Every: time.Second, Pause: 300 * time.Millisecond}, 0.5)
		start := time.Now()
		wait := func() time.Duration {
			require.NoError(t, slow.Wait(t.Context(), 1))
			return time.Since(start)
		}
		require.Zero(t, wait(), "the first pause is due after half a second")
		time.Sleep(400 * time.Millisecond)
		require.Equal(t, 400*time.Millisecond, wait())
		time.Sleep(200 * time.Millisecond)
		require.Equal(t, 900*time.Millisecond, wait())
		require.Equal(t, 900*time.Millisecond, wait())
		time.Sleep(1100 * time.Millisecond)
		require.Equal(t, 2300*time.Millisecond, wait())
	})
}

func TestConsumer_NeedsNoPaceAtFullSpeed(t *testing.T) {
	require.Nil(t, pace.NewConsumer(scenario.Consume{}, 0.5))
}

func TestWait_EndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		for _, c := range []scenario.Consume{{Rate: 1}, {Every: time.Second, Pause: time.Hour}} {
			slow := pace.NewConsumer(c, 0)
			time.Sleep(time.Millisecond) // the pause is due
			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(100*time.Millisecond, func() { stop(enough) })
			start := time.Now()
			require.ErrorIs(t, slow.Wait(ctx, 3600), enough)
			require.Equal(t, 100*time.Millisecond, time.Since(start))
			require.ErrorIs(t, pace.Sleep(ctx, 0), enough)
		}
		require.NoError(t, pace.Sleep(t.Context(), -time.Second))
	})
}
