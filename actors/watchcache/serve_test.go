package watchcache

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// While storage is down, clients open watches, give up and open others.
func TestRegister_WatchesThatEndWhileTheyAreDelayedAreDropped(t *testing.T) {
	pending := &cache{handle: new(Cache)}
	feed := &watcher.Feed{Registry: new(watcher.Registry)}
	open := func() *watcher.Watch {
		w := watcher.NewNotified(feed, watcher.Options{}, func() {})
		pending.register(Register{Watch: w})
		return w
	}
	patient := []*watcher.Watch{open(), open(), open()}
	for range 1000 {
		open().Close()
	}
	require.Less(t, len(pending.handle.delayed), 4*len(patient))
	for i, w := range patient {
		require.Same(t, w, pending.handle.delayed[i].Watch, "those that wait keep their order")
	}
}

// The room for watches that waited is not kept once they are registered.
func TestRegister_DelayedWatchesLeaveNoMemory(t *testing.T) {
	pending := &cache{handle: new(Cache)}
	feed := &watcher.Feed{Registry: new(watcher.Registry)}
	for range 100 {
		pending.register(Register{Watch: watcher.NewNotified(feed, watcher.Options{}, func() {})})
	}
	room := weak.Make(&pending.handle.delayed[0])
	pending.readiness = pending.readiness.stopped(began)
	pending.registerDelayed() // which refuses them
	runtime.GC()
	require.True(t, room.Value() == nil)
	runtime.KeepAlive(pending)
}

// A Notify that ends its goroutine, as t.FailNow does, costs only its own call.
func TestStop_EndsAllDelayedWatchesAndTimers(t *testing.T) {
	h, virtual := new(Cache), clock.NewVirtual(began)
	pending := &cache{handle: h, waiters: &h.waiters, trimTimer: virtual.AfterFunc(time.Second, func() {})}
	feed := &watcher.Feed{Registry: new(watcher.Registry)}
	var watches []*watcher.Watch
	for range 3 {
		w := watcher.NewNotified(feed, watcher.Options{}, runtime.Goexit)
		pending.register(Register{Watch: w})
		watches = append(watches, w)
	}
	var over sync.WaitGroup
	over.Go(func() { pending.Stopping(nil) })
	over.Wait()
	for _, w := range watches {
		require.ErrorIs(t, w.Err(), watcher.ErrEngineClosed)
	}
	require.Zero(t, virtual.Pending())
}

// Watches that wait until the cache is ready end if it never becomes so, and so does each that comes
// later.
func TestRegister_DelayedWatchesEndIfTheSourceHasEnded(t *testing.T) {
	seeded, wall := actors.NewSeeded(1), clock.NewVirtual(began)
	system, err := actors.NewSystem(actors.SystemConfig{Executor: seeded, Clock: wall})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.Close(context.Background())) })
	down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return discarding{} }, actors.Options{})
	c := Spawn(system, wall, Config{Schema: new(store.Schema), Published: new(window.Published), Dispatcher: down, Stats: new(Stats)})
	feed := &watcher.Feed{Registry: new(watcher.Registry)}
	open := func() *watcher.Watch {
		w := watcher.NewNotified(feed, watcher.Options{}, func() {})
		c.Register(Register{Watch: w})
		seeded.Run()
		return w
	}
	delayed := open()
	require.NoError(t, delayed.Err())
	require.Equal(t, actors.Accepted, c.Offer(reflector.Update{Kind: reflector.Unavailable, Err: store.ErrClosed, Final: true}))
	for _, w := range []*watcher.Watch{delayed, open()} {
		require.ErrorIs(t, w.Err(), ErrNotReady)
		require.ErrorIs(t, w.Err(), store.ErrClosed)
	}
	require.Empty(t, c.delayed)
}

func TestStop_AnswersWaitersWhateverTheClockDoes(t *testing.T) {
	seeded, wall := actors.NewSeeded(1), &clocktest.Failing{Clock: clock.NewVirtual(began)}
	system, err := actors.NewSystem(actors.SystemConfig{Executor: seeded, Clock: wall})
	require.NoError(t, err)
	c := Spawn(system, wall, Config{Schema: new(store.Schema), Published: new(window.Published), Stats: new(Stats)})
	reply := make(chan error, 1)
	c.Wait(Wait{Revision: 1, Until: began.Add(time.Hour), Reply: reply})
	seeded.Run()
	require.Empty(t, reply)

	wall.Fail(clocktest.Now, 0, math.MaxInt)
	require.NoError(t, system.Close(t.Context()))
	require.Len(t, reply, 1)
	require.ErrorIs(t, <-reply, ErrStopped)
	require.Zero(t, system.Timers())
}

