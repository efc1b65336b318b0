package reflector_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// failures are n times the same error.
func failures(n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = errReset
	}
	return errs
}

func TestBackoff_OfRefusedConnectionsIsExponential(t *testing.T) {
	r := newFixture(t)
	r.source.fail("list", failures(8)...)
	r.start(r.config())
	var delays []time.Duration
	for range 8 {
		next, ok := r.clock.Next()
		require.True(t, ok)
		delays = append(delays, next.Sub(r.clock.Now()))
		r.pass(next.Sub(r.clock.Now()))
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 30000 * ms, 30000 * ms}, delays)
	require.Equal(t, []string{"Unavailable: connection reset", "Replace Started@0"}, r.mirror.told())
	require.Len(t, r.errs, 8)
}

func TestBackoff_CustomOneIsHonoured(t *testing.T) {
	r := newFixture(t)
	r.source.fail("list", failures(4)...)
	cfg := r.config()
	cfg.Backoff = reflector.Backoff{Initial: time.Second, Max: 5 * time.Second, Factor: 3, Jitter: reflector.NoJitter}
	r.start(cfg)
	for _, want := range []time.Duration{1, 3, 5, 5} {
		require.Equal(t, want*time.Second, r.ref.Stats().Delay)
		r.pass(want*time.Second - 1)
		lists := r.count("list")
		r.pass(1)
		require.Equal(t, lists+1, r.count("list"))
	}
}

func TestBackoff_ReconnectsAreJittered(t *testing.T) {
	delays := map[time.Duration]bool{}
	for seed := range uint64(20) {
		r := newFixture(t)
		r.start(r.configJittered(seed))
		r.source.disturb(errReset)
		r.settle()
		delay := r.ref.Stats().Delay
		require.GreaterOrEqual(t, delay, reflector.DefaultInitial)
		require.Less(t, delay, 2*reflector.DefaultInitial)
		delays[delay] = true
	}
	require.Len(t, delays, 20, "no two reconnect at the same time")
}

func (r *fixture) configJittered(seed uint64) reflector.Config {
	cfg := r.config()
	cfg.Backoff.Jitter, cfg.Rand = 0, rand.New(rand.NewPCG(seed, 0))
	return cfg
}

func TestBackoff_NoRelistOnTooManyRequests(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.source.fail("watch", failures(4)...)
	r.start(r.config())
	r.pass(time.Minute)
	require.Equal(t, 1, r.count("list"))
	require.Equal(t, 5, r.count("watch"))
	r.synced()
}

func TestBackoff_InternalErrorsInTheStreamAreRetried(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.start(r.config())
	for i := range 3 {
		r.source.fail("next", errReset)
		r.source.put("a", fmt.Sprint(i))
		r.pass(seconds)
	}
	require.Equal(t, 1, r.count("list"))
	r.synced()
	require.Len(t, r.errs, 3, "errors in the stream are reported too")
}

