package reflector_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store/backend"
)

// heldSource has watches whose requests for progress last until the test answers them.
type heldSource struct {
	*source
	begun  atomic.Int64
	answer chan struct{}
}

func (s *heldSource) Watch(ctx context.Context, o backend.WatchOptions) (backend.Watcher, error) {
	w, err := s.source.Watch(ctx, o)
	return heldWatcher{w, s}, err
}

type heldWatcher struct {
	backend.Watcher
	source *heldSource
}

func (w heldWatcher) RequestProgress(ctx context.Context) error {
	w.source.begun.Add(1)
	select {
	case <-w.source.answer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// asking is a Reflector of a heldSource, whose callers wait as the test says.
type asking struct {
	*blockingFixture
	t       *testing.T
	source  *heldSource
	waiting atomic.Bool
	ref     *reflector.Ref
}

func newAsking(t *testing.T, change func(*reflector.Config)) *asking {
	a := &asking{blockingFixture: newBlockingFixture(t), t: t}
	a.source = &heldSource{source: a.blockingFixture.source, answer: make(chan struct{})}
	config := reflector.Config{
		Source: a.source, Sink: a.mirror, Rand: rand.New(rand.NewPCG(1, 2)), OnError: func(err error) { a.errs <- err }, Waiting: a.waiting.Load,
	}
	change(&config)
	parent := actors.Spawn(a.system, "host", func() actors.Behavior[func(*actors.Context)] { return &host{actors.Restart} }, actors.Options{})
	parent.Tell(func(ctx *actors.Context) {
		var err error
		a.ref, err = reflector.Spawn(ctx, config)
		require.NoError(t, err)
	})
	synctest.Wait()
	return a
}

// request requests progress and returns how many requests the source has had.
func (a *asking) request() int64 {
	a.ref.RequestProgress()
	synctest.Wait()
	return a.source.begun.Load()
}

func (a *asking) advance(d time.Duration) int64 {
	a.clock.Advance(d)
	synctest.Wait()
	return a.source.begun.Load()
}

func (a *asking) answered() int64 {
	a.source.answer <- struct{}{}
	synctest.Wait()
	return a.source.begun.Load()
}

func (a *asking) close() {
	require.Empty(a.t, a.errs)
	require.NoError(a.t, a.system.Close(context.Background()))
}

func unchanged(*reflector.Config) {}

// The answer to the request that is being made may be older than what the next call waits for.
func TestRequestProgress_WhileOneIsBeingMadeIsMadeAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, func(c *reflector.Config) { c.Waiting = nil })
		require.Equal(t, int64(1), a.request())
		require.Equal(t, int64(1), a.request())
		require.Equal(t, int64(1), a.request(), "the source has one at a time")
		require.Equal(t, int64(2), a.answered(), "one for both that were requested meanwhile")
		require.Equal(t, int64(2), a.answered())
		a.close()
	})
}

// The call that waits may be gone by then, and one of the Reflector's own be the reason.
func TestRequestProgress_WhileOneIsBeingMadeIsMadeAfterItWhoeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, unchanged)
		a.waiting.Store(true)
		require.Equal(t, int64(1), a.request())
		require.Equal(t, int64(1), a.request())
		a.waiting.Store(false)
		require.Equal(t, int64(2), a.answered())
		require.Equal(t, int64(2), a.answered())
		a.close()
	})
}

// A closed watch may never answer, so the next watch is asked as well.
func TestRequestProgress_EndsWithItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, func(c *reflector.Config) { c.Waiting = nil })
		require.Equal(t, int64(1), a.request())
		a.ref.Relist(reflector.Requested)
		synctest.Wait()
		require.Equal(t, int64(1), a.advance(reflector.DefaultMax))
		require.Equal(t, reflector.Watching, a.ref.Stats().Phase)
		require.Equal(t, int64(2), a.request())
		require.Equal(t, int64(2), a.answered())
		a.close()
	})
}

func TestRequestProgress_IsRepeatedWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, unchanged)
		require.Zero(t, a.request(), "no call waits")
		a.waiting.Store(true)
		require.Equal(t, int64(1), a.request())
		a.answered()
		require.Equal(t, int64(1), a.advance(reflector.ProgressPeriod-1))
		require.Equal(t, int64(2), a.advance(1))
		a.answered()
		require.Equal(t, int64(3), a.advance(reflector.ProgressPeriod))
		a.answered()
		a.waiting.Store(false)
		require.Equal(t, int64(3), a.advance(10*reflector.ProgressPeriod))
		a.waiting.Store(true)
		require.Equal(t, int64(3), a.advance(10*reflector.ProgressPeriod), "the next call requests it")
		require.Equal(t, int64(4), a.request())
		a.answered()
		a.close()
	})
}

func TestRequestProgress_IsRepeatedOnceThoughManyCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, unchanged)
		a.waiting.Store(true)
		for i := range int64(5) {
			require.Equal(t, i+1, a.request())
			a.answered()
		}
		require.Equal(t, int64(6), a.advance(reflector.ProgressPeriod))
		a.answered()
		a.close()
	})
}

// The next request is made by the Reflector that replaces the failed one.
func TestRequestProgress_IsRepeatedAfterTheReflectorFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, unchanged)
		close(a.source.answer)
		a.waiting.Store(true)
		require.Equal(t, int64(1), a.request())
		a.mirror.fail()
		a.source.put("a", "1")
		synctest.Wait()
		before := a.advance(reflector.DefaultMax)
		require.Equal(t, uint64(1), a.ref.Stats().Restarts)
		require.Equal(t, reflector.Watching, a.ref.Stats().Phase)
		require.Equal(t, before+1, a.advance(reflector.ProgressPeriod))
		a.close()
	})
}

// grown is a heldSource that was empty at its oldest revision.
type grown struct{ *heldSource }

func (s grown) List(ctx context.Context, opts backend.ListOptions) (*backend.List, error) {
	if opts.Revision == 1 {
		return &backend.List{Revision: 1}, nil
	}
	return s.heldSource.List(ctx, opts)
}

// The revision that a warm start is to reach may be one without an event for the watch.
func TestWarmStart_AsksHowFarTheWatchIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, func(c *reflector.Config) {
			source := c.Source.(*heldSource)
			source.progress(5)
			c.Source, c.WarmStart, c.Waiting = grown{source}, true, nil
		})
		require.EqualValues(t, 1, a.source.begun.Load())
		close(a.source.answer)
		a.close()
	})
}

// A source that does not block is asked in the Reflector's own turn. That it answers is no failure.
func TestRequestProgress_OfASourceThatDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t, func(c *reflector.Config) {
			c.Source.(*heldSource).traits.Blocks = false
			c.Waiting = nil
		})
		close(a.source.answer)
		require.EqualValues(t, 1, a.request())
		require.EqualValues(t, 2, a.request())
		require.Zero(t, a.ref.Stats().Errors)
		a.close()
	})
}

// The events show how far a source is of which each revision is one, unless others are elsewhere.
func TestRequestProgress_OfASourceWhoseRevisionsAreEvents(t *testing.T) {
	for prefix, requests := range map[string]int64{"": 0, "a": 1} {
		synctest.Test(t, func(t *testing.T) {
			a := newAsking(t, func(c *reflector.Config) {
				c.Source.(*heldSource).traits.Contiguous = true
				c.Prefix, c.Waiting = prefix, nil
			})
			close(a.source.answer)
			require.Equal(t, requests, a.request())
			a.close()
		})
	}
}
