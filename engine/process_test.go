package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

var errDatabase = errors.New("the database is down")

// attempts is a handler that fails with some events for a number of times, and
// notes each call with the time since the first one.
type attempts struct {
	now   func() time.Time
	start time.Time
	fail  map[string]int
	how   func(key string) error
	calls []string
}

func newAttempts(f *fixture, fail map[string]int) *attempts {
	return &attempts{now: f.clock.Now, start: f.clock.Now(), fail: fail, how: func(string) error { return errDatabase }}
}

func (a *attempts) handle(_ context.Context, ev engine.Event[thing]) error {
	a.calls = append(a.calls, fmt.Sprint(ev.Key(), " ", a.now().Sub(a.start)))
	if a.fail[ev.Key()] > 0 {
		a.fail[ev.Key()]--
		return a.how(ev.Key())
	}
	return nil
}

// The pauses double up to the longest, later events wait, and each event begins
// anew.
func TestProcess_TriesAgainAfterGrowingPauses(t *testing.T) {
	for _, noCache := range []bool{false, true} {
		t.Run(fmt.Sprint("NoCache=", noCache), func(t *testing.T) {
			f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) { c.NoCache = noCache })
			a := newAttempts(f, map[string]int{"b": 4, "c": 1})
			policy := engine.ErrorPolicy{Backoff: 100 * time.Millisecond, MaxBackoff: 300 * time.Millisecond}
			w, err := f.engine.Process(t.Context(), engine.WatchOptions{}, policy, a.handle)
			require.NoError(t, err)
			beside := f.watch(engine.WatchOptions{})
			f.put("a")
			b := f.put("b")
			f.put("c")
			require.Equal(t, []string{"a 0s", "b 0s"}, a.calls)
			require.Equal(t, b-1, w.Revision())
			require.EqualValues(t, 2, w.Lag(), "b and c are not handled")
			f.requireReads(beside, "ADDED a@2", "ADDED b@3", "ADDED c@4")
			f.pass(2 * time.Second)
			require.Equal(t, []string{"a 0s", "b 0s", "b 100ms", "b 300ms", "b 600ms", "b 900ms", "c 900ms", "c 1s"}, a.calls)
			require.NoError(t, w.Err())
			require.Equal(t, b+1, w.Revision())
			require.Zero(t, w.Lag())
		})
	}
}

func TestProcess_LastErrorEndsTheWatchBeforeTheEvent(t *testing.T) {
	var told []string
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) {
		c.OnEnd = func(end engine.WatchEnd) { told = append(told, end.Name+": "+end.Err.Error()) }
	})
	a := newAttempts(f, map[string]int{"b": 3})
	w, err := f.engine.Process(t.Context(), engine.WatchOptions{Name: "billing"}, engine.ErrorPolicy{Attempts: 3}, a.handle)
	require.NoError(t, err)
	for _, key := range []string{"a", "b", "c"} {
		f.put(key)
	}
	f.pass(time.Second)
	require.Equal(t, []string{"a 0s", "b 0s", "b 100ms", "b 300ms"}, a.calls)
	require.ErrorIs(t, w.Err(), engine.ErrHandler)
	require.ErrorIs(t, w.Err(), errDatabase)
	var failed *engine.HandlerError
	require.ErrorAs(t, w.Err(), &failed)
	require.Equal(t, engine.HandlerError{Revision: 3, Key: "b", Attempts: 3, Err: errDatabase}, *failed)
	require.Equal(t, []string{`billing: billing: watch handler failed 3 times on "b" at revision 3: the database is down`}, told)
	require.EqualValues(t, 2, w.Revision(), "b can be had again")
	f.requireReads(f.watch(engine.WatchOptions{From: w.Revision()}), "ADDED b@3", "ADDED c@4")
}