func TestWatch_CleanCloseIsNoHotLoop(t *testing.T) {
	closed := slices.Repeat([]error{store.ErrClosed}, 600)
	for name, disturb := range map[string]func(r *fixture){
		"before it is read": func(r *fixture) { r.source.fail("next", closed...); r.start(r.config()); r.pass(10 * time.Minute) },
		"later": func(r *fixture) {
			r.start(r.config())
			for range closed { // as often as it opens
				r.source.disturb(store.ErrClosed)
				r.pass(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			disturb(r)
			require.LessOrEqual(t, r.count("watch")+r.count("list"), 30)
			require.Positive(t, r.ref.Stats().Relists[reflector.Stuck], "and if resuming gets it nowhere, it lists")
			for _, told := range r.mirror.told() {
				require.NotContains(t, told, "Unavailable")
			}
		})
	}
}

func TestBackoff_StartsAnewAfterAHealthyWatch(t *testing.T) {
	r := newFixture(t)
	r.source.fail("list", failures(5)...)
	r.start(r.config())
	r.pass(time.Minute)
	require.Equal(t, 5, r.ref.Stats().Attempts)
	r.pass(reflector.DefaultHealthyAfter)
	r.source.disturb(errReset)
	r.settle()
	require.Equal(t, reflector.DefaultInitial, r.ref.Stats().Delay)
}

// kubernetes/kubernetes#136824, with a source that alternates: lists work and
// watches open, but never for long. Its delays must not start over.
func TestBackoff_DoesNotResetDuringContinuousFailure(t *testing.T) {
	r := newFixture(t)
	r.start(r.config())
	last := time.Duration(0)
	for range 40 {
		r.source.put("a", "v") // it even delivers
		r.pass(time.Second)
		r.source.disturb(errReset)
		r.settle()
		delay := r.ref.Stats().Delay
		require.GreaterOrEqual(t, delay, last)
		last = delay
		r.pass(delay)
	}
	require.Equal(t, reflector.DefaultMax, last)
}

// A clock that is set back must not make a watch look healthy, nor lose a retry.
func TestBackoff_GoesOnWhenTheClockIsSetBack(t *testing.T) {
	r := newFixture(t)
	r.source.fail("list", failures(3)...)
	r.start(r.config())
	r.pass(seconds)
	r.clock.Jump(-time.Hour)
	r.source.disturb(errReset)
	r.settle()
	require.Equal(t, 6400*time.Millisecond, r.ref.Stats().Delay)
	r.pass(seconds)
	r.synced()
}

func TestErrors_FinalOnesEndTheReflector(t *testing.T) {
	for name, broken := range map[string]struct {
		on  string
		err error
	}{
		"list unsupported": {"list", store.ErrUnsupported},
		"storage closed":   {"list", fmt.Errorf("memory: %w", store.ErrClosed)},
		"watch refused":    {"watch", &store.KeyError{Key: "x", Reason: "not mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.source.fail(broken.on, broken.err)
			r.start(r.config())
			require.False(t, r.ref.Alive())
			last := r.mirror.updates[len(r.mirror.updates)-1]
			require.True(t, last.Final)
			require.Equal(t, broken.err, last.Err)
			calls := len(r.source.asked())
			r.pass(time.Hour)
			require.Len(t, r.source.asked(), calls)
		})
	}
}

func TestErrors_PermanentOnesAreTheCallersToDecide(t *testing.T) {
	missing := errors.New("no such type")
	r := newFixture(t)
	r.source.fail("list", store.ErrClosed, missing)
	cfg := r.config()
	cfg.Permanent = func(err error) bool { return errors.Is(err, missing) }
	r.start(cfg)
	require.True(t, r.ref.Alive())
	r.pass(seconds)
	require.False(t, r.ref.Alive())

	r = newFixture(t)
	r.source.fail("list", missing)
	cfg = r.config()
	cfg.Permanent = func(error) bool { panic("no idea") }
	r.start(cfg)
	require.True(t, r.ref.Alive(), "a panic counts as false")
}

// What a source panics with says no more of the storage than that the source is broken.
func TestPanics_AreNotPermanentWhateverTheirValue(t *testing.T) {
	for _, value := range []error{store.ErrClosed, store.ErrUnsupported, store.ErrInvalidKey} {
		for _, what := range []string{"list", "watch"} {
			r := newFixture(t)
			r.source.faults[what] = append(r.source.faults[what], func() error { panic(value) })
			r.start(r.config())
			r.pass(seconds)
			require.True(t, r.ref.Alive(), "%s: %v", what, value)
			require.Equal(t, reflector.Watching, r.ref.Stats().Phase, "%s: %v", what, value)
		}
	}
}

func TestPanics_InTheSourceAreErrors(t *testing.T) {
	for _, what := range []string{"list", "watch", "next"} {
		t.Run(what, func(t *testing.T) {
			r := newFixture(t)
			r.source.put("a", "1")
			r.source.explode(what)
			r.start(r.config())
			require.Len(t, r.errs, 1)
			require.ErrorIs(t, r.errs[0], usercode.ErrPanic)
			r.pass(seconds)
			r.synced()
			require.Zero(t, r.ref.Stats().Restarts)
		})
	}
}

func TestPanics_InCloseAreReported(t *testing.T) {
	r := newFixture(t)
	r.start(r.config())
	r.source.explode("close")
	r.source.disturb(errReset)
	r.settle()
	require.Len(t, r.errs, 2)
	require.ErrorIs(t, r.errs[0], usercode.ErrPanic)
	require.Equal(t, uint64(2), r.ref.Stats().Errors)
}

func TestPanics_InOnErrorGoNoFurther(t *testing.T) {
	r := newFixture(t)
	r.source.fail("list", errReset)
	cfg := r.config()
	cfg.OnError = func(error) { panic("in OnError") }
	r.start(cfg)
	r.pass(seconds)
	r.synced()
	require.Zero(t, r.ref.Stats().Restarts)
}

// halfOpen is a source whose first Watch returns both a watch and an error.
type halfOpen struct {
	*source
	err error
}

func (s *halfOpen) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	w, err := s.source.Watch(ctx, opts)
	err, s.err = cmp.Or(err, s.err), nil
	return w, err
}