// discarding is a dispatcher that drops what it receives.
type discarding struct{}

func (discarding) Receive(*actors.Context, dispatcher.Message) {}

// The dispatcher ends watches that have delivered what is published when it hears that the source has ended, and it
// may hear so before the cache's turn is over.
func TestEnd_IsToldAfterWhatCameBefore(t *testing.T) {
	for seed := range uint64(10) { // which says how many updates one turn handles
		seeded, wall := actors.NewSeeded(seed), clock.NewVirtual(began)
		system, err := actors.NewSystem(actors.SystemConfig{Executor: seeded, Clock: wall})
		require.NoError(t, err)
		var told []dispatcher.Message
		down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return recording{&told} }, actors.Options{})
		c := Spawn(system, wall, Config{Schema: new(store.Schema), Published: new(window.Published), Dispatcher: down, Stats: new(Stats)})
		require.Equal(t, actors.Accepted, c.Offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 5}))
		require.Equal(t, actors.Accepted, c.Offer(reflector.Update{Kind: reflector.Progress, Revision: 6}))
		require.Equal(t, actors.Accepted, c.Offer(reflector.Update{Kind: reflector.Unavailable, Err: store.ErrClosed, Final: true}))
		seeded.Run()
		require.Contains(t, told, dispatcher.Committed{})
		require.IsType(t, dispatcher.Drain{}, told[len(told)-1])
		require.NoError(t, system.Close(t.Context()))
	}
}

// recording is a dispatcher that keeps what it receives.
type recording struct{ told *[]dispatcher.Message }

func (r recording) Receive(_ *actors.Context, m dispatcher.Message) { *r.told = append(*r.told, m) }

// A watch does not wait for a turn of the cache, which may have thousands of events to
// apply, unless only the cache can say where it starts.
func TestRegister_PassesTheCacheIfWhatIsPublishedSuffices(t *testing.T) {
	seeded := actors.NewSeeded(1)
	system, err := actors.NewSystem(actors.SystemConfig{Executor: seeded, Clock: clock.NewVirtual(began)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.Close(context.Background())) })
	down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return discarding{} }, actors.Options{})
	c := Spawn(system, clock.NewVirtual(began), Config{
		Schema: new(store.Schema), Published: new(window.Published), Dispatcher: down, Stats: new(Stats),
	})
	feed := &watcher.Feed{Registry: new(watcher.Registry)}
	reply := make(chan error, 1)
	passed := func(from watcher.From, timeline *store.Timeline) bool {
		seeded.Run()
		c.Register(Register{Watch: watcher.New(feed, watcher.Options{}), From: from, Timeline: timeline, Reply: reply})
		return down.Len() == 1
	}
	require.False(t, passed(watcher.From{}, nil), "it is not ready")
	seeded.Run()
	require.ErrorIs(t, <-reply, ErrNotReady)

	c.Offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 5})
	require.True(t, passed(watcher.From{}, nil), "now")
	require.True(t, passed(watcher.From{Revision: 5}, nil))
	require.True(t, passed(watcher.From{State: true}, nil))
	require.False(t, passed(watcher.From{NotBefore: 6}, nil), "the cache may have received it")
	require.False(t, passed(watcher.From{Revision: 6}, nil))
	require.False(t, passed(watcher.From{Revision: 4}, nil))
	seeded.Run()
	require.ErrorIs(t, <-reply, store.ErrExpired)
	require.False(t, passed(watcher.From{Revision: 5}, &store.Timeline{StoreID: "another"}))
	seeded.Run()
	require.ErrorIs(t, <-reply, store.ErrExpired)
}

// exiting is a dispatcher with user code that ends its goroutine, as t.FailNow does.
type exiting struct{}

func (exiting) Receive(_ *actors.Context, m dispatcher.Message) {
	if _, ok := m.(dispatcher.Register); ok {
		runtime.Goexit()
	}
}

