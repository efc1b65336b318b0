package engine_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// eachCall calls do with two of each kind of call to an engine.
func eachCall(ctx context.Context, e *engine.Engine[pod], do func(call func(n int) error)) {
	for g := range 2 {
		do(func(n int) error { _, err := e.Put(ctx, pod{Name: fmt.Sprint("pod", g), App: "web", N: n}); return err })
		do(func(int) error { _, err := e.List(ctx, engine.ListOptions{Labels: "app=web"}); return err })
		do(func(int) error {
			w, err := e.Watch(ctx, engine.WatchOptions{InitialState: true, Bookmarks: true})
			if err != nil {
				return err
			}
			for range 3 {
				if _, err := w.Next(ctx); err != nil {
					return err
				}
			}
			w.Stop()
			return nil
		})
		do(func(int) error {
			w, err := e.Handle(ctx, engine.WatchOptions{Policy: engine.Conflate, Buffer: 1}, func(engine.Event[pod]) {})
			if err == nil && g == 0 {
				w.Stop()
			}
			return err
		})
		do(func(int) error { return e.WaitForRevision(ctx, e.Revision()) })
		do(func(int) error {
			w, err := e.Watch(ctx, engine.WatchOptions{InitialState: true})
			if err != nil {
				return err
			}
			for range w.Chan() {
				w.Stop()
			}
			if err := w.Err(); !errors.Is(err, engine.ErrStopped) {
				return err
			}
			return nil
		})
	}
}

// Close comes while everything is under way on real threads. Every call ends,
// every watch says why, and nothing is left (goleak sees to the goroutines).
func TestClose_DuringEverything(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	c := cfg()
	c.Host = host
	e, err := engine.New(c)
	require.NoError(t, err)
	var busy sync.WaitGroup
	begun := make(chan struct{}, 64)
	// until repeats a call until it fails, and reports an error that says something
	// else than that the engine is closed.
	until := func(call func(n int) error) {
		busy.Go(func() {
			for n := 0; ; n++ {
				err := call(n)
				select {
				case begun <- struct{}{}:
				default:
				}
				if err == nil {
					continue
				}
				if !errors.Is(err, engine.ErrEngineClosed) && !errors.Is(err, store.ErrClosed) {
					t.Error(err)
				}
				return
			}
		})
	}
	eachCall(context.Background(), e, until)
	for range 64 {
		<-begun
	}
	errs := make([]error, 4)
	for i := range errs {
		busy.Go(func() { errs[i] = e.Close() })
	}
	busy.Wait()
	require.Equal(t, make([]error, 4), errs, "each Close succeeds")
	require.NoError(t, e.Close(), "once more")
	require.Zero(t, host.Actors())
	require.Zero(t, host.Timers())
	require.NoError(t, host.Close())
	require.NoError(t, host.Close(), "once more")
}

// Every method that returns an error says ErrEngineClosed after Close. The
// table must have them all.
func TestClose_LaterCallsSaySo(t *testing.T) {
	e, err := engine.New(cfg())
	require.NoError(t, err)
	w, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	ctx := t.Context()
	calls := map[string]func() error{
		"Create":     func() error { _, err := e.Create(ctx, pod{Name: "a"}); return err },
		"CreateWith": func() error { _, err := e.CreateWith(ctx, pod{Name: "a"}, engine.CreateOptions{TTL: 1}); return err },
		"Put":        func() error { _, err := e.Put(ctx, pod{Name: "a"}); return err },
		"PutWith":    func() error { _, err := e.PutWith(ctx, pod{Name: "a"}, engine.PutOptions{}); return err },
		"Update": func() error {
			_, err := e.Update(ctx, "a", func(p pod) (pod, error) { return p, nil }, engine.UpdateOptions{})
			return err
		},
		"Replace": func() error { _, err := e.Replace(ctx, pod{Name: "a"}, 1); return err },
		"Modify": func() error {
			_, err := e.Modify(ctx, "a", func(*engine.Object[pod]) (engine.Change[pod], error) { return engine.Change[pod]{}, nil }, engine.ModifyOptions{})
			return err
		},
		"Delete": func() error { _, err := e.Delete(ctx, "a", engine.DeleteOptions{}); return err },
		"DeleteIf": func() error {
			_, err := e.DeleteIf(ctx, "a", func(*engine.Object[pod]) error { return nil }, engine.DeleteOptions{})
			return err
		},
		"Emit":            func() error { _, err := e.Emit(ctx, pod{Name: "a"}); return err },
		"Get":             func() error { _, err := e.Get(ctx, "a", engine.GetOptions{}); return err },
		"List":            func() error { _, err := e.List(ctx, engine.ListOptions{Read: engine.Cached()}); return err },
		"ByIndex":         func() error { _, err := e.ByIndex(ctx, "app", "web"); return err },
		"Checkpoint":      func() error { _, err := e.Checkpoint(ctx, 1); return err },
		"RevisionOf":      func() error { _, err := e.RevisionOf(ctx, engine.Checkpoint{Store: "x", Revision: 1}); return err },
		"Compact":         func() error { return e.Compact(ctx, 1) },
		"WaitForRevision": func() error { return e.WaitForRevision(ctx, 1) },
		"WaitReady":       func() error { return e.WaitReady(ctx) },
		"Timeline":        func() error { _, err := e.Timeline(ctx); return err },
		"Verify":          func() error { return e.Verify(ctx) },
		"Watch":           func() error { _, err := e.Watch(ctx, engine.WatchOptions{}); return err },
		"Process": func() error {
			_, err := e.Process(ctx, engine.WatchOptions{}, engine.ErrorPolicy{}, func(context.Context, engine.Event[pod]) error { return nil })
			return err
		},
		"Handle": func() error { _, err := e.Handle(ctx, engine.WatchOptions{}, func(engine.Event[pod]) {}); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, call(), engine.ErrEngineClosed) })
	}
	failing := reflect.TypeFor[error]()
	for method := range reflect.TypeFor[*engine.Engine[pod]]().Methods() {
		if n := method.Type.NumOut(); n == 0 || method.Type.Out(n-1) != failing || method.Name == "Close" || method.Name == "Drain" {
			continue
		}
		require.Contains(t, calls, method.Name, "the table lacks a method")
	}
	require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
	require.False(t, e.Stats().Ready, "Stats, Revision, Host and Backend can still be asked")
	require.NotNil(t, e.Host())
	require.NotNil(t, e.Backend())
	require.Equal(t, engine.Revision(1), e.Revision())
}