func TestProcess_SkipsAndReports(t *testing.T) {
	var reported []error
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) {
		c.OnError = func(err error) { reported = append(reported, err) }
	})
	a := newAttempts(f, map[string]int{"b": 2, "c": 1})
	policy := engine.ErrorPolicy{Attempts: 2, Skip: true}
	w, err := f.engine.Process(t.Context(), engine.WatchOptions{Name: "billing"}, policy, a.handle)
	require.NoError(t, err)
	for _, key := range []string{"a", "b", "c"} {
		f.put(key)
	}
	f.pass(time.Second)
	require.Equal(t, []string{"a 0s", "b 0s", "b 100ms", "c 100ms", "c 200ms"}, a.calls, "c has as many attempts as b")
	require.NoError(t, w.Err())
	require.Len(t, reported, 1)
	require.ErrorIs(t, reported[0], errDatabase)
	require.EqualError(t, reported[0], `billing: event skipped: watch handler failed 2 times on "b" at revision 3: the database is down`)
}

// A panic is an error like any other.
func TestProcess_PanicIsTriedAgain(t *testing.T) {
	f := newFixture(t, nil)
	a := newAttempts(f, map[string]int{"a": 1, "b": 2})
	a.how = func(key string) error { panic("no " + key) }
	w, err := f.engine.Process(t.Context(), engine.WatchOptions{}, engine.ErrorPolicy{Attempts: 2}, a.handle)
	require.NoError(t, err)
	f.put("a")
	f.pass(time.Second)
	require.Len(t, a.calls, 2)
	require.NoError(t, w.Err())
	f.put("b")
	f.pass(time.Second)
	require.ErrorIs(t, w.Err(), engine.ErrHandler)
	var panicked *engine.PanicError
	require.ErrorAs(t, w.Err(), &panicked)
	require.Equal(t, "no b", panicked.Value)
	require.Contains(t, string(panicked.Stack), "process_test.go")
	require.Empty(t, f.failures, "no actor failed")
}

// A watch that ends in a pause leaves no timer, and the event is not called again.
// The fixture checks that none outlives the engine.
func TestProcess_StopInAPause(t *testing.T) {
	f := newFixture(t, nil)
	a := newAttempts(f, map[string]int{"a": 9})
	w, err := f.engine.Process(t.Context(), engine.WatchOptions{}, engine.ErrorPolicy{Backoff: time.Hour, MaxBackoff: time.Hour}, a.handle)
	require.NoError(t, err)
	f.put("first")
	timers := f.engine.Host().Timers()
	f.put("a")
	require.Equal(t, timers+1, f.engine.Host().Timers())
	w.Stop()
	f.executor.Run()
	require.Equal(t, timers, f.engine.Host().Timers())
	require.Equal(t, []string{"first 0s", "a 0s"}, a.calls)
	require.ErrorIs(t, w.Err(), engine.ErrStopped)
	require.EqualValues(t, 2, w.Revision())
}

// Draining waits for events that are tried again.
func TestProcess_DrainWaitsForPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topic := engine.NewTopic[int]()
		var handled []int
		failures := 3
		_, err := topic.Process(t.Context(), engine.SubscribeOptions{}, engine.ErrorPolicy{}, func(_ context.Context, n int) error {
			if n == 2 && failures > 0 {
				failures--
				return errDatabase
			}
			handled = append(handled, n)
			return nil
		})
		require.NoError(t, err)
		publish(t, topic, 0, 5)
		began := time.Now()
		require.NoError(t, topic.Drain(t.Context()))
		require.Equal(t, []int{0, 1, 2, 3, 4}, handled)
		require.Equal(t, 700*time.Millisecond, time.Since(began))
	})
}