// The dispatcher's turn calls user code, which must not fail the cache, nor delay a caller that
// does not wait.
func TestRegister_RunsTheDispatcherForACallThatWaitsAlone(t *testing.T) {
	for name, at := range map[string]struct {
		from  watcher.From
		reply chan error
		waits bool
	}{
		"a call that waits":        {reply: make(chan error, 1), waits: true},
		"a call that does not":     {},
		"the cache, for one":       {from: watcher.From{Revision: 6}, reply: make(chan error, 1)},
		"the cache, for the other": {from: watcher.From{Revision: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failed := make(chan string, 10)
				system, err := actors.NewSystem(actors.SystemConfig{
					Workers: 1, Logger: slog.New(slog.DiscardHandler), OnFailure: func(f actors.Failure) { failed <- f.Actor },
				})
				require.NoError(t, err)
				down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return exiting{} }, actors.Options{})
				c := Spawn(system, system.Clock(), Config{
					Schema: new(store.Schema), Published: new(window.Published), Dispatcher: down, Stats: new(Stats),
				})
				c.Offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 5})
				synctest.Wait()
				feed := &watcher.Feed{Registry: new(watcher.Registry)}
				returned := false
				var over sync.WaitGroup
				over.Go(func() {
					c.Register(Register{Watch: watcher.New(feed, watcher.Options{}), From: at.from, Reply: at.reply})
					returned = true
				})
				over.Wait()
				synctest.Wait()
				require.NoError(t, system.Close(t.Context()))
				require.Equal(t, !at.waits, returned)
				require.Equal(t, "dispatcher", <-failed)
				require.Empty(t, failed)
			})
		})
	}
}

// whole is an executor on which an actor handles all of its messages in one turn.
type whole struct{ *actors.Seeded }

func (whole) Throughput() int { return math.MaxInt }

// What is published in the middle of a turn, in answer to a message, keeps to the window's
// limits, as at the end of the turn: a watch is not started at what is about to be dropped.
func TestRegister_InATurnWithManyEventsSeesTheWindowsLimits(t *testing.T) {
	seeded := actors.NewSeeded(1)
	system, err := actors.NewSystem(actors.SystemConfig{Executor: whole{seeded}, Clock: clock.NewVirtual(began)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.Close(context.Background())) })
	down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return discarding{} }, actors.Options{})
	c := Spawn(system, clock.NewVirtual(began), Config{
		Schema: new(store.Schema), Limits: window.Limits{MaxEvents: 8},
		Published: new(window.Published), Dispatcher: down, Stats: new(Stats),
	})
	c.Offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started})
	seeded.Run()

	src := newSource()
	var events []store.Event
	for range 20 {
		events = append(events, src.write("a", false))
	}
	c.Offer(reflector.Update{Kind: reflector.Changes, Revision: src.rev, Events: events})
	reply := make(chan error, 1)
	feed := &watcher.Feed{Registry: new(watcher.Registry)}
	c.Register(Register{Watch: watcher.New(feed, watcher.Options{}), From: watcher.From{Revision: 1}, Reply: reply})
	seeded.Run()
	require.Len(t, reply, 1)
	require.ErrorIs(t, <-reply, store.ErrExpired)
}

// What a call waits for may come just before its time is up, in the same turn.
func TestWait_IsAnsweredByWhatComesBeforeItsTimeIsUp(t *testing.T) {
	seeded, wall := actors.NewSeeded(1), clock.NewVirtual(began)
	system, err := actors.NewSystem(actors.SystemConfig{Executor: whole{seeded}, Clock: wall})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.Close(context.Background())) })
	down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return discarding{} }, actors.Options{})
	c := Spawn(system, wall, Config{Schema: new(store.Schema), Published: new(window.Published), Dispatcher: down, Stats: new(Stats)})
	c.Offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 5})
	seeded.Run()
	timeUp := func(revision store.Revision, last reflector.Update) error {
		reply := make(chan error, 1)
		c.Wait(Wait{Revision: revision, Until: wall.Now().Add(time.Second), Reply: reply})
		seeded.Run()
		c.Offer(last)
		wall.Advance(time.Second)
		seeded.Run()
		return <-reply
	}
	require.NoError(t, timeUp(6, reflector.Update{Kind: reflector.Progress, Revision: 6}))
	c.Offer(reflector.Update{Kind: reflector.Unavailable, Err: errors.New("outage")})
	require.NoError(t, timeUp(6, reflector.Update{Kind: reflector.Progress, Revision: 6}), "the outage is over")
	require.ErrorIs(t, timeUp(8, reflector.Update{Kind: reflector.Progress, Revision: 7}), store.ErrFuture)
}
