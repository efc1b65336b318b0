package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/faulty"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// A handler that blocks holds up no other, not even with a single worker in the
// pool, and misses nothing once it goes on.
func TestHandler_ThatBlocksDelaysNoOther(t *testing.T) {
	host, err := engine.NewHost(engine.HostConfig{Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = host })

	release, done := make(chan struct{}), make(chan int, 8)
	for range cap(done) {
		seen := 0
		_, err := e.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[pod]) {
			<-release
			if seen++; ev.Revision == 51 {
				done <- seen
			}
		})
		require.NoError(t, err)
	}
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	quick := make(chan struct{})
	_, err = e.Handle(ctx, engine.WatchOptions{OnPool: true}, func(ev engine.Event[pod]) {
		if ev.Revision == 51 {
			close(quick)
		}
	})
	require.NoError(t, err)
	for n := range 50 {
		_, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
	}
	require.Len(t, until(t, ctx, w, 51), 50)
	<-quick
	require.Empty(t, done)
	close(release)
	for range cap(done) {
		require.Equal(t, 50, <-done)
	}
}

// A handler that panics, and one that ends its goroutine, end their own
// watches, with what happened and at which event; the event can be had again.
func TestHandler_PanicOrExitEndsItsWatchAlone(t *testing.T) {
	cause := errors.New("broken")
	for name, fail := range map[string]func(){
		"panic": func() { panic(cause) }, "exit": runtime.Goexit, "failed test": func() { new(testing.T).FailNow() },
	} {
		for _, onPool := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/pool=%t", name, onPool), func(t *testing.T) {
				e, ctx := newEngine(t, nil)
				w, err := e.Handle(ctx, engine.WatchOptions{OnPool: onPool}, func(ev engine.Event[pod]) {
					if ev.Key() == "bad" {
						fail()
					}
				})
				require.NoError(t, err)
				beside, err := e.Watch(ctx, engine.WatchOptions{})
				require.NoError(t, err)
				for _, name := range []string{"a", "bad", "c"} {
					_, err := e.Create(ctx, pod{Name: name})
					require.NoError(t, err)
				}
				<-w.Done()
				var panicked *engine.PanicError
				require.ErrorAs(t, w.Err(), &panicked)
				require.ErrorIs(t, w.Err(), engine.ErrHandlerPanic)
				require.Equal(t, "bad", panicked.Key)
				require.Equal(t, engine.Revision(3), panicked.Revision)
				require.Equal(t, engine.Revision(2), w.Revision())
				again, err := e.Watch(ctx, engine.WatchOptions{From: w.Revision()})
				require.NoError(t, err)
				require.Equal(t, []string{"ADDED bad@3", "ADDED c@4"}, until(t, ctx, again, 4))
				require.Equal(t, []string{"ADDED a@2", "ADDED bad@3", "ADDED c@4"}, until(t, ctx, beside, 4))
			})
		}
	}
}

// A handler may stop its own watch. It is not called again, and a watch that
// resumes from there gets the very next event.
func TestHandler_StopsItsOwnWatch(t *testing.T) {
	e, ctx := newEngine(t, nil)
	for n := range 20 {
		_, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
	}
	require.NoError(t, e.WaitForRevision(ctx, 21))
	calls, returned := 0, make(chan struct{})
	started := make(chan *engine.Watch[pod], 1)
	w, err := e.Handle(ctx, engine.WatchOptions{From: 1}, func(ev engine.Event[pod]) {
		if calls++; calls == 7 {
			w := <-started
			w.Stop()
			close(returned)
		}
	})
	require.NoError(t, err)
	started <- w
	<-returned
	require.NoError(t, e.Close()) // waits for the handler's turn
	require.Equal(t, 7, calls)
	require.ErrorIs(t, w.Err(), engine.ErrStopped)
	require.Equal(t, engine.Revision(8), w.Revision())
}

func TestHandler_PanicEndsItsWatchAlone(t *testing.T) {
	errSpilled := errors.New("spilled the coffee")
	for name, value := range map[string]any{"an error": errSpilled, "text": "oh no"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			var handled []string
			bad, err := f.engine.Handle(t.Context(), engine.WatchOptions{}, func(ev engine.Event[thing]) {
				if handled = append(handled, ev.Key()); ev.Key() == "b" {
					panic(value)
				}
			})
			require.NoError(t, err)
			beside := f.watch(engine.WatchOptions{})
			for _, key := range []string{"a", "b", "c"} {
				f.put(key)
			}
			require.Equal(t, []string{"a", "b"}, handled, "nothing after the panic")
			var panicked *engine.PanicError
			require.ErrorAs(t, bad.Err(), &panicked)
			require.ErrorIs(t, bad.Err(), engine.ErrHandlerPanic)
			require.Equal(t, engine.Revision(3), panicked.Revision)
			require.Equal(t, "b", panicked.Key)
			require.Equal(t, value, panicked.Value)
			require.Contains(t, string(panicked.Stack), "handler_test.go", "where it happened")
			require.Equal(t, name == "an error", errors.Is(bad.Err(), errSpilled))
			f.requireReads(beside, "ADDED a@2", "ADDED b@3", "ADDED c@4")
			s := f.engine.Stats()
			require.Equal(t, [3]uint64{1, 1, 0}, [3]uint64{uint64(s.Watches), s.Panicked, s.Failures})
		})
	}
}

