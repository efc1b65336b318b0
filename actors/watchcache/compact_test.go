package watchcache

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
)

// compacted is a cache that handles each message at once.
type compacted struct {
	*testing.T
	seeded *actors.Seeded
	cache  *Cache
}

func newCompacted(t *testing.T) *compacted {
	seeded := actors.NewSeeded(1)
	system, err := actors.NewSystem(actors.SystemConfig{Executor: seeded, Clock: clock.NewVirtual(began)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.Close(context.Background())) })
	down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return discarding{} }, actors.Options{})
	return &compacted{t, seeded, Spawn(system, clock.NewVirtual(began), Config{
		Schema: new(store.Schema), Published: new(store.Published), Dispatcher: down, Stats: new(Stats),
	})}
}

func (c *compacted) offer(u reflector.Update) {
	require.Equal(c, actors.Accepted, c.cache.Offer(u))
	c.seeded.Run()
}

// list gives the cache an empty list.
func (c *compacted) list(rev store.Revision) {
	c.offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Requested, Revision: rev})
}

func (c *compacted) compact(rev store.Revision) {
	reply := make(chan error, 1)
	c.cache.Compact(Compact{Revision: rev, Reply: reply})
	c.seeded.Run()
	require.NoError(c, <-reply)
}

func (c *compacted) floor() store.Revision { return c.cache.published.Load().Window.Floor() }

// The list was read before storage discarded the history.
func TestCompact_IsKeptByAListThatWasUnderWay(t *testing.T) {
	t.Run("before the first list", func(t *testing.T) {
		c := newCompacted(t)
		c.compact(100)
		c.list(90)
		c.list(105)
		require.GreaterOrEqual(t, c.floor(), store.Revision(100))
	})
	t.Run("later", func(t *testing.T) {
		c := newCompacted(t)
		c.list(80)
		c.compact(100)
		c.list(90)
		c.list(105)
		require.GreaterOrEqual(t, c.floor(), store.Revision(100))
	})
}

// What was compacted was of another history.
func TestCompact_IsForgottenWhenStorageGoesBack(t *testing.T) {
	c := newCompacted(t)
	c.list(105)
	c.compact(100)
	c.list(7)
	c.offer(reflector.Update{Kind: reflector.Progress, Revision: 8})
	require.EqualValues(t, 7, c.floor())
}
