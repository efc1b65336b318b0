package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/usercode"
)

// deterministic returns an engine on a virtual clock, its host, and what lets time
// pass.
func deterministic(t *testing.T) *enginetest.Engine[pod] {
	return enginetest.NewWith(t, cfg(), enginetest.Deterministic(1))
}

func TestWatches_AConsumerThatIsStuckShows(t *testing.T) {
	e := deterministic(t)
	ctx := t.Context()
	stuck, err := e.Engine().Watch(ctx, engine.WatchOptions{Name: "stuck", Labels: "app=web"})
	require.NoError(t, err)
	prompt, err := e.Engine().Watch(ctx, engine.WatchOptions{Name: "prompt", Policy: engine.Terminate})
	require.NoError(t, err)
	for i := range 24 {
		e.Create(pod{Name: string(rune('a' + i)), App: "web"})
	}
	seen, err := prompt.Next(ctx)
	require.NoError(t, err)
	for len(seen) < 24 {
		more, err := prompt.Next(ctx)
		require.NoError(t, err)
		seen = append(seen, more...)
	}
	e.Advance(3 * time.Second)
	e.Create(pod{Name: "other", App: "db"})
	require.NoError(t, e.Engine().WaitForRevision(ctx, seen[23].Revision+1))

	all := e.Engine().Watches()
	require.Len(t, all, 2)
	first, second := all[0], all[1]
	require.Equal(t, "stuck", first.Name)
	require.Equal(t, `label "app" = "web"`, first.Selector)
	require.Equal(t, engine.Park, first.Policy)
	require.Equal(t, uint64(25), first.Lag, "it has not looked, so what is not for it counts")
	require.Equal(t, 3*time.Second, first.Behind)
	require.Equal(t, 3*time.Second, first.Age)
	require.Zero(t, first.Delivered)
	require.Zero(t, first.StalledSince, "24 are fewer than its buffer holds")
	require.Equal(t, 3*time.Second, stuck.Behind())
	require.Equal(t, "prompt", second.Name)
	require.Equal(t, "everything", second.Selector)
	require.Equal(t, engine.Terminate, second.Policy)
	require.Equal(t, "pull", second.Consumer)
	require.Equal(t, uint64(24), second.Delivered)
	require.Equal(t, uint64(1), second.Lag)
	require.Zero(t, second.Behind, "that was committed just now")
	require.Equal(t, seen[23].Revision, second.Revision)

	stuck.Stop()
	require.Len(t, e.Engine().Watches(), 1)
	require.Zero(t, stuck.Behind())
}

func TestWatches_WhatLiesAheadCountsHoweverItIsConsumed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	consumers := map[string]func(e *engine.Engine[pod], took chan<- string, held <-chan struct{}) *engine.Watch[pod]{
		"handler": func(e *engine.Engine[pod], took chan<- string, held <-chan struct{}) *engine.Watch[pod] {
			w, err := e.Handle(ctx, engine.WatchOptions{}, func(ev engine.Event[pod]) {
				took <- ev.Key()
				<-held
			})
			require.NoError(t, err)
			return w
		},
		"channel": func(e *engine.Engine[pod], took chan<- string, held <-chan struct{}) *engine.Watch[pod] {
			w, err := e.Watch(ctx, engine.WatchOptions{})
			require.NoError(t, err)
			events := w.Chan()
			go func() {
				took <- (<-events).Key()
				<-held
			}()
			return w
		},
		"pull": func(e *engine.Engine[pod], took chan<- string, held <-chan struct{}) *engine.Watch[pod] {
			w, err := e.Watch(ctx, engine.WatchOptions{})
			require.NoError(t, err)
			go func() {
				for ev := range w.Events() {
					took <- ev.Key()
					<-held
					return
				}
			}()
			return w
		},
	}
	for name, consume := range consumers {
		t.Run(name, func(t *testing.T) {
			e := enginetest.New(t, cfg())
			took, held := make(chan string, 100), make(chan struct{})
			w := consume(e.Engine(), took, held)
			var last engine.Revision
			for i := range 24 {
				last = e.Create(pod{Name: string(rune('a' + i))}).Revision
			}
			require.Equal(t, "a", <-took)
			require.NoError(t, e.Engine().WaitForRevision(ctx, last))
			// A handler is at the first event. A loop has passed it, and so has the goroutine of the
			// channel, though it may record that only after it was received.
			ahead := uint64(23)
			if name == "handler" {
				ahead = 24
			}
			eventually(t, ctx, func() bool { return w.Lag() == ahead })
			clocktest.Tick()
			infos := e.Engine().Watches()
			require.Len(t, infos, 1)
			require.Equal(t, name, infos[0].Consumer)
			require.Equal(t, ahead, infos[0].Lag)
			require.Equal(t, ahead, w.Lag())
			require.Positive(t, infos[0].Behind)
			require.GreaterOrEqual(t, w.Behind(), infos[0].Behind)
			close(held)
		})
	}
}

