package enginetest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
)

// story writes two objects, of which the second changes, and deletes the first:
// revisions 2 to 5.
func story(e *enginetest.Engine[pod]) {
	e.Create(pod{Name: "a"})
	e.Create(pod{Name: "b"})
	e.Put(pod{Name: "b", N: 1})
	e.Delete("a")
}

var (
	addedA    = enginetest.Added(pod{Name: "a"})
	addedB    = enginetest.Added(pod{Name: "b"})
	modifiedB = enginetest.Modified(pod{Name: "b", N: 1})
	deletedA  = enginetest.Deleted(pod{Name: "a"})
)

func TestExpect_PassesIfMet(t *testing.T) {
	uncached := pods()
	uncached.NoCache = true
	for name, open := range map[string]func(t *testing.T) *enginetest.Engine[pod]{
		"pool": func(t *testing.T) *enginetest.Engine[pod] { return enginetest.New(t, pods()) },
		"deterministic": func(t *testing.T) *enginetest.Engine[pod] {
			return enginetest.NewWith(t, pods(), enginetest.Deterministic(1))
		},
		"without cache": func(t *testing.T) *enginetest.Engine[pod] { return enginetest.New(t, uncached) },
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t)
			all, some, none := e.Watch(engine.WatchOptions{}), e.Watch(engine.WatchOptions{Key: "b"}), e.Watch(engine.WatchOptions{Labels: "app=db"})
			enginetest.ExpectNothing(t, all)
			story(e)
			enginetest.ExpectExactly(t, some, addedB, modifiedB)
			enginetest.Expect(t, all, addedA, modifiedB)
			enginetest.Expect(t, all, deletedA.At(5))
			enginetest.ExpectNothing(t, all)
			enginetest.ExpectNothing(t, none)

			state := e.Watch(engine.WatchOptions{InitialState: true, Bookmarks: true})
			enginetest.ExpectExactly(t, state, enginetest.Keyed(engine.Added, "b").Marked(engine.Initial), enginetest.InitialEnd())
			state.Stop()
			enginetest.ExpectEnd(t, state, engine.ErrStopped)
			enginetest.ExpectEnd(t, state, engine.ErrStopped)
		})
	}
}

// A machine may pause for longer than an engine waits for a revision, but not for ever.
func TestExpect_WaitsForAnEngineThatIsLate(t *testing.T) {
	for delay, says := range map[time.Duration]string{
		2 * engine.DefaultFreshnessTimeout:  "",
		10 * engine.DefaultFreshnessTimeout: "waiting until revision 2 is dispatched: too large revision: 2",
	} {
		synctest.Test(t, func(t *testing.T) {
			failures := failuresOf(t, func(r *recorder) {
				cfg := pods()
				source := enginetest.NewSource(cfg)
				cfg.Backend = source
				e := enginetest.NewWith(r, cfg, enginetest.Options{AllowGoroutines: true})
				w := e.Watch(engine.WatchOptions{})
				source.Stall()
				defer time.AfterFunc(delay, source.Resume).Stop()
				e.Create(pod{Name: "a"})
				enginetest.ExpectExactly(r, w, addedA)
			})
			if says == "" {
				require.Empty(t, failures)
				return
			}
			require.Len(t, failures, 1)
			require.Contains(t, failures[0], says)
		})
	}
}