// The context that a handler waits on ends with whatever ends its watch, even while
// the handler holds the only worker.
func TestProcess_ContextEndsWithTheWatch(t *testing.T) {
	errEnough := errors.New("that is enough")
	for name, test := range map[string]struct {
		end    func(t *testing.T, w waitingHandler)
		reason error
	}{
		"Stop":                {func(_ *testing.T, w waitingHandler) { w.watch.Stop() }, engine.ErrStopped},
		"the watch's context": {func(_ *testing.T, w waitingHandler) { w.cancel(errEnough) }, errEnough},
		"Close":               {func(t *testing.T, w waitingHandler) { require.NoError(t, w.engine.Close()) }, engine.ErrEngineClosed},
		"the host's Close":    {func(t *testing.T, w waitingHandler) { require.NoError(t, w.engine.Host().Close()) }, engine.ErrEngineClosed},
	} {
		for _, onPool := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/pool=%t", name, onPool), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := startWaitingHandler(t, onPool)
					began := time.Now()
					test.end(t, w)
					require.ErrorIs(t, <-w.ended, test.reason)
					<-w.watch.Done()
					require.ErrorIs(t, w.watch.Err(), test.reason)
					require.NotErrorIs(t, w.watch.Err(), engine.ErrHandler, "an error after the end does not count")
					require.EqualValues(t, 1, w.watch.Revision(), "the event is not handled")
					require.NoError(t, w.engine.Close())
					require.NoError(t, w.engine.Host().Close())
					require.Zero(t, time.Since(began))
					require.EqualValues(t, 1, w.calls.Load())
				})
			})
		}
	}
}

// The deadline of the call that starts a detached watch is not its handler's: what the
// handler does with its context later would have timed out before it began.
func TestProcess_DetachedHandlerHasNoDeadlineOfTheStart(t *testing.T) {
	type key struct{}
	for _, detached := range []bool{false, true} {
		t.Run(fmt.Sprint("detached=", detached), func(t *testing.T) {
			e, ctx := newEngine(t, nil)
			start, cancel := context.WithTimeout(context.WithValue(ctx, key{}, "value"), time.Minute)
			defer cancel()
			handlers := make(chan context.Context, 1)
			_, err := e.Process(start, engine.WatchOptions{Detached: detached}, engine.ErrorPolicy{},
				func(ctx context.Context, _ engine.Event[pod]) error {
					handlers <- ctx
					return nil
				})
			require.NoError(t, err)
			_, err = e.Put(ctx, pod{Name: "a"})
			require.NoError(t, err)
			handler := <-handlers
			require.Equal(t, "value", handler.Value(key{}))
			_, bounded := handler.Deadline()
			require.Equal(t, !detached, bounded)
		})
	}
}

// waitingHandler is a handler that waits, with the first of two events, until its
// context ends.
type waitingHandler struct {
	engine *engine.Engine[pod]
	watch  *engine.Watch[pod]
	cancel context.CancelCauseFunc // of the watch's context
	calls  *atomic.Int32
	ended  chan error // why the handler's context ended
}

// startWaitingHandler returns when the handler waits, on a host with one worker. Its
// context has the values of the watch's.
func startWaitingHandler(t *testing.T, onPool bool) waitingHandler {
	type key struct{}
	host, err := engine.NewHost(engine.HostConfig{Workers: 1})
	require.NoError(t, err)
	c := cfg()
	c.Host = host
	e, err := engine.New(c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
	t.Cleanup(func() { cancel(nil) })
	w := waitingHandler{engine: e, cancel: cancel, calls: new(atomic.Int32), ended: make(chan error, 1)}
	w.watch, err = e.Process(ctx, engine.WatchOptions{OnPool: onPool}, engine.ErrorPolicy{Attempts: 1},
		func(ctx context.Context, _ engine.Event[pod]) error {
			w.calls.Add(1)
			require.Equal(t, "value", ctx.Value(key{}))
			child, stop := context.WithCancel(ctx)
			defer stop()
			<-child.Done()
			w.ended <- context.Cause(ctx)
			return ctx.Err()
		})
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		_, err = e.Create(ctx, pod{Name: name})
		require.NoError(t, err)
	}
	synctest.Wait() // until the handler waits
	return w
}

func TestProcess_RefusesWhatCannotBe(t *testing.T) {
	e, ctx := newEngine(t, nil)
	topic := topicOn(t, engine.TopicOptions{})
	_, err := e.Process(ctx, engine.WatchOptions{}, engine.ErrorPolicy{}, nil)
	require.ErrorIs(t, err, engine.ErrNilHandler)
	_, err = topic.Process(ctx, engine.SubscribeOptions{}, engine.ErrorPolicy{}, nil)
	require.ErrorIs(t, err, engine.ErrNilHandler)
	for field, policy := range map[string]engine.ErrorPolicy{
		"ErrorPolicy.Attempts": {Attempts: -1}, "ErrorPolicy.Backoff": {Backoff: -1}, "ErrorPolicy.MaxBackoff": {MaxBackoff: -1},
	} {
		_, err := e.Process(ctx, engine.WatchOptions{}, policy, func(context.Context, engine.Event[pod]) error { return nil })
		var wrong *engine.ConfigError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, field, wrong.Field)
		_, err = topic.Process(ctx, engine.SubscribeOptions{}, policy, func(context.Context, int) error { return nil })
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, field, wrong.Field)
	}
}