func TestWatches_StalledSince(t *testing.T) {
	e := deterministic(t)
	w, err := e.Engine().Watch(t.Context(), engine.WatchOptions{Name: "slow", Buffer: 2})
	require.NoError(t, err)
	e.Create(pod{Name: "a"})
	_, err = w.Next(t.Context())
	require.NoError(t, err)
	start := e.Host().Clock().Now()
	for _, name := range []string{"b", "c", "d", "e"} {
		e.Advance(time.Second)
		e.Put(pod{Name: name})
		require.NoError(t, e.Engine().WaitForRevision(t.Context(), 0))
	}
	e.Advance(time.Minute)
	info := e.Engine().Watches()[0]
	require.True(t, start.Add(3*time.Second).Equal(info.StalledSince), info.StalledSince)
	require.Equal(t, time.Minute+3*time.Second, info.Behind)
	for w.Lag() > 0 {
		_, err := w.Next(t.Context())
		require.NoError(t, err)
	}
	_, err = w.Next(t.Context())
	require.ErrorIs(t, err, engine.ErrIdle)
	info = e.Engine().Watches()[0]
	require.Zero(t, info.StalledSince)
	require.Zero(t, info.Behind)
}

func TestWatches_InitialStateThatIsNotRead(t *testing.T) {
	e := deterministic(t)
	e.Create(pod{Name: "a"})
	e.Advance(time.Hour)
	_, err := e.Engine().Watch(t.Context(), engine.WatchOptions{Name: "new", InitialState: true})
	require.NoError(t, err)
	e.Advance(time.Second)
	require.Equal(t, time.Second, e.Engine().Watches()[0].Behind, "not since the object was written")
}

func TestWatches_OfEverythingThatWatches(t *testing.T) {
	ctx := t.Context()
	e := enginetest.New(t, cfg())
	inf, err := informer.New(informer.Config[pod]{Source: e.Engine().Source(), Name: "mirror", Host: e.Host()})
	require.NoError(t, err)
	defer inf.Close()
	require.NoError(t, inf.WaitSynced(ctx))
	require.Eventually(t, func() bool { return len(e.Engine().Watches()) == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, "informer mirror", e.Engine().Watches()[0].Name)
	require.Equal(t, "source", e.Engine().Watches()[0].Consumer)

	config := cfg()
	config.NoCache = true
	uncached := enginetest.New(t, config)
	_, err = uncached.Engine().Watch(ctx, engine.WatchOptions{Name: "by itself", Key: "a"})
	require.NoError(t, err)
	require.Equal(t, "by itself", uncached.Engine().Watches()[0].Name)
	require.Equal(t, `key "a"`, uncached.Engine().Watches()[0].Selector)

	topic := engine.NewTopic[int]()
	defer topic.Close()
	sub, err := topic.SubscribeWith(ctx, engine.SubscribeOptions{Name: "billing"}, func(int) {})
	require.NoError(t, err)
	require.Equal(t, "billing", sub.Name())
	require.Equal(t, "billing", topic.Watches()[0].Name)
	require.Empty(t, engine.NewTopicWith[int](engine.TopicOptions{Replay: -1}).Watches())
}

// here returns a function that demands the name of the line where here is called.
func here(t *testing.T) func(w interface{ Name() string }, err error) {
	place := usercode.Caller(1).String()
	require.Contains(t, place, "engine/watches_test.go:")
	return func(w interface{ Name() string }, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, place, w.Name())
	}
}