func TestClose_EngineOnAClosedHostIsRefused(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	require.NoError(t, host.Close())
	c := cfg()
	c.Host = host
	_, err = engine.New(c)
	require.ErrorIs(t, err, engine.ErrEngineClosed)
}

// The host closes before its engine: the engine's watches end, and closing it
// afterwards has nothing left to do.
func TestClose_HostFirst(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	c := cfg()
	c.Host = host
	e, err := engine.New(c)
	require.NoError(t, err)
	w, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	require.NoError(t, host.Close())
	<-w.Done()
	require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
	_, err = e.Watch(t.Context(), engine.WatchOptions{})
	require.ErrorIs(t, err, engine.ErrEngineClosed)
	require.NoError(t, e.Close())
}

// An engine or topic with a host of its own waits for both together.
func TestClose_WithAHostOfItsOwnWaitsOnce(t *testing.T) {
	for name, open := range map[string]func(ctx context.Context, stuck func()) (closeIt, again func() error){
		"an engine": func(ctx context.Context, stuck func()) (closeIt, again func() error) {
			e, err := engine.New(cfg())
			require.NoError(t, err)
			_, err = e.Handle(ctx, engine.WatchOptions{Name: "clumsy"}, func(engine.Event[pod]) { stuck() })
			require.NoError(t, err)
			_, err = e.Create(ctx, pod{Name: "a"})
			require.NoError(t, err)
			return e.Close, e.Host().Close
		},
		"a topic": func(ctx context.Context, stuck func()) (closeIt, again func() error) {
			topic := engine.NewTopic[int]()
			_, err := topic.SubscribeWith(ctx, engine.SubscribeOptions{Name: "clumsy"}, func(int) { stuck() })
			require.NoError(t, err)
			_, err = topic.Publish(ctx, 1)
			require.NoError(t, err)
			return topic.Close, topic.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				closeIt, again := open(t.Context(), func() { <-release })
				synctest.Wait() // until the handler is stuck
				began := time.Now()
				err := closeIt()
				require.ErrorIs(t, err, actors.ErrStillRunning)
				require.Equal(t, engine.DefaultCloseTimeout, time.Since(began))
				close(release)
				_ = again()
			})
		})
	}
}

func TestClose_GivesUpOnAStuckHandler(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{CloseTimeout: 1})
	require.NoError(t, err)
	open := func(name string) *engine.Engine[pod] {
		c := cfg()
		c.Host, c.Name = host, name
		e, err := engine.New(c)
		require.NoError(t, err)
		return e
	}
	e, other := open("orders"), open("bystander")
	_, err = other.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	stuck, release := make(chan struct{}), make(chan struct{})
	_, err = e.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {
		close(stuck)
		<-release
	})
	require.NoError(t, err)
	_, err = e.Create(t.Context(), pod{Name: "a"})
	require.NoError(t, err)
	<-stuck

	err = e.Close()
	require.ErrorIs(t, err, actors.ErrStillRunning)
	require.ErrorContains(t, err, "orders", "which engine")
	var running *actors.StillRunningError
	require.ErrorAs(t, err, &running)
	require.Equal(t, 1, running.Wakers, "the one watch, and not the other engine's")
	require.NotContains(t, append(running.Waiting, running.Busy...), "bystander")
	require.Equal(t, err, e.Close(), "closing again changes nothing")
	_, err = e.Create(t.Context(), pod{Name: "b"})
	require.ErrorIs(t, err, engine.ErrEngineClosed)
	require.ErrorAs(t, host.Close(), &running)
	close(release)
	for host.Close() != nil { // each attempt waits as long as the host allows
	}
}
