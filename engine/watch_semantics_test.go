package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// RunWatchSemantics of Kubernetes: a start from storage's newest revision (RV
// unset there), from whatever the cache has (RV 0), from an old revision and
// from the current one; with bookmarks and without; with the initial state and
// without; and the two starts of old, which mean the initial state. 18 in all.
func TestWatch_Semantics(t *testing.T) {
	starts := []struct {
		name string
		opts engine.WatchOptions
		// replay is what comes without an initial state.
		replay []string
	}{
		{"unset", engine.WatchOptions{Linearizable: true}, nil},
		{"0", engine.WatchOptions{}, nil},
		{"old", engine.WatchOptions{From: 1}, []string{"ADDED b@2", "ADDED a@3"}},
		{"current", engine.WatchOptions{From: 3}, nil},
	}
	state := []string{"ADDED a@3 initial", "ADDED b@2 initial"}
	for _, start := range starts {
		for _, bookmarks := range []bool{false, true} {
			for _, initial := range []bool{false, true} {
				opts, want := start.opts, start.replay
				opts.Bookmarks, opts.InitialState = bookmarks, initial
				if initial {
					want = state
				}
				if initial && bookmarks {
					want = append(want[:2:2], "BOOKMARK@3 initial-end")
				}
				t.Run(fmt.Sprintf("from=%s/bookmarks=%t/state=%t", start.name, bookmarks, initial),
					func(t *testing.T) { testSemantics(t, opts, want) })
			}
		}
	}
	t.Run("legacy/unset", func(t *testing.T) {
		testSemantics(t, engine.WatchOptions{InitialState: true, Linearizable: true}, state)
	})
	t.Run("legacy/0", func(t *testing.T) { testSemantics(t, engine.WatchOptions{InitialState: true}, state) })
}

func testSemantics(t *testing.T, opts engine.WatchOptions, want []string) {
	e, ctx := newEngine(t, nil)
	for _, name := range []string{"b", "a"} {
		rev, err := revisionOf(e.Create(ctx, pod{Name: name}))
		require.NoError(t, err)
		require.NoError(t, e.WaitForRevision(ctx, rev))
	}
	w, err := e.Watch(ctx, opts)
	require.NoError(t, err)
	rev, err := revisionOf(e.Create(ctx, pod{Name: "c"}))
	require.NoError(t, err)
	require.Equal(t, append(want[:len(want):len(want)], "ADDED c@4"), until(t, ctx, w, rev))
	require.Equal(t, rev, w.Revision())
}

// What was acknowledged before a linearizable watch was asked for is in its
// state, however far behind the cache is.
func TestWatch_LinearizableStateHasEveryAcknowledgedWrite(t *testing.T) {
	e, ctx := newEngine(t, nil)
	for n := range 50 {
		_, err := e.Create(ctx, pod{Name: fmt.Sprint("pod-", n)})
		require.NoError(t, err)
		w, err := e.Watch(ctx, engine.WatchOptions{InitialState: true, Linearizable: true})
		require.NoError(t, err)
		events, err := w.Next(ctx)
		require.NoError(t, err)
		require.Len(t, events, n+1)
		w.Stop()
	}
}

// Without an answer of storage it is unknown what was acknowledged.
func TestWatch_LinearizableFailsIfStorageDoesNotAnswer(t *testing.T) {
	for _, opts := range []engine.WatchOptions{{}, {InitialState: true}, {Last: 1}} {
		f := newReadFixture(t)
		f.put("a", "web", 1)
		f.setDown(true)
		opts.Linearizable = true
		_, err := f.Watch(t.Context(), opts)
		require.ErrorIs(t, err, errDown, "%+v", opts)
	}
}

// The last events too are those of the acknowledged writes.
func TestWatch_LinearizableLastHasEveryAcknowledgedWrite(t *testing.T) {
	e, ctx := newEngine(t, nil)
	for n := range 50 {
		rev, err := revisionOf(e.Create(ctx, pod{Name: fmt.Sprint("pod-", n)}))
		require.NoError(t, err)
		w, err := e.Watch(ctx, engine.WatchOptions{Last: 1, Linearizable: true})
		require.NoError(t, err)
		events, err := w.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, rev, events[0].Revision)
		w.Stop()
	}
}

// Breaking out of a loop leaves the watch as it is: ranging again goes on with
// the next event, whether one at a time or in batches.
func TestWatch_EventsGoOnWhereALoopWasLeft(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	for n := range 10 {
		_, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
	}
	require.NoError(t, e.WaitForRevision(ctx, 11))
	next := engine.Revision(2)
	for range 5 {
		for ev, err := range w.Events() {
			require.NoError(t, err)
			require.Equal(t, next, ev.Revision)
			require.Equal(t, next, w.Revision(), "the consumer stands behind what it was given")
			next++
			break
		}
	}
	for events, err := range w.Batches() {
		require.NoError(t, err)
		require.Equal(t, next, events[0].Revision)
		if next += engine.Revision(len(events)); next == 12 {
			break
		}
	}
}

// A watch has one kind of consumer.
func TestWatch_SecondKindOfConsumerIsRefused(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Handle(ctx, engine.WatchOptions{}, func(engine.Event[pod]) {})
	require.NoError(t, err)
	_, err = w.Next(ctx)
	require.ErrorIs(t, err, engine.ErrConsumerConflict)
	for _, err := range w.Events() {
		require.ErrorIs(t, err, engine.ErrConsumerConflict)
	}
	_, open := <-w.Chan()
	require.False(t, open)
}

