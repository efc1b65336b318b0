package enginetest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// A source that is told no fault is a backend like any other.
func TestSource_Conformance(t *testing.T) {
	for name, opts := range map[string]enginetest.SourceOptions{"plain": {}, "sparse": {Sparse: true}, "blocks": {Blocks: true}} {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, func(testing.TB, store.Schema) backendtest.Harness {
				opts := opts
				clock := enginetest.NewVirtualClock()
				opts.Clock = clock
				return backendtest.Harness{Pass: clock.Advance, Backend: enginetest.NewSourceWith(values(), opts)}
			})
		})
	}
}

// values describes what the conformance suite stores, as its own schema does.
func values() engine.Config[backendtest.Value] {
	return engine.Config[backendtest.Value]{
		Key:         func(v backendtest.Value) string { return v.Key },
		Labels:      func(v backendtest.Value) labels.Set { return labels.Set{"text": v.Text} },
		Fields:      engine.Fields[backendtest.Value]{"key": func(v backendtest.Value) string { return v.Key }},
		SetRevision: backendtest.Value.WithRevision,
		Size: func(v backendtest.Value) int {
			if v.Poison {
				panic("poisoned value")
			}
			return len(v.Text)
		},
	}
}

// over returns a deterministic engine over a source, and a watch on it.
func over(t *testing.T, opts enginetest.SourceOptions) (*enginetest.Source[pod], *enginetest.Engine[pod], *enginetest.Watch[pod]) {
	t.Helper()
	cfg := pods()
	source := enginetest.NewSourceWith(cfg, opts)
	cfg.Backend = source
	e := enginetest.NewWith(t, cfg, enginetest.Deterministic(1))
	return source, e, e.Watch(engine.WatchOptions{})
}

// written demands that a change of the source's succeeded.
func written(t *testing.T) func(engine.Revision, error) engine.Revision {
	return func(rev engine.Revision, err error) engine.Revision {
		t.Helper()
		require.NoError(t, err)
		return rev
	}
}