func TestErrors_WatchThatComesWithOneIsClosed(t *testing.T) {
	r := newFixture(t)
	cfg, half := r.config(), errors.New("half open")
	cfg.Source = &halfOpen{r.source, half}
	r.start(cfg)
	require.Zero(t, r.source.open())
	require.Equal(t, []error{half}, r.errs)
	r.source.put("a", "1")
	r.pass(time.Second)
	r.synced()
	require.Equal(t, 1, r.source.open())
}

func TestErrors_NeitherResultNorErrorIsOne(t *testing.T) {
	r := newFixture(t)
	cfg := r.config()
	cfg.Source = empty{r.source}
	r.start(cfg)
	require.ErrorIs(t, r.ref.Stats().LastError, reflector.ErrContract)
	require.True(t, r.ref.Alive())
}

// The newest revision is read again when the watch of a warm start is open. No answer to
// that does not say that the source still is where it was.
func TestErrors_NoPageForTheSecondLookOfAWarmStartIsOne(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.source.put("a", "2")
	cfg := r.config()
	cfg.WarmStart, cfg.Source = true, &forgetful{source: r.source}
	r.start(cfg)
	require.ErrorIs(t, r.ref.Stats().LastError, reflector.ErrContract)
	require.Zero(t, r.source.open(), "the watch is closed")
	r.pass(seconds)
	r.synced()
}

func TestPanics_InTheSinkRestartAndList(t *testing.T) {
	r := newFixture(t)
	r.source.put("a", "1")
	r.start(r.config())
	r.mirror.panics = 1
	r.source.put("b", "1")
	r.settle()
	require.Zero(t, r.source.open(), "the watch of the failed one is closed")
	r.source.put("c", "1")
	r.pass(seconds)
	r.synced()
	require.Equal(t, []string{"Replace Started@1", "Replace Restarted@3"}, r.mirror.told())
	stats := r.ref.Stats()
	require.Equal(t, uint64(1), stats.Restarts)
	require.Equal(t, uint64(2), stats.Lists, "numbers go on")
}

func TestPanics_OfTheSinkAreNoHotLoop(t *testing.T) {
	r := newFixture(t)
	r.mirror.panics = 1 << 30
	r.start(r.config())
	r.pass(10 * time.Minute)
	require.LessOrEqual(t, r.count("list"), 30)
	require.Positive(t, r.ref.Stats().Restarts)
}

func TestStop_EndsEverythingAtOnce(t *testing.T) {
	for name, prepare := range map[string]func(*fixture){
		"watching":  func(*fixture) {},
		"waiting":   func(r *fixture) { r.source.disturb(errReset) },
		"full":      func(r *fixture) { r.mirror.answer(actors.Full); r.source.put("a", "1") },
		"notified":  func(r *fixture) { r.exec.Run(); r.source.put("a", "1"); r.ref.Stop() },
		"relisting": func(r *fixture) { r.ref.Relist(reflector.Requested) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.start(r.config())
			prepare(r)
			if name != "notified" {
				r.settle()
			}
			calls, offers, errs := len(r.source.asked()), r.mirror.offers, len(r.errs)
			r.ref.Stop()
			r.ref.Stop()
			r.settle()
			require.Equal(t, 1, r.system.Actors(), "only the parent is left")
			require.Zero(t, r.system.Timers(), "timers are cancelled, not waited for")
			require.Zero(t, r.source.open())
			r.source.put("late", "v")
			r.ref.Room()
			r.ref.Relist(reflector.Requested)
			r.pass(time.Hour)
			require.Len(t, r.source.asked(), calls)
			require.Equal(t, offers, r.mirror.offers)
			require.Len(t, r.errs, errs, "stopping is not a failure")
			require.Equal(t, reflector.Ended, r.ref.Stats().Phase)
		})
	}
}

func TestStop_BeforeItBegan(t *testing.T) {
	r := newFixture(t)
	r.parent.Tell(func(ctx *actors.Context) {
		ref, err := reflector.Spawn(ctx, r.config())
		require.NoError(t, err)
		ref.Stop()
	})
	r.settle()
	require.Empty(t, r.source.asked())
	require.Equal(t, 1, r.system.Actors())
}

// empty answers with nothing.
type empty struct{ *source }

func (empty) List(context.Context, backend.ListOptions) (*backend.List, error) {
	return nil, nil
}

// forgetful lists a past state, and answers the second question for the newest revision
// with nothing.
type forgetful struct {
	*source
	looks int
}

func (f *forgetful) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if opts.Revision > 0 {
		return &backend.List{Revision: opts.Revision}, nil
	}
	if opts.Limit == 1 {
		if f.looks++; f.looks == 2 {
			return nil, nil
		}
	}
	return f.source.List(ctx, opts)
}