// unmet are expectations that must fail, with what each must say.
var unmet = map[string]struct {
	expect func(t testing.TB, w *enginetest.Watch[pod])
	says   string
}{
	"missing": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			enginetest.ExpectExactly(t, w, addedA, enginetest.Keyed(engine.Added, "x"), addedB, modifiedB, deletedA)
		}, `
enginetest: the events are not those expected:
    ADDED a@2 {Name:a App: N:0}
  - ADDED x
    ADDED b@3 {Name:b App: N:0}
    MODIFIED b@4 {Name:b App: N:1}
    DELETED a@5 {Name:a App: N:0}`,
	},
	"extra": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			enginetest.ExpectExactly(t, w, addedA, modifiedB, deletedA)
		}, `
enginetest: the events are not those expected:
    ADDED a@2 {Name:a App: N:0}
  + ADDED b@3 {Name:b App: N:0}
    MODIFIED b@4 {Name:b App: N:1}
    DELETED a@5 {Name:a App: N:0}`,
	},
	"reordered": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			enginetest.ExpectExactly(t, w, addedB, addedA, modifiedB, deletedA)
		}, `
enginetest: the events are not those expected:
  - ADDED {Name:b App: N:0}
    ADDED a@2 {Name:a App: N:0}
  + ADDED b@3 {Name:b App: N:0}
    MODIFIED b@4 {Name:b App: N:1}
    DELETED a@5 {Name:a App: N:0}`,
	},
	"nothing expected": {
		func(t testing.TB, w *enginetest.Watch[pod]) { enginetest.ExpectNothing(t, w) }, `
enginetest: the events are not those expected:
  + ADDED a@2 {Name:a App: N:0}
  + ADDED b@3 {Name:b App: N:0}
  + MODIFIED b@4 {Name:b App: N:1}
  + DELETED a@5 {Name:a App: N:0}`,
	},
	"a mark": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			enginetest.ExpectExactly(t, w, addedA, addedB, modifiedB, deletedA.Marked(engine.Synthetic))
		}, `
enginetest: the events are not those expected:
    ADDED a@2 {Name:a App: N:0}
    ADDED b@3 {Name:b App: N:0}
    MODIFIED b@4 {Name:b App: N:1}
  - DELETED synthetic {Name:a App: N:0}
  + DELETED a@5 {Name:a App: N:0}`,
	},
	"a revision": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			enginetest.ExpectExactly(t, w, addedA, addedB, modifiedB, deletedA.At(6))
		}, `
enginetest: the events are not those expected:
    ADDED a@2 {Name:a App: N:0}
    ADDED b@3 {Name:b App: N:0}
    MODIFIED b@4 {Name:b App: N:1}
  - DELETED@6 {Name:a App: N:0}
  + DELETED a@5 {Name:a App: N:0}`,
	},
	"a mark at a revision": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			enginetest.ExpectExactly(t, w, addedA, addedB, modifiedB, deletedA.At(5).Marked(engine.Synthetic))
		}, `
enginetest: the events are not those expected:
    ADDED a@2 {Name:a App: N:0}
    ADDED b@3 {Name:b App: N:0}
    MODIFIED b@4 {Name:b App: N:1}
  - DELETED@5 synthetic {Name:a App: N:0}
  + DELETED a@5 {Name:a App: N:0}`,
	},
	"never came": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			enginetest.Expect(t, w, deletedA, addedA)
		}, `
enginetest: ADDED {Name:a App: N:0} did not come:
  - DELETED {Name:a App: N:0}
    ADDED a@2 {Name:a App: N:0}
  + ADDED b@3 {Name:b App: N:0}
  + MODIFIED b@4 {Name:b App: N:1}
  + DELETED a@5 {Name:a App: N:0}`,
	},
	"never came to an ended watch": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			w.Stop()
			enginetest.Expect(t, w, enginetest.Bookmark())
		}, `
enginetest: BOOKMARK did not come (the watch has ended: w: watch stopped):
  - BOOKMARK`,
	},
	"not ended": {
		func(t testing.TB, w *enginetest.Watch[pod]) { enginetest.ExpectEnd(t, w, engine.ErrExpired) }, `
enginetest: the watch has not ended, it is at revision 5; wanted its end: revision expired`,
	},
	"ended otherwise": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			w.Stop()
			enginetest.ExpectEnd(t, w, engine.ErrExpired)
		}, `
enginetest: the watch ended for another reason
  got:    w: watch stopped
  wanted: revision expired`,
	},
	"of another type": {
		func(t testing.TB, w *enginetest.Watch[pod]) { enginetest.Expect(t, w, enginetest.Added(&pod{})) }, `
enginetest: ADDED is given a *enginetest_test.pod, but the watch is of enginetest_test.pod`,
	},
	"of a watch that is pulled otherwise": {
		func(t testing.TB, w *enginetest.Watch[pod]) {
			_ = w.Chan()
			enginetest.ExpectNothing(t, w)
		}, `
enginetest: watch already has a consumer: use one of Next, Events, Batches, Chan or Handle; expectations pull it themselves`,
	},
}

