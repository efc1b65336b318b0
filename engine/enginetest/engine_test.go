package enginetest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
)

func TestEngine_PassesIfUsedWell(t *testing.T) {
	for name, opts := range map[string]enginetest.Options{"pool": {}, "deterministic": enginetest.Deterministic(7)} {
		t.Run(name, func(t *testing.T) {
			e := enginetest.NewWith(t, pods(), opts)
			w := e.Watch(engine.WatchOptions{})
			a := pod{Name: "a"}
			rev := e.Create(a).Revision
			require.Equal(t, rev, e.Put(a).Revision, "no change")
			require.Equal(t, 1, e.Update("a", func(p pod) pod { p.N++; return p }).Value.N)
			require.Equal(t, 1, e.Get("a").Value.N)
			require.Len(t, e.List(engine.ListOptions{}).Items, 1)
			require.Equal(t, "a", e.Delete("a").Key)
			e.Emit(pod{Name: "b"})
			enginetest.ExpectExactly(t, w,
				enginetest.Added(a).At(rev), enginetest.Modified(pod{Name: "a", N: 1}),
				enginetest.Deleted(pod{Name: "a", N: 1}), enginetest.Emitted(pod{Name: "b"}))
			require.Empty(t, e.List(engine.ListOptions{}).Items)
		})
	}
}

func TestNew_RevisionsStartAtOneOrWhereTheConfigurationSays(t *testing.T) {
	cfg := pods()
	require.Equal(t, engine.Revision(2), enginetest.New(t, cfg).Create(pod{Name: "a"}).Revision)
	cfg.FirstRevision = 100
	require.Equal(t, engine.Revision(101), enginetest.New(t, cfg).Create(pod{Name: "a"}).Revision)
}

func TestEngine_CallsFailTheTest(t *testing.T) {
	for name, c := range map[string]struct {
		call func(e *enginetest.Engine[pod])
		want string
	}{
		"create": {func(e *enginetest.Engine[pod]) { e.Create(pod{}) }, `enginetest: Create: invalid key ""`},
		"put":    {func(e *enginetest.Engine[pod]) { e.Put(pod{}) }, `enginetest: Put: invalid key ""`},
		"update": {func(e *enginetest.Engine[pod]) { e.Update("x", nil) }, `enginetest: Update "x": `},
		"delete": {func(e *enginetest.Engine[pod]) { e.Delete("x") }, `enginetest: Delete "x": `},
		"get":    {func(e *enginetest.Engine[pod]) { e.Get("x") }, `enginetest: Get "x": `},
		"emit":   {func(e *enginetest.Engine[pod]) { e.Emit(pod{}) }, `enginetest: Emit: invalid key ""`},
		"list":   {func(e *enginetest.Engine[pod]) { e.List(engine.ListOptions{Limit: -1}) }, "enginetest: List: invalid list options"},
		"watch":  {func(e *enginetest.Engine[pod]) { e.Watch(engine.WatchOptions{Last: -1}) }, "enginetest: Watch: invalid watch options"},
		"advance": {func(e *enginetest.Engine[pod]) { e.Advance(1) },
			"enginetest: Advance needs a virtual clock: give NewWith enginetest.Deterministic(seed)"},
	} {
		t.Run(name, func(t *testing.T) {
			failures := failuresOf(t, func(r *recorder) {
				c.call(enginetest.New(r, pods()))
				r.Errorf("the test went on")
			})
			require.Len(t, failures, 1)
			require.Contains(t, failures[0], c.want)
		})
	}
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	shared := pods()
	shared.Host = host
	for want, test := range map[string]func(r *recorder){
		"BookmarkPeriod is neg":        func(r *recorder) { enginetest.New(r, engine.Config[pod]{BookmarkPeriod: -1}) },
		"CloseTimeout and Config.Host": func(r *recorder) { enginetest.NewWith(r, shared, enginetest.Options{CloseTimeout: 1}) },
		"Seed is set without":          func(r *recorder) { enginetest.NewWith(r, pods(), enginetest.Options{Seed: 1}) },
		"exclude each other":           func(r *recorder) { enginetest.NewWith(r, shared, enginetest.Deterministic(1)) },
		"CloseTimeout is negative":     func(r *recorder) { enginetest.NewWith(r, pods(), enginetest.Options{CloseTimeout: -1}) },
	} {
		failures := failuresOf(t, test)
		require.Len(t, failures, 1)
		require.Contains(t, failures[0], want)
	}
}

