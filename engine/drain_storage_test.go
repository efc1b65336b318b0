package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// The last revision of storage that others write to may not be an event of any watch.
func TestDrain_WithoutACacheAsksStorageHowFarItIs(t *testing.T) {
	l := newLasting(t)
	l.traits = func(t *backend.Traits) { t.Contiguous, t.Shared = false, true }
	l.watch = askedOnly
	host := newHost(t, engine.HostConfig{Clock: enginetest.NewVirtualClock(), Executor: engine.NewSeededExecutor(1)})
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host, c.Backend, c.NoCache = host, l, true })
	var got []string
	_, err := e.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[pod]) { got = append(got, ev.Key()) })
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "mine"})
	require.NoError(t, err)
	require.ErrorIs(t, host.Await(ctx, nil), engine.ErrIdle)
	_, err = l.Emit(ctx, draftOf(cfg(), pod{Name: "other"}))
	require.NoError(t, err)
	require.NoError(t, e.Drain(ctx))
	require.Equal(t, []string{"mine"}, got)
}

// Storage that cannot be reached holds up Drain until its context ends.
func TestDrain_WaitsForStorage(t *testing.T) {
	f := newSeededFixture(t, 1)
	f.fault(0, faulty.Hang(), faulty.OpNext)
	w := f.watch(engine.WatchOptions{})
	f.write("a")
	err := f.engine.Drain(t.Context())
	var undelivered *engine.UndeliveredError
	require.ErrorAs(t, err, &undelivered)
	require.Len(t, undelivered.Watches, 1)
	require.EqualValues(t, 1, undelivered.Watches[0].Events)
	require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
}

// Storage that cannot say how far it is holds up Drain, too. What the cache has is delivered
// meanwhile.
func TestDrain_AsksStorageUntilItAnswers(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		t.Run(fmt.Sprint("noCache=", noCache), func(t *testing.T) {
			f := newReadFixture(t, func(c *engine.Config[pod]) { c.NoCache = noCache })
			got := 0
			_, err := f.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) { got++ })
			require.NoError(t, err)
			_, err = f.Put(t.Context(), pod{Name: "a"})
			require.NoError(t, err)
			f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpRevision}, Times: 20, Do: faulty.Fail(errDown)})
			require.NoError(t, f.within(time.Minute).Drain(t.Context()))
			require.Equal(t, 1, got)
		})
	}
}

// Storage that is closed, or whose engine is, never answers.
func TestDrain_AsksNoMoreOnceNothingCanAnswer(t *testing.T) {
	f := newReadFixture(t)
	f.put("a", "web", 1)
	require.NoError(t, f.storage.Close())
	require.ErrorIs(t, f.within(time.Minute).Drain(t.Context()), store.ErrClosed)

	f = newReadFixture(t)
	f.storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpRevision}, Do: faulty.Fail(errDown)})
	f.clock.AfterFunc(time.Second, func() { require.NoError(t, f.Close()) })
	err := f.within(time.Hour).Drain(t.Context())
	require.ErrorIs(t, err, engine.ErrUndelivered)
	require.ErrorIs(t, err, engine.ErrEngineClosed)
}

func TestDrain_WithoutWatchesSaysThatNoneIsBehind(t *testing.T) {
	f := newSeededFixture(t, 1)
	f.fault(0, faulty.Hang(), faulty.OpNext)
	f.write("a")
	err := f.engine.Drain(t.Context())
	require.ErrorIs(t, err, engine.ErrUndelivered)
	require.ErrorContains(t, err, "not known whether everything was delivered: ")
	require.ErrorContains(t, err, "; no watch is behind what has arrived from storage")
}

// A cache that does not reach what was written is asked once, however short the wait of
// reads is.
func TestDrain_WaitsOnceWithoutATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(cfg().Schema(), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(inner, faulty.Options{})
		c := cfgOver(storage)
		c.FreshnessTimeout = time.Nanosecond
		storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
		e, err := engine.New(c)
		require.NoError(t, err)
		synctest.Wait()
		_, err = e.Create(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		waits := e.Stats().Waits
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, e.Drain(ctx), context.DeadlineExceeded)
		require.Equal(t, waits+1, e.Stats().Waits)
		require.NoError(t, storage.Close())
	})
}

// A Drain that waits for another one, or comes after it, knows no more than that one of what had yet to
// arrive from storage.
func TestDrain_EachSaysWhatIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(cfg().Schema(), memory.Options{})
		require.NoError(t, err)
		storage := faulty.New(inner, faulty.Options{})
		storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpNext}, Do: faulty.Hang()})
		e, err := engine.New(cfgOver(storage))
		require.NoError(t, err)
		synctest.Wait()
		_, err = e.Create(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		short, cancel := context.WithCancel(t.Context())
		drained := make(chan error, 2)
		for _, ctx := range []context.Context{short, t.Context()} {
			go func() { drained <- e.Drain(ctx) }()
			synctest.Wait()
		}
		cancel()
		for range cap(drained) {
			require.ErrorContains(t, <-drained, "not known whether everything was delivered: ")
		}
		require.ErrorIs(t, e.Drain(t.Context()), engine.ErrUndelivered, "once more")
		require.NoError(t, storage.Close())
	})
}
