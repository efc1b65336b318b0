package watchcache

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/window"
)

// restarting restarts the caches that it has spawned.
type restarting struct{ spawn func(*actors.Context) }

func (r restarting) Started(ctx *actors.Context)     { r.spawn(ctx) }
func (restarting) Receive(*actors.Context, struct{}) {}
func (restarting) ChildFailed(*actors.Context, actors.ID, any) actors.Directive {
	return actors.Restart
}

// A timer that has fired just before its actor failed is no reason for its successor, which has
// armed one, to arm another.
func TestRestart_ATimerThatHasFiredBeforeLeavesOneOfEachKind(t *testing.T) {
	seeded, virtual := actors.NewSeeded(1), clock.NewVirtual(began)
	wall := &clocktest.Failing{Clock: virtual}
	system, err := actors.NewSystem(actors.SystemConfig{Executor: seeded, Clock: wall, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return discarding{} }, actors.Options{})
	var c *Cache
	actors.Spawn(system, "parent", func() actors.Behavior[struct{}] {
		return restarting{func(ctx *actors.Context) {
			c = Spawn(ctx, wall, Config{
				Schema: new(store.Schema), Published: new(window.Published), Dispatcher: down, Stats: new(Stats),
				Relist: func(reflector.Reason) {}, OnBehind: func() {},
			})
		}}
	}, actors.Options{})
	seeded.Run()
	c.Offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 5})
	o := &store.Object{Key: "a", Revision: 6}
	c.Offer(reflector.Update{Kind: reflector.Changes, Revision: 6, Events: []store.Event{{Type: store.Added, Revision: 6, Object: o}}})
	c.Wait(Wait{Revision: 7, Until: began.Add(time.Hour), Reply: make(chan error, 1)})
	seeded.Run()
	require.Equal(t, 2, system.Timers(), "to trim and for the wait")

	c.Offer(reflector.Update{Kind: reflector.Progress, Revision: 6}) // which fails
	virtual.Advance(window.DefaultMinAge / trimsPerAge)
	wall.Fail(clocktest.Now, 0, 1)
	seeded.Run()
	require.Equal(t, 2, system.Timers())
	require.NoError(t, system.Close(context.Background()))
	require.Zero(t, system.Timers())
}

func TestStop_AClockThatFailsToStopATimerIsAskedToStopTheOther(t *testing.T) {
	virtual := clock.NewVirtual(began)
	wall, h := &clocktest.Failing{Clock: virtual}, new(Cache)
	c := &cache{handle: h, waiters: &h.waiters}
	for _, timer := range []*clock.Timer{&c.waitTimer, &c.trimTimer} {
		*timer = wall.AfterFunc(time.Second, func() {})
	}
	wall.Fail(clocktest.Stop, 0, 1)
	require.Panics(t, func() { c.Stopping(nil) })
	require.Equal(t, 1, virtual.Pending())
}

// The source says only once that it has ended.
func TestRestart_InPlaceOfTheEndOfTheSourceEndsAllTheSame(t *testing.T) {
	seeded, wall := actors.NewSeeded(1), &clocktest.Failing{Clock: clock.NewVirtual(began)}
	system, err := actors.NewSystem(actors.SystemConfig{Executor: seeded, Clock: wall, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.Close(context.Background())) })
	down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return discarding{} }, actors.Options{})
	var c *Cache
	actors.Spawn(system, "parent", func() actors.Behavior[struct{}] {
		return restarting{func(ctx *actors.Context) {
			c = Spawn(ctx, wall, Config{
				Schema: new(store.Schema), Published: new(window.Published), Dispatcher: down, Stats: new(Stats),
				Relist: func(reflector.Reason) {},
			})
		}}
	}, actors.Options{})
	seeded.Run()
	c.Offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Started, Revision: 5})
	waits := make(chan error, 1)
	c.Wait(Wait{Revision: 7, Until: began.Add(time.Hour), Reply: waits})
	seeded.Run()
	c.Offer(reflector.Update{Kind: reflector.Unavailable, Err: store.ErrClosed, Final: true})
	wall.Fail(clocktest.Now, 0, 1)
	seeded.Run()
	final, _ := errors.AsType[*NotReadyError](c.Check(began))
	require.NotNil(t, final)
	require.True(t, final.Final)
	require.ErrorIs(t, <-waits, store.ErrClosed)
}
