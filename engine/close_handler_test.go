package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// closing is something that is closed from within, with what makes that happen.
type closing struct {
	close func() error
	cause func()
}

// newOrders returns an engine that is not closed by the test.
func newOrders(t *testing.T, change func(*engine.Config[pod])) *engine.Engine[pod] {
	c := cfg()
	c.Name = "orders"
	if change != nil {
		change(&c)
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	return e
}

// creating returns a function that makes an event.
func creating(t *testing.T, e *engine.Engine[pod]) func() {
	return func() {
		_, err := e.Create(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
	}
}

// closings open engines and topics that call within, which closes them, from a function of
// the user's.
var closings = map[string]func(t *testing.T, within func()) closing{
	"an engine, by a handler": func(t *testing.T, within func()) closing {
		e := newOrders(t, nil)
		_, err := e.Handle(t.Context(), engine.WatchOptions{Name: "closer"}, func(engine.Event[pod]) { within() })
		require.NoError(t, err)
		return closing{e.Close, creating(t, e)}
	},
	"an engine, by a handler on the pool": func(t *testing.T, within func()) closing {
		e := newOrders(t, nil)
		_, err := e.Handle(t.Context(), engine.WatchOptions{Name: "closer", OnPool: true}, func(engine.Event[pod]) { within() })
		require.NoError(t, err)
		return closing{e.Close, creating(t, e)}
	},
	"an engine without cache, by a handler": func(t *testing.T, within func()) closing {
		e := newOrders(t, func(c *engine.Config[pod]) { c.NoCache = true })
		_, err := e.Handle(t.Context(), engine.WatchOptions{Name: "closer"}, func(engine.Event[pod]) { within() })
		require.NoError(t, err)
		return closing{e.Close, creating(t, e)}
	},
	"an engine, at a bookmark": func(t *testing.T, within func()) closing {
		e := newOrders(t, nil)
		handle := func(ev engine.Event[pod]) {
			if ev.Type == engine.Bookmark {
				within()
			}
		}
		opts := engine.WatchOptions{Name: "closer", InitialState: true, Bookmarks: true}
		return closing{e.Close, func() {
			_, err := e.Handle(t.Context(), opts, handle)
			require.NoError(t, err)
		}}
	},
	"an engine, by OnEnd": func(t *testing.T, within func()) closing {
		e := newOrders(t, func(c *engine.Config[pod]) { c.OnEnd = func(engine.WatchEnd) { within() } })
		w, err := e.Watch(t.Context(), engine.WatchOptions{Name: "closer"})
		require.NoError(t, err)
		return closing{e.Close, w.Stop}
	},
	"a topic, by a subscriber": func(t *testing.T, within func()) closing {
		topic := engine.NewTopicWith[int](engine.TopicOptions{Name: "orders"})
		_, err := topic.SubscribeWith(t.Context(), engine.SubscribeOptions{Name: "closer"}, func(int) { within() })
		require.NoError(t, err)
		return closing{topic.Close, func() {
			_, err := topic.Publish(t.Context(), 1)
			require.NoError(t, err)
		}}
	},
}

// Close does not wait for the function that calls it: it returns at once, and the
// engine and its host end when the function has returned.
func TestClose_FromWithinReturnsAtOnce(t *testing.T) {
	for name, open := range closings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c closing
				results := make(chan error, 1)
				once := make(chan struct{}, 1)
				c = open(t, func() {
					select {
					case once <- struct{}{}:
						results <- c.close()
					default:
					}
				})
				began := time.Now()
				c.cause()
				err := <-results
				require.Zero(t, time.Since(began), "it did not wait")
				require.ErrorIs(t, err, engine.ErrStillRunning)
				require.ErrorIs(t, err, engine.ErrInHandler)
				var failed *engine.CloseError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, "orders", failed.Engine)
				if name != "an engine, by OnEnd" {
					require.Equal(t, []string{"closer"}, failed.Handlers)
				}
				require.NoError(t, c.close(), "from elsewhere it waits")
				require.Zero(t, time.Since(began))
			})
		})
	}
}

// Nothing else closes the engine: goleak would find the workers of its host, and the
// bubble would not end before them.
func TestClose_FromAHandlerAloneEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(cfg())
		require.NoError(t, err)
		returned := make(chan struct{})
		w, err := e.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {
			defer close(returned)
			_ = e.Close()
			time.Sleep(time.Minute) // longer than any Close waits
			_ = e.Close()
		})
		require.NoError(t, err)
		_, err = e.Create(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		<-returned
		require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
	})
}

// countedRuns is an executor that counts how often it is run, which only one
// goroutine may do at a time.
type countedRuns struct {
	*actors.Seeded
	runs int
}

func (c *countedRuns) Run() int {
	c.runs++ // the race detector looks at this
	return c.Seeded.Run()
}

// On a deterministic host no goroutine but the caller's runs anything: what the engine
// owns is closed when its last actor has had its last turn.
func TestClose_FromAHandlerOfADeterministicHostNeedsNoGoroutine(t *testing.T) {
	executor := &countedRuns{Seeded: actors.NewSeeded(1)}
	host, err := engine.NewHost(engine.HostConfig{Executor: executor, Clock: clock.NewVirtual(time.Unix(0, 0)), Seed: 1})
	require.NoError(t, err)
	c := cfg()
	c.Host = host
	e, err := engine.New(c)
	require.NoError(t, err)
	var closed error
	_, err = e.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) { closed = e.Close() })
	require.NoError(t, err)
	_, err = e.Create(t.Context(), pod{Name: "a"})
	require.NoError(t, err)
	goroutines := runtime.NumGoroutine()
	executor.Run()
	require.ErrorIs(t, closed, engine.ErrInHandler)
	_, err = e.Backend().Revision(t.Context())
	require.ErrorIs(t, err, store.ErrClosed)
	require.Zero(t, host.Timers())
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	require.NoError(t, e.Close())
	require.NoError(t, host.Close())
}

