package watchcache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
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

// stoppingClock is a clock that panics when it is read once it is broken.
type stoppingClock struct {
	clock.Clock
	broken bool
}

func (c *stoppingClock) Now() time.Time {
	if c.broken {
		panic("what is time?")
	}
	return c.Clock.Now()
}

func TestStop_AnswersWaitersWhateverTheClockDoes(t *testing.T) {
	seeded, wall := actors.NewSeeded(1), &stoppingClock{Clock: clock.NewVirtual(began)}
	system, err := actors.NewSystem(actors.SystemConfig{Executor: seeded, Clock: wall})
	require.NoError(t, err)
	c := Spawn(system, wall, Config{Schema: new(store.Schema), Published: new(store.Published), Stats: new(Stats)})
	reply := make(chan error, 1)
	c.Wait(Wait{Revision: 1, Until: began.Add(time.Hour), Reply: reply})
	seeded.Run()
	require.Empty(t, reply)

	wall.broken = true
	require.NoError(t, system.Close(t.Context()))
	require.Len(t, reply, 1)
	require.ErrorIs(t, <-reply, ErrStopped)
	require.Zero(t, system.Timers())
}
