package objectcache_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// tappedClock is a clock that does something else when it is asked for the time, or has armed
// a timer of maxIdle: what another goroutine may do at that moment.
type tappedClock struct {
	clock.Clock
	now, armed atomic.Pointer[func()]
}

// run calls and clears a hook.
func run(hook *atomic.Pointer[func()]) {
	if f := hook.Swap(nil); f != nil {
		(*f)()
	}
}

func (c *tappedClock) Now() time.Time {
	run(&c.now)
	return c.Clock.Now()
}

func (c *tappedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	timer := c.Clock.AfterFunc(d, f)
	if d == maxIdle {
		run(&c.armed)
	}
	return timer
}

// tapped returns a fixture whose cache runs on a tapped clock.
func tapped(t *testing.T) (*fixture, *tappedClock) {
	tap := &tappedClock{}
	r := newFixtureOn(t, 1, func(c clock.Clock) clock.Clock {
		tap.Clock = c
		return tap
	})
	t.Cleanup(r.close)
	return r, tap
}

// A Get begins while its reference is released, the object forgotten and followed for another.
// What it then asks for does not make the cache forget the other.
func TestGet_OfAForgottenObjectLeavesItsSuccessorAlone(t *testing.T) {
	r, tap := tapped(t)
	r.put(secret{Name: "a", Data: "1"})
	old := r.acquire("a")
	r.requireGet(old, "1")
	var ref *objectcache.Ref[secret]
	release := func() {
		old.Release()
		r.settle()
		ref = r.acquire("a")
		r.requireGet(ref, "1")
	}
	tap.now.Store(&release)
	r.requireErr(old, objectcache.ErrReleased)
	r.settle()
	require.Equal(t, objectcache.Stats{References: 1, Keys: 1, Synced: 1, Reflectors: 1, Starts: 2}, r.cache.Stats())
	again := r.acquire("a")
	r.requireGet(again, "1")
	r.requireRunning("a")
}

// A call does not wait for a signal that came when its reference was released just before.
func TestGetNotOlderThan_WhileItsReferenceIsReleased(t *testing.T) {
	r, tap := tapped(t)
	r.put(secret{Name: "a", Data: "1"})
	ref, beside := r.acquire("a"), r.acquire("a")
	r.requireGet(ref, "1")
	release := ref.Release
	tap.now.Store(&release)
	_, err := ref.GetNotOlderThan(t.Context(), 1<<40)
	require.ErrorIs(t, err, objectcache.ErrReleased)
	r.requireGet(beside, "1")
}

// The last reference is released while the supervisor arms the timer of the object.
func TestRelease_DuringARecheckStopsTheReflector(t *testing.T) {
	r, tap := tapped(t)
	ref := r.acquire("a")
	release := ref.Release
	tap.armed.Store(&release)
	r.requireRunning()
	require.Zero(t, r.cache.Stats().Keys)
}

// An immutable object is released and acquired again while the Reflector that has brought it
// ends.
func TestAcquire_WhileTheReflectorOfAnImmutableObjectEnds(t *testing.T) {
	r := newFixture(t)
	old := r.acquire("a")
	r.requireErr(old, objectcache.ErrNotFound)
	r.requireRunning("a")
	var ref *objectcache.Ref[secret]
	again := func() {
		old.Release()
		ref = r.acquire("a")
	}
	r.source.closed.Store(&again)
	r.source.FailList(1, nil)
	r.put(secret{Name: "a", Data: "old", Immutable: true})
	require.NotNil(t, ref)
	r.put(secret{Name: "a", Data: "new"})
	r.advance(retry)
	r.requireGet(ref, "new")
	r.requireRunning("a")
	require.Equal(t, 1, r.source.mostAtOnce())
}

// A key whose Reflector is about to stop counts as nothing but a key.
func TestStats_OfAKeyThatIsStopping(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	r.requireGet(ref, "1")
	r.settle()
	ref.Release()
	require.Equal(t, objectcache.Stats{Keys: 1, Reflectors: 1, Starts: 1}, r.cache.Stats())
}