func TestSource_ChangesAreSeenByTheEngine(t *testing.T) {
	source, e, w := over(t, enginetest.SourceOptions{})
	added := written(t)(source.Add(pod{Name: "a"}))
	written(t)(source.Modify(pod{Name: "a", N: 1}))
	written(t)(source.Delete("a"))
	e.Create(pod{Name: "b"})
	enginetest.ExpectExactly(t, w, addedA.At(added), enginetest.Modified(pod{Name: "a", N: 1}),
		enginetest.Deleted(pod{Name: "a", N: 1}), addedB)

	_, err := source.Add(pod{Name: "b"})
	require.ErrorIs(t, err, engine.ErrExists)
	_, err = source.Modify(pod{Name: "x"})
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = source.Delete("x")
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// The source writes to the storage that it has, even once that was replaced.
func TestSource_WritesToTheStorageThatReplacesItsOwn(t *testing.T) {
	source, e, w := over(t, enginetest.SourceOptions{})
	require.NoError(t, source.Hide(func() error {
		_, err := source.Add(pod{Name: "lost"})
		return err
	}))
	schema := pods().Schema()
	other, err := memory.New(schema, memory.Options{Clock: e.Host().Clock(), FirstRevision: 1})
	require.NoError(t, err)
	require.NoError(t, source.Replace(other).Close())
	e.Advance(time.Minute)
	enginetest.ExpectEnd(t, w, engine.ErrExpired)
	w = e.Watch(engine.WatchOptions{})
	written(t)(source.Add(pod{Name: "a"})) // at a revision that was hidden in the storage before
	enginetest.ExpectExactly(t, w, addedA)
	require.NoError(t, source.Forget())
	_, err = source.Delete("a")
	require.NoError(t, err)
	enginetest.ExpectExactly(t, w, enginetest.Deleted(pod{Name: "a"}))
}

func TestSource_FailsListsAndWatches(t *testing.T) {
	cfg := pods()
	source := enginetest.NewSource(cfg)
	written(t)(source.Add(pod{Name: "a"}))
	broken := errors.New("broken")
	var told []error
	cfg.Backend, cfg.OnError = source, func(err error) { told = append(told, err) }
	source.FailList(2, broken)
	source.FailWatch(1, nil)
	e := enginetest.NewWith(t, cfg, enginetest.Deterministic(1))
	e.Advance(time.Hour)
	w := e.Watch(engine.WatchOptions{InitialState: true})
	enginetest.ExpectExactly(t, w, addedA)
	require.Len(t, told, 3)
	require.ErrorIs(t, told[0], broken)
	require.ErrorIs(t, told[1], broken)
	require.ErrorIs(t, told[2], enginetest.ErrInjected)
	require.Equal(t, 3, source.ListCalls())
	require.Equal(t, 2, source.WatchCalls())
}

func TestSource_FailsAsWasSaidLast(t *testing.T) {
	source := enginetest.NewSource(pods())
	broken := errors.New("broken")
	list := func() error {
		_, err := source.List(t.Context(), backend.ListOptions{})
		return err
	}
	source.FailList(5, nil)
	source.FailList(1, broken)
	require.ErrorIs(t, list(), broken)
	require.NoError(t, list())
	source.FailList(1, broken)
	source.FailList(0, nil)
	require.NoError(t, list())
	require.NoError(t, source.Close())
}

func TestSource_ResetsWatchesAndTheEngineResumes(t *testing.T) {
	source, e, w := over(t, enginetest.SourceOptions{})
	e.Create(pod{Name: "a"})
	enginetest.ExpectExactly(t, w, addedA)
	require.Equal(t, 1, source.ResetWatches(nil))
	e.Create(pod{Name: "b"})
	e.Advance(time.Minute)
	enginetest.ExpectExactly(t, w, addedB)
	require.Equal(t, 1, source.ListCalls(), "resumed, not listed again")
	require.Equal(t, 2, source.WatchCalls())
}

func TestSource_ForgetsAndTheEngineListsAgain(t *testing.T) {
	source, e, w := over(t, enginetest.SourceOptions{})
	e.Create(pod{Name: "a"})
	enginetest.ExpectExactly(t, w, addedA)
	source.Stall()
	e.Create(pod{Name: "b"})
	e.Put(pod{Name: "b", N: 1})
	require.NoError(t, source.Forget())
	source.Resume()
	e.Advance(time.Minute)
	enginetest.ExpectExactly(t, w, enginetest.Added(pod{Name: "b", N: 1}).Marked(engine.Synthetic))
	require.Equal(t, 2, source.ListCalls())
}

func TestSource_HidesChangesFromWatches(t *testing.T) {
	source, e, w := over(t, enginetest.SourceOptions{})
	hide := func() {
		require.NoError(t, source.Hide(func() error {
			_, err := source.Add(pod{Name: "a"})
			return err
		}))
		e.Advance(time.Minute)
	}
	hide()
	enginetest.ExpectExactly(t, w, addedA.Marked(engine.Synthetic))
	require.Equal(t, 2, source.ListCalls(), "the missing number gave it away")

	failed := errors.New("nothing written")
	require.ErrorIs(t, source.Hide(func() error { return failed }), failed)

	source, e, w = over(t, enginetest.SourceOptions{Sparse: true})
	hide()
	enginetest.ExpectNothing(t, w)
	require.Equal(t, 1, source.ListCalls(), "the engine cannot know")
}

// What is hidden from one watch is hidden from the next, which gets the rest as it was written.
func TestSource_HidesChangesFromEachWatch(t *testing.T) {
	source := enginetest.NewSource(pods())
	require.NoError(t, source.Hide(func() error {
		_, err := source.Add(pod{Name: "a"})
		return err
	}))
	shown := written(t)(source.Add(pod{Name: "b"}))
	for range 2 {
		w, err := source.Watch(t.Context(), backend.WatchOptions{From: 1, Notify: func() {}})
		require.NoError(t, err)
		batch, err := w.Next(10)
		require.NoError(t, err)
		require.Len(t, batch.Events, 1)
		require.Equal(t, shown, batch.Events[0].Revision)
		w.Close()
	}
	require.NoError(t, source.Close())
}

func TestSource_RepeatsAndTheEngineDoesNot(t *testing.T) {
	source, e, w := over(t, enginetest.SourceOptions{})
	source.Repeat() // nothing yet
	e.Create(pod{Name: "a"})
	enginetest.ExpectExactly(t, w, addedA)
	source.Repeat()
	e.Advance(time.Minute)
	e.Create(pod{Name: "b"})
	enginetest.ExpectExactly(t, w, addedB)
	require.Equal(t, 2, source.ListCalls(), "it was found out")
}

func TestSource_StallsAndResumes(t *testing.T) {
	source, e, w := over(t, enginetest.SourceOptions{})
	source.Stall()
	source.Stall() // which one Resume ends, too
	rev := e.Create(pod{Name: "a"}).Revision
	e.Advance(time.Minute)
	require.Less(t, e.Engine().Revision(), rev)
	source.Resume()
	enginetest.ExpectExactly(t, w, addedA)
}

func TestSource_StalledKeepsExpectationsFromPassing(t *testing.T) {
	failures := failuresOf(t, func(r *recorder) {
		cfg := pods()
		source := enginetest.NewSource(cfg)
		cfg.Backend = source
		e := enginetest.NewWith(r, cfg, enginetest.Deterministic(1))
		w := e.Watch(engine.WatchOptions{})
		source.Stall()
		e.Create(pod{Name: "a"})
		enginetest.ExpectNothing(r, w)
	})
	require.Len(t, failures, 1)
	require.Contains(t, failures[0], "waiting until revision 2 is dispatched")
}

func TestSource_ClosedEndsEverything(t *testing.T) {
	source, e, _ := over(t, enginetest.SourceOptions{})
	require.NoError(t, source.Close())
	_, err := source.Add(pod{Name: "a"})
	require.ErrorIs(t, err, store.ErrClosed)
	require.ErrorIs(t, source.Hide(func() error { return nil }), store.ErrClosed)
	require.ErrorIs(t, source.Forget(), store.ErrClosed)
	_, err = e.Engine().Create(t.Context(), pod{Name: "a"})
	require.ErrorIs(t, err, store.ErrClosed)
}

func TestSource_LosesNothingUnderConcurrentFaults(t *testing.T) {
	cfg := pods()
	source := enginetest.NewSource(cfg)
	cfg.Backend = source
	cfg.Backoff.Initial, cfg.Backoff.Max = time.Microsecond, time.Millisecond
	e := enginetest.NewWith(t, cfg, enginetest.Options{Patience: time.Minute})
	w := e.Watch(engine.WatchOptions{Key: "last"})
	faults := make(chan struct{})
	go func() {
		defer close(faults)
		for range 30 {
			source.ResetWatches(nil)
			source.Stall()
			source.Repeat()
			source.FailList(1, nil)
			source.FailWatch(1, nil)
			source.Resume()
		}
	}()
	for i := range 300 {
		written(t)(source.Add(pod{Name: "n", N: i}))
		written(t)(source.Delete("n"))
	}
	<-faults
	written(t)(source.Add(pod{Name: "last"}))
	enginetest.Expect(t, w, enginetest.Added(pod{Name: "last"}))
	require.Len(t, e.List(engine.ListOptions{}).Items, 1)
}