func TestAdvance_FiresTimersOneByOne(t *testing.T) {
	e := enginetest.NewWith(t, pods(), enginetest.Deterministic(3))
	w := e.Watch(engine.WatchOptions{Bookmarks: true})
	_, err := e.Engine().CreateWith(t.Context(), pod{Name: "a"}, engine.CreateOptions{TTL: time.Minute})
	require.NoError(t, err)
	enginetest.ExpectExactly(t, w, enginetest.Added(pod{Name: "a"}))
	e.Advance(59 * time.Second)
	require.Equal(t, enginetest.Epoch.Add(59*time.Second), e.Host().Clock().Now())
	enginetest.Expect(t, w)
	e.Advance(time.Second)
	enginetest.Expect(t, w, enginetest.Deleted(pod{Name: "a"}))
	for range 3 {
		e.Advance(2 * time.Minute)
		enginetest.Expect(t, w, enginetest.Bookmark())
	}
}

// A program that has goroutines and timers of its own is tested in a bubble, in which the engine's
// time is the bubble's.
func TestNew_InABubbleOfSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginetest.New(t, pods())
		w, err := e.Engine().Watch(t.Context(), engine.WatchOptions{})
		require.NoError(t, err)
		types, consumed := make(chan engine.EventType, 2), make(chan error)
		go func() {
			for ev, err := range w.Events() {
				if err != nil {
					consumed <- err
					return
				}
				types <- ev.Type
			}
		}()
		_, err = e.Engine().CreateWith(t.Context(), pod{Name: "a"}, engine.CreateOptions{TTL: time.Hour})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, engine.Added, <-types)
		require.Empty(t, types, "it has not expired")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, engine.Deleted, <-types)
		w.Stop()
		require.ErrorIs(t, <-consumed, engine.ErrStopped)
	})
}

// A handler may wait for the engine in a deterministic run, too. A wait that nothing can end
// is an error there.
func TestDeterministic_HandlersMayWait(t *testing.T) {
	e := enginetest.NewWith(t, pods(), enginetest.Deterministic(5))
	var inner *engine.Watch[pod]
	_, err := e.Engine().Handle(t.Context(), engine.WatchOptions{Prefix: "outer"}, func(ev engine.Event[pod]) {
		var err error
		inner, err = e.Engine().Watch(t.Context(), engine.WatchOptions{Prefix: "inner"})
		require.NoError(t, err)
		written, err := e.Engine().Create(t.Context(), pod{Name: "inner/a"})
		require.NoError(t, err)
		events, err := inner.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, written.Revision, events[0].Revision)
		_, err = e.Engine().Get(t.Context(), "inner/a", engine.GetOptions{Read: engine.NotOlderThan(written.Revision)})
		require.NoError(t, err)
		require.ErrorIs(t, e.Engine().WaitForRevision(t.Context(), written.Revision+1), engine.ErrIdle)
	})
	require.NoError(t, err)
	e.Put(pod{Name: "outer/a"})
	e.Advance(time.Second)
	require.NotNil(t, inner)
	enginetest.ExpectNothing(t, e.Adopt(inner))
}

func TestLeak_OfAGoroutineThatAHandlerStarts(t *testing.T) {
	release := make(chan struct{})
	failures := failuresOf(t, func(r *recorder) {
		e := enginetest.New(r, pods())
		handled := make(chan struct{})
		_, err := e.Engine().Handle(r.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {
			go forgotten(release)
			close(handled)
		})
		require.NoError(t, err)
		e.Create(pod{Name: "a"})
		<-handled
	})
	close(release)
	require.Len(t, failures, 1)
	require.Contains(t, failures[0], "enginetest: goroutines outlive the engine")
	require.Contains(t, failures[0], "enginetest_test.forgotten", "it is named")
}

func forgotten(release <-chan struct{}) { <-release }

func TestLeak_GoroutinesOfParallelTestsAreNotLookedAt(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	r := record(t, &recorder{isParallel: true}, func(r *recorder) {
		enginetest.New(r, pods())
		go forgotten(release)
	})
	require.Empty(t, r.failures)
	require.Len(t, r.logs, 1)
	require.Contains(t, r.logs[0], "goroutines are not checked in a parallel test")
}

func TestLeak_RecognisesParallelTests(t *testing.T) {
	for range 2 {
		t.Run("beside", func(t *testing.T) {
			t.Parallel()
			e := enginetest.New(t, pods())
			e.Create(pod{Name: "a"})
		})
	}
}

