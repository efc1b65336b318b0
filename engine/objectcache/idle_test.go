package objectcache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/usercode"
)

func TestIdle_WhatIsNotReadIsNotFollowed(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	r.requireGet(ref, "1")
	r.advance(maxIdle - 1)
	r.requireRunning("a")
	r.advance(1)
	r.requireRunning()
	require.Equal(t, 1, r.cache.Stats().Idle)

	another := r.acquire("a") // is not a read
	r.requireRunning()

	r.put(secret{Name: "a", Data: "2"})
	r.requireGet(ref, "2") // not what it was when it stopped
	r.requireGet(another, "2")
	r.requireRunning("a")
	require.Equal(t, 2, r.source.ListCalls())
}

func TestIdle_ReadingNowAndThenKeepsItFollowed(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	for range 10 {
		r.requireGet(ref, "1")
		r.advance(maxIdle - time.Second)
		r.requireRunning("a")
	}
	r.advance(time.Second)
	r.requireRunning()
	require.Equal(t, 1, r.source.ListCalls())
}

func TestIdle_Never(t *testing.T) {
	r := newFixture(t, func(c *objectcache.Config[secret]) { c.MaxIdle = objectcache.NeverIdle })
	ref := r.acquire("a")
	r.advance(1000 * time.Hour)
	r.requireRunning("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	require.Zero(t, r.host.Timers())
}

// A wall clock may be set back and forth: the cache goes by elapsed time, as far as
// its clock can measure it.
func TestIdle_AClockSetBackDoesNotDelayItForEver(t *testing.T) {
	r := newFixture(t)
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	r.clock.Jump(-1000 * time.Hour)
	r.advance(maxIdle)
	r.requireRunning("a")
	r.requireErr(ref, objectcache.ErrNotFound) // read at the new time
	r.advance(maxIdle)
	r.requireRunning()
}

func TestIdle_NotBeforeTheObjectHasArrived(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	r.source.FailList(1<<30, nil)
	ref := r.acquire("a")
	r.advance(10 * maxIdle)
	require.Equal(t, 1, r.cache.Stats().Reflectors)
	r.requireErr(ref, objectcache.ErrNotSynced, engine.ErrIdle, enginetest.ErrInjected)

	r.source.FailList(0, nil)
	r.advance(retry)
	r.requireGet(ref, "1")
	r.advance(maxIdle)
	r.requireRunning() // now it is
}

// The supervisor may have its turn long after the timer has fired.
func TestIdle_IsFoundHoweverLate(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	r.requireGet(ref, "1")
	r.settle()
	r.clock.Advance(10 * maxIdle)
	r.requireRunning()
	require.Equal(t, 1, r.cache.Stats().Idle)
}

// An object that takes longer to arrive than MaxIdle is there for the read that
// waited for it.
func TestIdle_AnArrivalCountsAsARead(t *testing.T) {
	r := newFixture(t)
	r.source.FailList(1<<30, nil)
	ref := r.acquire("a")
	r.advance(2 * maxIdle)
	r.source.FailList(0, nil)
	r.advance(retry)
	r.requireRunning("a")
	r.advance(maxIdle - retry)
	r.requireErr(ref, objectcache.ErrNotFound)
	require.EqualValues(t, 1, r.cache.Stats().Starts)
}

// The user's clock fails in a turn of the supervisor: the cache goes on.
func TestIdle_AClockThatFailsEndsNoCache(t *testing.T) {
	virtual, executor := clock.NewVirtual(time.Unix(0, 0)), actors.NewSeeded(1)
	wire := &clocktest.Failing{
		Clock:  virtual,
		Counts: func(call clocktest.Call, d time.Duration) bool { return call != clocktest.AfterFunc || d == maxIdle },
	}
	host, err := engine.NewHost(engine.HostConfig{Clock: wire, Executor: executor, Seed: 1})
	require.NoError(t, err)
	source := enginetest.NewSourceWith(secretConfig(), enginetest.SourceOptions{Clock: virtual})
	var errs []error
	cache, err := objectcache.New(objectcache.Config[secret]{
		Source: engine.SourceOf[secret](source), Host: host, MaxIdle: maxIdle, OnError: func(err error) { errs = append(errs, err) },
	})
	require.NoError(t, err)
	executor.Run()
	_, err = source.Add(secret{Name: "a", Data: "1"})
	require.NoError(t, err)

	wire.Fail(clocktest.AfterFunc, 0, 1)
	ref, err := cache.Acquire("a")
	require.NoError(t, err)
	o, err := ref.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1", o.Value.Data)
	require.Zero(t, wire.Left(clocktest.AfterFunc))
	wire.Fail(clocktest.Now, 0, 1)
	ref.Release()
	executor.Run()
	require.Zero(t, wire.Left(clocktest.Now))
	require.Zero(t, cache.Stats().Reflectors)
	require.Len(t, errs, 2)
	for _, err := range errs {
		require.ErrorIs(t, err, usercode.ErrPanic)
	}
	ref, err = cache.Acquire("a")
	require.NoError(t, err, "it goes on")
	_, err = ref.Get(t.Context())
	require.NoError(t, err)
	wire.Fail(clocktest.Stop, 0, 1)
	ref.Release()
	executor.Run()
	require.Zero(t, wire.Left(clocktest.Stop))
	require.Len(t, errs, 3)
	require.ErrorIs(t, errs[2], usercode.ErrPanic)
	ref, err = cache.Acquire("a")
	require.NoError(t, err, "it goes on")
	virtual.Advance(maxIdle) // the timer that goes on is of no consequence
	o, err = ref.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1", o.Value.Data)
	require.NoError(t, cache.Close())
	require.NoError(t, source.Close())
	require.NoError(t, host.Close())
}

// ticking is a clock that moves whenever it is read.
type ticking struct {
	clock.Clock
	move func()
}

func (c ticking) Now() time.Time {
	c.move()
	return c.Clock.Now()
}

// An object that arrives is read by the calls that wait for it, however short MaxIdle is.
func TestIdle_NotBeforeCallsThatWaitHaveReadIt(t *testing.T) {
	wrap := func(c clock.Clock) clock.Clock {
		return ticking{c, func() { c.(*clock.Virtual).Jump(time.Millisecond) }}
	}
	r := newFixtureOn(t, 1, wrap, func(c *objectcache.Config[secret]) { c.MaxIdle = 1 })
	t.Cleanup(r.close)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o, err := ref.Get(ctx)
	require.NoError(t, err)
	require.Equal(t, "1", o.Value.Data)
	r.advance(time.Second)
	require.Equal(t, 1, r.cache.Stats().Idle)
}

// A call that waits for a revision would list the object again each time that it is idle, and a list of a source
// that lags may take it back to an older state.
func TestIdle_NotWhileACallWaitsForARevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache, source := realCache(t)
		_, err := source.Add(secret{Name: "a", Data: "1"})
		require.NoError(t, err)
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*maxIdle)
		defer cancel()
		_, err = ref.GetNotOlderThan(ctx, 1<<30)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, cache.Stats().Starts)
		time.Sleep(2 * maxIdle)
		require.Equal(t, 1, cache.Stats().Idle)
	})
}