func ExampleEngine_Process() {
	ctx := context.Background()
	pods := newNodes(ctx)
	defer pods.Close()
	index := map[string]string{}
	lost := true // the connection to the index
	w, err := pods.Process(ctx, engine.WatchOptions{InitialState: true}, engine.ErrorPolicy{Backoff: time.Millisecond},
		func(_ context.Context, ev engine.Event[Pod]) error {
			if lost {
				lost = false
				return errors.New("connection lost")
			}
			index[ev.Key()] = ev.Object.Value.Node
			if ev.Key() == "default/web-9" {
				return errors.New("no such index")
			}
			return nil
		})
	must(err)
	_, err = pods.Create(ctx, Pod{Namespace: "default", Name: "web-9", Node: "n3"})
	must(err)
	<-w.Done()
	fmt.Println(len(index), "indexed")
	var failed *engine.HandlerError
	if errors.As(w.Err(), &failed) {
		fmt.Println(failed)
	}
	// Output:
	// 4 indexed
	// watch handler failed 5 times on "default/web-9" at revision 5: no such index
}

func ExampleTopic_Process() {
	ctx := context.Background()
	mails := engine.NewTopicWith[string](engine.TopicOptions{OnError: func(err error) { fmt.Println("given up:", errors.Unwrap(errors.Unwrap(err))) }})
	_, err := mails.Process(ctx, engine.SubscribeOptions{Name: "sender"}, engine.ErrorPolicy{Attempts: 1, Skip: true},
		func(_ context.Context, to string) error {
			if to == "" {
				return errors.New("no recipient")
			}
			fmt.Println("sent to", to)
			return nil
		})
	must(err)
	for _, to := range []string{"ada", "", "grace"} {
		_, err := mails.Publish(ctx, to)
		must(err)
	}
	must(mails.Drain(ctx))
	// Output:
	// sent to ada
	// given up: no recipient
	// sent to grace
}

// A Backoff above the default of MaxBackoff is not cut down to that.
func TestProcess_PausesAreAsLongAsBackoffSays(t *testing.T) {
	f := newFixture(t, nil)
	a := newAttempts(f, map[string]int{"a": 2})
	policy := engine.ErrorPolicy{Backoff: 5 * time.Minute}
	_, err := f.engine.Process(t.Context(), engine.WatchOptions{}, policy, a.handle)
	require.NoError(t, err)
	f.put("a")
	for range 10 {
		f.clock.Advance(time.Minute)
		f.executor.Run()
	}
	require.Equal(t, []string{"a 0s", "a 5m0s", "a 10m0s"}, a.calls)
}

// A pause that cannot double is the longest, and not one in the past.
func TestProcess_PausesDoNotOverflow(t *testing.T) {
	var said bytes.Buffer
	f := newFixture(t, func(h *engine.HostConfig, _ *engine.Config[thing]) {
		h.Logger = slog.New(slog.NewTextHandler(&said, nil))
	})
	a := newAttempts(f, map[string]int{"a": 2})
	policy := engine.ErrorPolicy{Backoff: math.MaxInt64/2 + 2, MaxBackoff: math.MaxInt64}
	_, err := f.engine.Process(t.Context(), engine.WatchOptions{}, policy, a.handle)
	require.NoError(t, err)
	f.put("a")
	f.clock.Advance(policy.Backoff)
	f.executor.Run()
	require.GreaterOrEqual(t, len(a.calls), 2)
	require.Contains(t, said.String(), "attempts=2 pause="+policy.MaxBackoff.String())
}