func TestExpect_SaysWhyIfNotMet(t *testing.T) {
	for name, c := range unmet {
		t.Run(name, func(t *testing.T) {
			failures := failuresOf(t, func(r *recorder) {
				e := enginetest.New(r, pods())
				w := e.Watch(engine.WatchOptions{Name: "w"})
				story(e)
				c.expect(r, w)
				r.Errorf("the test went on")
			})
			require.Equal(t, []string{strings.TrimPrefix(c.says, "\n")}, failures)
		})
	}
}

func TestExpect_ShowsHowValuesDiffer(t *testing.T) {
	failures := failuresOf(t, func(r *recorder) {
		e := enginetest.New(r, pods())
		w := e.Watch(engine.WatchOptions{})
		e.Create(pod{Name: "a", N: 1})
		enginetest.ExpectExactly(r, w, enginetest.Added(pod{Name: "a", N: 2}))
	})
	require.Len(t, failures, 1)
	// go-cmp varies its spaces on purpose.
	compact := strings.Join(strings.Fields(failures[0]), " ")
	require.Contains(t, compact, "- ADDED {Name:a App: N:2} + ADDED a@2 {Name:a App: N:1}")
	require.Contains(t, compact, "- N: 2, + N: 1,")
}

func TestExpect_SaysThatNothingCame(t *testing.T) {
	failures := failuresOf(t, func(r *recorder) {
		e := enginetest.New(r, pods())
		enginetest.ExpectExactly(r, e.Watch(engine.WatchOptions{}), enginetest.Bookmark())
	})
	require.Equal(t, []string{"enginetest: the events are not those expected:\n  - BOOKMARK"}, failures)
}

func TestExpect_WaitsForOthersAsLongAsItsPatience(t *testing.T) {
	e := enginetest.NewWith(t, pods(), enginetest.Options{Patience: time.Minute})
	w, ended := e.Watch(engine.WatchOptions{}), e.Watch(engine.WatchOptions{})
	done := make(chan error, 1)
	go func() {
		_, err := e.Engine().Create(context.Background(), pod{Name: "a"})
		ended.Stop()
		done <- err
	}()
	enginetest.Expect(t, w, addedA)
	enginetest.ExpectEnd(t, ended, engine.ErrStopped)
	require.NoError(t, <-done)
}

func TestExpect_EndsWithTheEngine(t *testing.T) {
	e := enginetest.New(t, pods())
	w := e.Watch(engine.WatchOptions{})
	require.NoError(t, e.Engine().Close())
	enginetest.ExpectEnd(t, w, engine.ErrEngineClosed)
}

// Drain waits for expectations to read the watch.
func TestExpect_WhileTheEngineDrains(t *testing.T) {
	e := enginetest.New(t, pods())
	w := e.Watch(engine.WatchOptions{})
	story(e)
	drained := make(chan error, 1)
	go func() { drained <- e.Engine().Drain(context.Background()) }()
	for draining := false; !draining; {
		_, err := e.Engine().Delete(t.Context(), "a", engine.DeleteOptions{})
		draining = errors.Is(err, engine.ErrDraining)
		runtime.Gosched()
	}
	enginetest.ExpectExactly(t, w, addedA, addedB, modifiedB, deletedA)
	require.NoError(t, <-drained)
	enginetest.ExpectEnd(t, w, engine.ErrEngineClosed)
}

func TestExpectEnd_OfAWatchWhoseContextWasDone(t *testing.T) {
	e := enginetest.New(t, pods())
	because := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	raw, err := e.Engine().Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	w := e.Adopt(raw)
	e.Create(pod{Name: "a"})
	enginetest.ExpectExactly(t, w, addedA)
	cancel(because)
	<-w.Done()
	enginetest.ExpectEnd(t, w, because)
}
