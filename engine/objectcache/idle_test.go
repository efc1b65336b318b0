package objectcache_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

func TestIdle_WhatIsNotReadIsNotFollowed(t *testing.T) {
	r := started(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	r.requireGet(ref, "1")
	r.advance(maxIdle - 1)
	r.requireRunning("a")
	r.advance(1)
	r.requireRunning()
	require.Equal(t, 1, r.cache.Stats().Idle)

	another := r.acquire("a") // is no read
	r.requireRunning()

	r.put(secret{Name: "a", Data: "2"})
	r.requireGet(ref, "2") // not what it was when it stopped
	r.requireGet(another, "2")
	r.requireRunning("a")
	require.Equal(t, 2, r.source.ListCalls())
}

func TestIdle_ReadingNowAndThenKeepsItFollowed(t *testing.T) {
	r := started(t)
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
	r := started(t, func(c *objectcache.Config[secret]) { c.MaxIdle = objectcache.NeverIdle })
	ref := r.acquire("a")
	r.advance(1000 * time.Hour)
	r.requireRunning("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	require.Zero(t, r.host.Timers())
}

// A wall clock may be set back and forth: the cache goes by elapsed time, as far as
// its clock can measure it.
func TestIdle_AClockSetBackDoesNotDelayItForEver(t *testing.T) {
	r := started(t)
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
	r := started(t)
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

// An object that takes longer to arrive than MaxIdle is there for the read that
// waited for it.
func TestIdle_AnArrivalCountsAsARead(t *testing.T) {
	r := started(t)
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