func TestHost_ClosedFromAHandlerReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{})
		require.NoError(t, err)
		e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = host })
		failed := make(chan error, 1)
		_, err = e.Handle(ctx, engine.WatchOptions{Name: "closer"}, func(engine.Event[pod]) { failed <- host.Close() })
		require.NoError(t, err)
		began := time.Now()
		_, err = e.Create(ctx, pod{Name: "a"})
		require.NoError(t, err)
		err = <-failed
		require.ErrorIs(t, err, engine.ErrInHandler)
		require.ErrorContains(t, err, "close host: handlers have not returned: closer")
		require.NoError(t, host.Close())
		require.Zero(t, time.Since(began))
	})
}

// Handlers of two engines that close each other would wait for each other.
func TestClose_HandlersThatCloseEachOthersEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var engines [2]*engine.Engine[pod]
		for i := range engines {
			e, err := engine.New(cfg())
			require.NoError(t, err)
			engines[i] = e
		}
		meet, failed := make(chan struct{}), make(chan error)
		for i, e := range engines {
			_, err := e.Handle(t.Context(), engine.WatchOptions{}, func(engine.Event[pod]) {
				select {
				case meet <- struct{}{}:
				case <-meet:
				}
				failed <- engines[1-i].Close()
			})
			require.NoError(t, err)
		}
		began := time.Now()
		for _, e := range engines {
			_, err := e.Create(t.Context(), pod{Name: "a"})
			require.NoError(t, err)
		}
		for range engines {
			require.ErrorIs(t, <-failed, engine.ErrInHandler)
		}
		for _, e := range engines {
			require.NoError(t, e.Close())
		}
		require.Zero(t, time.Since(began))
	})
}

func TestDrain_FromAHandlerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, ctx := newEngine(t, nil)
		failed := make(chan error, 1)
		_, err := e.Handle(ctx, engine.WatchOptions{}, func(engine.Event[pod]) { failed <- e.Drain(context.Background()) })
		require.NoError(t, err)
		_, err = e.Create(ctx, pod{Name: "a"})
		require.NoError(t, err)
		require.ErrorIs(t, <-failed, engine.ErrInHandler)
		_, err = e.Create(ctx, pod{Name: "b"})
		require.NoError(t, err, "nothing was begun")
		require.ErrorIs(t, <-failed, engine.ErrInHandler)
	})
}

// The error is about this engine, even if another one on the host has the same name
// and a stuck handler too. It names the handlers, also of a watch that was stopped
// before.
func TestClose_NamesTheHandlersAndTheEnginesOwnActors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, err := engine.NewHost(engine.HostConfig{})
		require.NoError(t, err)
		release := make(chan struct{})
		open := func(names ...string) *engine.Engine[pod] {
			c := cfg()
			c.Host, c.Name = host, "orders"
			e, err := engine.New(c)
			require.NoError(t, err)
			for _, name := range names {
				w, err := e.Handle(t.Context(), engine.WatchOptions{Name: name}, func(engine.Event[pod]) { <-release })
				require.NoError(t, err)
				if name == "stopped" {
					defer w.Stop()
				}
			}
			_, err = e.Create(t.Context(), pod{Name: "a"})
			require.NoError(t, err)
			synctest.Wait()
			return e
		}
		e, other := open("stuck", "stopped"), open("bystander")
		_, err = e.Watch(t.Context(), engine.WatchOptions{Name: "idle"})
		require.NoError(t, err)

		err = e.Close()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var failed *engine.CloseError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, []string{"stopped", "stuck"}, failed.Handlers)
		require.ErrorContains(t, err, "close engine orders: handlers have not returned: stopped, stuck; ")
		var running *actors.StillRunningError
		require.ErrorAs(t, err, &running)
		require.Equal(t, 2, running.Wakers, "not the other engine's")
		require.Equal(t, []string{"orders", "orders/dispatcher"}, running.Waiting)
		require.ErrorContains(t, host.Close(), "handlers have not returned: bystander, stopped, stuck")
		close(release)
		require.NoError(t, host.Close())
		require.NoError(t, other.Close())
	})
}

func ExampleCloseError() {
	orders := engine.NewTopicWith[string](engine.TopicOptions{Name: "orders"})
	closed := make(chan error)
	_, err := orders.SubscribeWith(context.Background(), engine.SubscribeOptions{Name: "billing"}, func(order string) {
		closed <- orders.Close() // does not wait for the handler that calls it
	})
	if err == nil {
		_, err = orders.Publish(context.Background(), "the last one")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	err = <-closed
	fmt.Println(errors.Is(err, engine.ErrInHandler))
	var failed *engine.CloseError
	if errors.As(err, &failed) {
		fmt.Println(failed.Engine, "waits for", failed.Handlers)
	}
	fmt.Println(orders.Close()) // waits for the handler
	// Output:
	// true
	// orders waits for [billing]
	// <nil>
}