// A watch is not told of what is not for it, but may be resumed from behind
// that.
func TestWatch_RevisionMovesOnPastWhatIsNotForIt(t *testing.T) {
	f := newFixture(t, nil)
	stood := make([]engine.Revision, 0, 1)
	var handled *engine.Watch[thing]
	handled, err := f.engine.Handle(t.Context(), engine.WatchOptions{Labels: "app=db"}, func(engine.Event[thing]) {
		_, err := f.engine.Put(t.Context(), thing{Key: "meanwhile", App: "web"})
		require.NoError(t, err)
		stood = append(stood, handled.Revision())
	})
	require.NoError(t, err)
	pulled := f.watch(engine.WatchOptions{Labels: "app=db"})
	f.requireReads(pulled)
	rev := f.put("a")
	require.Equal(t, []engine.Revision{rev, rev}, []engine.Revision{handled.Revision(), pulled.Revision()})

	db, err := revisionOf(f.engine.Create(t.Context(), thing{Key: "db", App: "db"}))
	require.NoError(t, err)
	f.executor.Run()
	require.Equal(t, []engine.Revision{rev}, stood, "the handler has not returned from what follows")
	require.Equal(t, rev, pulled.Revision(), "there is something for it")
	require.Equal(t, db+1, handled.Revision())
	f.requireReads(pulled, "ADDED db@3")
	require.Equal(t, db+1, pulled.Revision())
}

// A watch whose context ends says so, with the context's cause.
func TestWatch_ContextCancelled(t *testing.T) {
	e, ctx := newEngine(t, nil)
	cause := errors.New("the client left")
	of, cancel := context.WithCancelCause(ctx)
	w, err := e.Watch(of, engine.WatchOptions{})
	require.NoError(t, err)
	cancel(cause)
	_, err = w.Next(ctx)
	require.ErrorIs(t, err, engine.ErrStopped)
	require.ErrorIs(t, err, cause)
	_, err = e.Watch(of, engine.WatchOptions{})
	require.ErrorIs(t, err, cause)
}

// A consumer that gives up waiting leaves the watch as it is.
func TestWatch_NextThatGivesUpLosesNothing(t *testing.T) {
	e, ctx := newEngine(t, nil)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = w.Next(gone)
	require.ErrorIs(t, err, context.Canceled)
	rev, err := revisionOf(e.Create(ctx, pod{Name: "a"}))
	require.NoError(t, err)
	require.Equal(t, []string{"ADDED a@2"}, until(t, ctx, w, rev))
}

func TestWatch_StopInTheMiddleOfABatch(t *testing.T) {
	f := newFixture(t, nil)
	w := f.watch(engine.WatchOptions{})
	for range 10 {
		f.put("a")
	}
	taken := 0
	for _, err := range w.Events() {
		require.NoError(t, err)
		if taken++; taken == 4 {
			w.Stop()
			break
		}
	}
	from := w.Revision()
	require.Equal(t, engine.Revision(5), from, "the revision of the fourth event")
	f.executor.Run()
	require.Zero(t, f.engine.Stats().Watches)
	require.ErrorIs(t, w.Err(), engine.ErrStopped)
	seen, end := f.read(f.watch(engine.WatchOptions{From: from}))
	require.NoError(t, end)
	require.Len(t, seen, 6, "a watch from there gets the rest")
}

func TestWatch_DoesNotHangWhenStorageNeverAnswers(t *testing.T) {
	f := newDownFixture(t)
	_, err := f.within(time.Minute).Watch(t.Context(), engine.WatchOptions{})
	var notReady *engine.NotReadyError
	require.ErrorAs(t, err, &notReady)
	require.ErrorIs(t, err, errDown)
	require.Contains(t, err.Error(), "storage is (re)initializing")
	require.Positive(t, notReady.RetryAfter)
}

// A cache that is late does not keep a watch from starting now: it begins behind what
// storage has, which the cache has yet to hear of.
func TestWatch_FromNowOnStartsOverACacheThatIsLate(t *testing.T) {
	f := newReadFixture(t)
	f.setHeld(true)
	f.put("a", "web", 1)
	require.EqualValues(t, 1, f.Revision())
	f.within(time.Minute)
	w, err := f.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	f.setHeld(false)
	f.put("b", "web", 1)
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"ADDED b@3"}, names(events))
}

// What is to come is waited for. A watch whose state is not there in time is
// refused, and can be had once it is.
func TestWatch_StateOfTheFutureIsWaitedFor(t *testing.T) {
	f := newReadFixture(t)
	rev := f.put("a", "web", 1)
	opts := engine.WatchOptions{InitialState: true, From: rev + 1}
	_, err := f.within(time.Minute).Watch(t.Context(), opts)
	var future *engine.FutureError
	require.ErrorAs(t, err, &future)
	require.Equal(t, engine.FutureError{Requested: rev + 1, Current: rev}, *future)

	f.setHeld(true)
	f.put("b", "web", 1)
	f.clock.AfterFunc(time.Second, func() { f.setHeld(false) })
	w, err := f.within(time.Minute).Watch(t.Context(), opts)
	require.NoError(t, err)
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"ADDED a@2 initial", "ADDED b@3 initial"}, names(events))
}
