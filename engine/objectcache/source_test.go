package objectcache_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

func TestSource_BrokenWatchLosesNothing(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	r.requireGet(ref, "1")
	r.source.ResetWatches(nil)
	r.put(secret{Name: "a", Data: "2"})
	r.requireGet(ref, "1") // what had arrived is served meanwhile
	r.advance(retry)
	r.requireGet(ref, "2")
	require.Len(t, r.told, 1)
	require.ErrorIs(t, r.told[0], objectcache.ErrSource)
	require.ErrorIs(t, r.told[0], enginetest.ErrInjected)
	require.EqualError(t, r.told[0], `object "a": source failed: failed by a rule of the test`)
}

func TestSource_ExpiredHistoryIsListedAnew(t *testing.T) {
	r := newFixture(t)
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotFound)
	r.source.Stall()
	r.put(secret{Name: "a", Data: "1"})
	r.put(secret{Name: "a", Data: "2"})
	require.NoError(t, r.source.Forget())
	r.source.Resume()
	r.advance(retry)
	r.requireGet(ref, "2")
	require.Equal(t, 2, r.source.ListCalls())
}

// A source that is closed does not come back, so waiting makes no sense: reads end
// with the cause, and each tries once more.
func TestSource_GoneForEverEndsReads(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	before := r.acquire("a")
	r.requireGet(before, "1")
	require.NoError(t, r.source.Close())
	r.advance(retry)
	tries := r.source.identified.Load()
	r.requireErr(before, objectcache.ErrNotSynced, store.ErrClosed)
	after := r.acquire("b")
	r.requireErr(after, objectcache.ErrNotSynced, store.ErrClosed)
	r.requireErr(after, objectcache.ErrNotSynced, store.ErrClosed)
	require.Equal(t, tries+3, r.source.identified.Load())
	r.requireRunning()
	var notSynced *objectcache.NotSyncedError
	_, err := after.Get(context.Background())
	require.ErrorAs(t, err, &notSynced)
	require.NoError(t, notSynced.Cause, "no wait was given up")
}

// A first reference follows the object, as if there had been none before, though the cache may
// not have had a turn since the last one was released.
func TestSource_ThatHasEndedIsAskedAgainForTheNextFirstReference(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	r.source.FailList(1, store.ErrUnsupported)
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotSynced, store.ErrUnsupported)
	ref.Release()
	ref = r.acquire("a")
	r.requireRunning("a")
	r.requireGet(ref, "1")
}

// A source that does not find what it is to list, such as a kind that a server does not have,
// says nothing about the object.
func TestSource_WithoutTheListDoesNotMeanNotFound(t *testing.T) {
	r := newFixture(t)
	r.source.FailList(1000, &store.NotFoundError{Key: "secrets"})
	ref := r.acquire("a")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for name, get := range map[string]func() (*engine.Object[secret], error){
		"Get":             func() (*engine.Object[secret], error) { return ref.Get(over) },
		"GetNotOlderThan": func() (*engine.Object[secret], error) { return ref.GetNotOlderThan(over, 1) },
	} {
		r.settle()
		o, err := get()
		require.Nil(t, o, name)
		require.ErrorIs(t, err, objectcache.ErrNotSynced, name)
		require.NotErrorIs(t, err, objectcache.ErrNotFound, name)
		require.ErrorContains(t, err, "secrets", name)
		var cause *store.NotFoundError
		require.ErrorAs(t, err, &cause, name)
	}
}

// A wait for a write tells that the source is not reached, until it is.
func TestSource_ThatIsDownIsWhyAWriteDoesNotArrive(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	ref := r.acquire("a")
	r.requireGet(ref, "1")
	over, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	requireSource := func(want error) {
		t.Helper()
		r.settle()
		var late *objectcache.NotSyncedError
		_, err := ref.GetNotOlderThan(over, 1000)
		require.ErrorAs(t, err, &late)
		require.Equal(t, "a", late.Key)
		require.ErrorIs(t, late.Cause, enough)
		require.ErrorIs(t, late.Source, want)
		require.NotErrorIs(t, err, context.Canceled, "neither is so")
	}
	requireSource(nil)
	down := errors.New("down")
	r.source.FailWatch(1, down)
	r.source.FailList(1, down)
	r.source.ResetWatches(down)
	requireSource(down)
	r.requireGet(ref, "1")
	r.advance(3 * retry)
	requireSource(nil) // though nothing has changed there
	r.source.FailWatch(1, down)
	r.source.ResetWatches(down)
	requireSource(down)
	r.advance(3 * retry)
	r.put(secret{Name: "a", Data: "2"})
	requireSource(nil)
}