// A handler that has had many events, so that its turn has ended in between, blocks no other either.
func TestHandler_ThatBlocksAfterManyEventsDelaysNoOther(t *testing.T) {
	const many = 5000 // more than one turn has
	host, err := engine.NewHost(engine.HostConfig{Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = host })
	begin, blocks, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow, err := e.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[pod]) {
		switch ev.Revision {
		case 2:
			<-begin
		case many:
			close(blocks)
			<-release
		}
	})
	require.NoError(t, err)
	w, err := e.Watch(ctx, engine.WatchOptions{})
	require.NoError(t, err)
	for n := range many - 1 {
		_, err := e.Put(ctx, pod{Name: "a", N: n + 1})
		require.NoError(t, err)
	}
	require.Len(t, until(t, ctx, w, many), many-1)
	close(begin)
	<-blocks
	_, err = e.Put(ctx, pod{Name: "a", N: many})
	require.NoError(t, err)
	require.Len(t, until(t, ctx, w, many+1), 1)
	close(release)
	require.NoError(t, slow.Err())
}

// A handler that blocks where it must not, on the only worker of the pool, does
// not keep calls waiting for ever.
func TestHandler_ThatHoldsAllWorkersIsWhyCallsGiveUp(t *testing.T) {
	clock := clock.NewVirtual(epoch)
	host, err := engine.NewHost(engine.HostConfig{Workers: 1, Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	inner, err := memory.New(cfg().Schema(), memory.Options{FirstRevision: 1})
	require.NoError(t, err)
	storage := faulty.New(inner, faulty.Options{})
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host, c.Backend = host, storage })
	held, release := make(chan struct{}), make(chan struct{})
	_, err = e.Handle(ctx, engine.WatchOptions{OnPool: true}, func(engine.Event[pod]) {
		close(held)
		<-release
	})
	require.NoError(t, err)
	_, err = e.Create(ctx, pod{Name: "a"})
	require.NoError(t, err)
	<-held
	storage.Add(faulty.Rule{Ops: []faulty.Op{faulty.OpList}, Do: faulty.After(func(_ context.Context, c *faulty.Call) { c.Page.Items = nil })})
	w, err := e.Watch(ctx, engine.WatchOptions{From: 1})
	require.NoError(t, err, "a watch from a revision in the cache needs no worker")
	events, err := w.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, "a", events[0].Object.Value.Name)
	for _, call := range []func() error{
		func() error { _, err := e.Watch(ctx, engine.WatchOptions{From: 100}); return err },
		func() error { return e.WaitForRevision(ctx, 100) },
		func() error { return e.Verify(ctx) }, // and finds that the cache is wrong
	} {
		failed := make(chan error, 1)
		go func() { failed <- call() }()
		for {
			select {
			case err := <-failed:
				require.ErrorIs(t, err, engine.ErrNotReady)
				require.ErrorContains(t, err, "a handler with OnPool block, or is the machine overloaded?")
			default:
				clock.Advance(time.Second)
				runtime.Gosched()
				continue
			}
			break
		}
	}
	close(release)
}

// Handlers of a large initial state share the memory of their batches, which shows nowhere:
// each gets every object once, in order, and may keep the events; also one that fails in the
// middle of a batch, and a caller of Next, which may keep the batches.
func TestHandler_MayKeepTheEventsOfALargeInitialState(t *testing.T) {
	e, ctx := newEngine(t, nil)
	const objects = 1500 // several batches, and a part of one
	want := make([]string, objects)
	var last engine.Revision
	for i := range want {
		want[i] = fmt.Sprintf("pod-%04d", i)
		o, err := e.Put(ctx, pod{Name: want[i]})
		require.NoError(t, err)
		last = o.Revision
	}
	require.NoError(t, e.WaitForRevision(ctx, last))
	kept := map[string][]engine.Event[pod]{}
	done := make(chan string)
	keep := func(name string, ev engine.Event[pod]) {
		kept[name] = append(kept[name], ev)
		if len(kept[name]) == objects {
			done <- name
		}
	}
	opts := engine.WatchOptions{InitialState: true}
	for _, name := range []string{"handled", "processed"} {
		kept[name] = nil
		failed := map[string]bool{}
		var err error
		if name == "handled" {
			_, err = e.Handle(ctx, opts, func(ev engine.Event[pod]) { keep(name, ev) })
		} else {
			_, err = e.Process(ctx, opts, engine.ErrorPolicy{Backoff: time.Nanosecond}, func(_ context.Context, ev engine.Event[pod]) error {
				if ev.Object.Value.Name[len("pod-00"):] == "77" && !failed[ev.Key()] {
					failed[ev.Key()] = true
					return errors.New("once")
				}
				keep(name, ev)
				return nil
			})
		}
		require.NoError(t, err)
		require.Equal(t, name, <-done)
	}
	w, err := e.Watch(ctx, opts)
	require.NoError(t, err)
	var batches [][]engine.Event[pod]
	for n := 0; n < objects; n += len(batches[len(batches)-1]) {
		batch, err := w.Next(ctx)
		require.NoError(t, err)
		batches = append(batches, batch)
	}
	kept["pulled"] = slices.Concat(batches...)
	for name, events := range kept {
		got := make([]string, len(events))
		for i, ev := range events {
			got[i] = ev.Object.Key
			require.Equal(t, engine.Added, ev.Type)
		}
		require.Equal(t, want, got, name)
	}
}