func TestLeak_OfAHandlerThatDoesNotReturn(t *testing.T) {
	release := make(chan struct{})
	var host *engine.Host
	failures := failuresOf(t, func(r *recorder) {
		e := enginetest.NewWith(r, pods(), enginetest.Options{CloseTimeout: time.Millisecond, AllowGoroutines: true})
		host = e.Host()
		handling := make(chan struct{})
		_, err := e.Engine().Handle(r.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {
			close(handling)
			<-release
		})
		require.NoError(t, err)
		e.Create(pod{Name: "a"})
		<-handling
	})
	close(release)
	require.NoError(t, closeInTheEnd(host))
	require.Len(t, failures, 1)
	require.Contains(t, failures[0], "enginetest: the engine does not close; something in it is still running")
	require.Contains(t, failures[0], "dispatcher", "what waits is named")
}

func TestLeak_OfActors(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	cfg := pods()
	cfg.Host, cfg.Name = host, "pods"
	forgotten, err := engine.New(cfg)
	require.NoError(t, err)
	_, err = forgotten.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {})
	require.NoError(t, err)

	failures := failuresOf(t, func(r *recorder) { enginetest.CheckLeaks(r, host) })
	require.Equal(t, []string{"enginetest: 5 actors are left on the host: pods, pods/dispatcher, pods/reflector, pods/watchCache, 1 wake actors: " +
		"close the engines and topics that they belong to"}, failures)

	require.NoError(t, forgotten.Close())
	require.Empty(t, failuresOf(t, func(r *recorder) { enginetest.CheckLeaks(r, host) }))
}

func TestLeak_OfATimer(t *testing.T) {
	failures := failuresOf(t, func(r *recorder) {
		e := enginetest.NewWith(r, pods(), enginetest.Deterministic(1))
		e.Host().Clock().AfterFunc(time.Hour, func() {})
	})
	require.Equal(t, []string{"enginetest: 1 timers are left on the host's clock, but no actor: stop what AfterFunc returned before the engine is closed"}, failures)
}

func TestMutation_FailsTheTest(t *testing.T) {
	type box struct {
		Name string
		Tags map[string]string
	}
	cfg := engine.Config[box]{Key: func(b box) string { return b.Name }}
	mutate := func(opts enginetest.Options) func(r *recorder) {
		return func(r *recorder) {
			e := enginetest.NewWith(r, cfg, opts)
			e.Create(box{"a", map[string]string{"color": "red"}})
			e.Get("a").Value.Tags["color"] = "blue"
		}
	}
	failures := failuresOf(t, mutate(enginetest.Deterministic(1)))
	require.Len(t, failures, 1)
	require.Contains(t, failures[0], `enginetest: shared object "a" at revision 2 was changed in place`)
	require.Empty(t, failuresOf(t, mutate(enginetest.Options{AllowMutations: true})))
}

func TestOnError_GetsErrorsIfConfigured(t *testing.T) {
	source := enginetest.NewSource(pods())
	told := make(chan error, 10)
	cfg := pods()
	cfg.Backend, cfg.OnError = source, func(err error) { told <- err }
	broken := errors.New("broken")
	source.FailList(1, broken)
	e := enginetest.NewWith(t, cfg, enginetest.Deterministic(1))
	e.Advance(time.Minute)
	require.ErrorIs(t, <-told, broken)
}

// closeInTheEnd closes a host whose CloseTimeout is too short for it.
func closeInTheEnd(host *engine.Host) (err error) {
	for range 10_000 {
		if err = host.Close(); err == nil {
			return nil
		}
	}
	return err
}

// The engine's OnEnd is told of the watches of the test, not of those by which an expectation waits.
func TestOnEnd_IsToldOfTheTestsOwnWatches(t *testing.T) {
	cfg := pods()
	var ended []string
	cfg.OnEnd = func(end engine.WatchEnd) { ended = append(ended, end.Name) }
	e := enginetest.NewWith(t, cfg, enginetest.Deterministic(1))
	w := e.Watch(engine.WatchOptions{Name: "mine"})
	e.Create(pod{Name: "a"})
	enginetest.ExpectExactly(t, w, enginetest.Added(pod{Name: "a"}))
	w.Stop()
	enginetest.ExpectEnd(t, w, engine.ErrStopped)
	e.Advance(time.Second)
	require.Equal(t, []string{"mine"}, ended)
}
