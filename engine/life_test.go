package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// What a consumer remembers of an engine that is gone means nothing to the next
// one: a watch from there is refused, whether the new engine has written more or
// less than the old one had.
func TestWatch_FromAnotherLifeOfTheStorageIsExpired(t *testing.T) {
	for name, noCache := range map[string]bool{"with a cache": false, "without a cache": true} {
		t.Run(name, func(t *testing.T) {
			live := func() (*engine.Engine[pod], engine.Revision) {
				e, ctx := newEngine(t, func(c *engine.Config[pod]) {
					c.FirstRevision, c.NoCache = 0, noCache
				})
				var last engine.Revision
				for n := range 500 {
					o, err := e.Put(ctx, pod{Name: "a", N: n})
					require.NoError(t, err)
					last = o.Revision
				}
				return e, last
			}
			before, last := live()
			require.NoError(t, before.Close())
			clocktest.Tick() // the first revision is the clock's
			now, newest := live()
			for _, from := range []engine.Revision{1, last - 250, last} {
				_, err := now.Watch(t.Context(), engine.WatchOptions{From: from})
				require.ErrorIs(t, err, engine.ErrExpired, "from %d", from)
				_, err = now.List(t.Context(), engine.ListOptions{Read: engine.Exactly(from)})
				require.ErrorIs(t, err, engine.ErrExpired, "at %d", from)
			}
			_, err := now.Watch(t.Context(), engine.WatchOptions{From: newest})
			require.NoError(t, err)
		})
	}
}

func TestTopic_FromAnotherLifeIsExpired(t *testing.T) {
	before := topicOn(t, engine.TopicOptions{})
	last := publish(t, before, 0, 100)
	require.NoError(t, before.Close())
	clocktest.Tick()
	now := topicOn(t, engine.TopicOptions{})
	publish(t, now, 0, 200)
	_, err := now.SubscribeWith(t.Context(), engine.SubscribeOptions{From: last}, func(int) {})
	require.ErrorIs(t, err, engine.ErrExpired)
}

// The first revision is the clock's, so that one on a virtual clock is the same in
// each run; or what the configuration says.
func TestConfig_FirstRevision(t *testing.T) {
	for want, given := range map[engine.Revision]engine.Revision{memory.FirstRevisionAt(epoch): 0, 77: 77} {
		host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch)})
		e, err := engine.New(engine.Config[pod]{Key: cfg().Key, Host: host, FirstRevision: given})
		require.NoError(t, err)
		first, err := e.Create(t.Context(), pod{Name: "a"})
		require.NoError(t, err)
		require.Equal(t, want+1, first.Revision)
		require.NoError(t, e.Close())
	}
	_, err := engine.New(engine.Config[pod]{Key: cfg().Key, FirstRevision: 1 << 63})
	require.ErrorIs(t, err, engine.ErrConfig)
	require.ErrorContains(t, err, "FirstRevision")
}

// The context of a detached watch bounds only its start.
func TestWatch_DetachedOutlastsItsContext(t *testing.T) {
	for name, noCache := range map[string]bool{"with a cache": false, "without a cache": true} {
		t.Run(name, func(t *testing.T) {
			e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.NoCache = noCache })
			start, cancel := context.WithTimeout(ctx, time.Minute)
			w, err := e.Watch(start, engine.WatchOptions{Detached: true, Bookmarks: true})
			require.NoError(t, err)
			bound, err := e.Watch(start, engine.WatchOptions{})
			require.NoError(t, err)
			cancel()
			<-bound.Done()
			_, err = e.Put(ctx, pod{Name: "a"})
			require.NoError(t, err)
			events, err := w.Next(ctx)
			require.NoError(t, err)
			require.Equal(t, "a", events[0].Key())
			_, err = w.Next(start)
			require.ErrorIs(t, err, context.Canceled, "which ends the call")
			require.NoError(t, w.Err())
			w.Stop()
			require.ErrorIs(t, w.Err(), engine.ErrStopped)
			_, err = e.Watch(start, engine.WatchOptions{Detached: true})
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}