// A watch without a name has that of the line that asked for it, whichever way.
func TestName_IsWhereTheWatchWasAskedFor(t *testing.T) {
	ctx := t.Context()
	e := enginetest.New(t, cfg())
	topic := engine.NewTopic[int]()
	defer topic.Close()
	none, ignore := engine.WatchOptions{}, func(engine.Event[pod]) {}
	here(t)(e.Engine().Watch(ctx, none))
	here(t)(e.Engine().Handle(ctx, none, ignore))
	here(t)(e.Watch(none), nil)
	here(t)(engine.Resume(ctx, e.Engine(), none, func(*engine.List[pod]) {}, ignore))
	here(t)(topic.Subscribe(ctx, func(int) {}))
	here(t)(topic.SubscribeWith(ctx, engine.SubscribeOptions{}, func(int) {}))
	here(t)(topic.Watch(ctx, engine.SubscribeOptions{}))

	place, messages := usercode.Caller(0), topic.Messages(ctx, engine.SubscribeOptions{})
	require.NotNil(t, messages)
	require.True(t, hasWatch(topic.Watches(), place.String()))
	place, following := usercode.Caller(0), engine.Follow(ctx, e.Engine(), engine.WatchOptions{From: 1})
	e.Create(pod{Name: "a"})
	for range following {
		require.True(t, hasWatch(e.Engine().Watches(), place.String()))
		break
	}
}

func hasWatch(watches []engine.WatchInfo, name string) bool {
	for _, w := range watches {
		if w.Name == name {
			return true
		}
	}
	return false
}

func TestName_IsInWhatTheWatchEndsWith(t *testing.T) {
	e := enginetest.New(t, cfg())
	w, err := e.Engine().Handle(t.Context(), engine.WatchOptions{Name: "clumsy"}, func(engine.Event[pod]) { panic("oops") })
	require.NoError(t, err)
	e.Create(pod{Name: "a"})
	<-w.Done()
	var ended *engine.EndError
	require.ErrorAs(t, w.Err(), &ended)
	require.Equal(t, "clumsy", ended.Watch.String())
	var panicked *engine.PanicError
	require.ErrorAs(t, w.Err(), &panicked)
	require.Equal(t, "oops", panicked.Value)

	late, err := e.Engine().Watch(t.Context(), engine.WatchOptions{Name: "short", Timeout: time.Nanosecond})
	require.NoError(t, err)
	<-late.Done()
	require.EqualError(t, late.Err(), "short: watch deadline reached")
	require.ErrorIs(t, late.Err(), context.DeadlineExceeded)
	var timeout interface{ Timeout() bool }
	require.True(t, errors.As(late.Err(), &timeout) && timeout.Timeout())
}

// Of those that are behind for as long, the one with more to deliver comes first, then by name,
// then the older.
func TestWatches_OfTheSameDelay(t *testing.T) {
	e := deterministic(t)
	watch := func(name string) {
		_, err := e.Engine().Watch(t.Context(), engine.WatchOptions{Name: name})
		require.NoError(t, err)
	}
	watch("x")
	e.Advance(time.Second)
	watch("x")
	watch("w")
	e.Create(pod{Name: "a"})
	require.NoError(t, e.Engine().WaitForRevision(t.Context(), 2))
	watch("a")
	e.Create(pod{Name: "b"})
	require.NoError(t, e.Engine().WaitForRevision(t.Context(), 3))
	e.Advance(time.Second)
	var got []string
	for _, w := range e.Engine().Watches() {
		got = append(got, fmt.Sprint(w.Name, " ", w.Behind, " ", w.Lag, " ", w.Age))
	}
	require.Equal(t, []string{"w 1s 2 1s", "x 1s 2 2s", "x 1s 2 1s", "a 1s 1 1s"}, got)
}

func TestWatches_CountWhatWasLeftOut(t *testing.T) {
	f := newFixture(t, func(_ *engine.HostConfig, c *engine.Config[thing]) {
		c.Window = engine.Window{MaxEvents: 8, ChunkSize: 2}
	})
	w := f.watch(engine.WatchOptions{Policy: engine.Conflate, Buffer: 1})
	for range 1100 {
		f.put("a")
	}
	f.read(w)
	require.Positive(t, w.Lost())
	info := f.engine.Watches()[0]
	require.Equal(t, w.Lost(), info.Lost)
	require.Equal(t, uint64(1100), info.Delivered+info.Lost)
}