// A source that panics has failed.
func TestSource_ThatPanicsHasFailed(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "a", Data: "1"})
	r.source.gate = func(context.Context, string) { panic("no storage today") }
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotSynced, usercode.ErrPanic)
	r.source.gate = nil
	r.advance(retry)
	r.requireGet(ref, "1")
}

// traitless panics before a Reflector can begin.
type traitless struct{ *spySource }

func (traitless) Traits() backend.Traits { panic("what traits?") }

func TestSource_ThatPanicsInTraitsHasFailed(t *testing.T) {
	var told []error
	r := newFixture(t, func(c *objectcache.Config[secret]) {
		c.Source = engine.SourceOf[secret](traitless{c.Source.ListerWatcher.(*spySource)})
		c.OnError = func(err error) { told = append(told, err) }
	})
	ref := r.acquire("a")
	r.requireErr(ref, objectcache.ErrNotSynced, usercode.ErrPanic)
	r.requireRunning()
	require.NotEmpty(t, told)
	require.ErrorIs(t, told[0], objectcache.ErrSource)
}

func TestOnError_APanicChangesNothing(t *testing.T) {
	r := newFixture(t, func(c *objectcache.Config[secret]) { c.OnError = func(error) { panic("worse") } })
	r.put(secret{Name: "a", Data: "1"})
	r.source.FailList(3, nil)
	ref := r.acquire("a")
	r.advance(3 * retry)
	r.requireGet(ref, "1")
}

// A Goexit, as of a t.FailNow, cannot be contained: the Reflector fails, and its
// supervisor restarts it. It lists again after the pause between two attempts.
func TestReflectors_ThatFailAreRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		cache, source := realCache(t, func(c *objectcache.Config[secret]) {
			c.Immutable = func(secret) bool {
				if calls.Add(1) == 1 {
					runtime.Goexit()
				}
				return false
			}
		})
		_, err := source.Add(secret{Name: "a", Data: "1"})
		require.NoError(t, err)
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		time.Sleep(retry - 1) // of virtual time
		require.EqualValues(t, 1, calls.Load())
		require.Equal(t, 1, source.ListCalls())
		o, err := ref.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, "1", o.Value.Data)
		require.Equal(t, 2, source.ListCalls())
		require.EqualValues(t, 1, cache.Stats().Starts, "it is the same Reflector")
	})
}

// An update that a Reflector delivers after it was stopped does not count, even if
// there is a new reference by then.
func TestReflectors_ALateUpdateIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{Workers: 4})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, host.Close()) })
		stuck := make(chan struct{})
		cache, source := realCache(t, func(c *objectcache.Config[secret]) {
			c.Host = host
			c.Immutable = func(s secret) bool {
				if s.Data == "2" {
					<-stuck
				}
				return false
			}
		})
		again := make(chan struct{})
		var lists atomic.Int32
		source.gate = func(context.Context, string) {
			if lists.Add(1) > 1 {
				<-again
			}
		}
		_, err = source.Add(secret{Name: "a", Data: "1"})
		require.NoError(t, err)
		old, err := cache.Acquire("a")
		require.NoError(t, err)
		synctest.Wait()
		_, err = source.Modify(secret{Name: "a", Data: "2"})
		require.NoError(t, err)
		synctest.Wait()
		old.Release()
		synctest.Wait()
		ref, err := cache.Acquire("a")
		require.NoError(t, err)
		_, err = source.Modify(secret{Name: "a", Data: "3"})
		require.NoError(t, err)
		got := make(chan string, 1)
		go func() {
			o, err := ref.Get(context.Background())
			if err != nil {
				t.Errorf("Get: %v", err)
			}
			got <- o.Value.Data
		}()
		close(stuck)
		synctest.Wait()
		require.Empty(t, got, "there is no answer before the new list")
		close(again)
		require.Equal(t, "3", <-got)
	})
}
