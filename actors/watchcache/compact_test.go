package watchcache

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/store"
)

func (f *fixture) compact(rev store.Revision) {
	f.Helper()
	reply := make(chan error, 1)
	f.cache.Compact(Compact{Revision: rev, Reply: reply})
	f.seeded.Run()
	require.NoError(f, <-reply)
}

func (f *fixture) floor() store.Revision { return f.snapshot().Window.Floor() }

// The list was read before storage discarded the history.
func TestCompact_IsKeptByAListThatWasUnderWay(t *testing.T) {
	t.Run("before the first list", func(t *testing.T) {
		c := newFixture(t, Config{})
		c.compact(100)
		c.list(90)
		c.list(105)
		require.GreaterOrEqual(t, c.floor(), store.Revision(100))
	})
	t.Run("later", func(t *testing.T) {
		c := newFixture(t, Config{})
		c.list(80)
		c.compact(100)
		c.list(90)
		c.list(105)
		require.GreaterOrEqual(t, c.floor(), store.Revision(100))
	})
}

// What was compacted was of another history.
func TestCompact_IsForgottenWhenStorageGoesBack(t *testing.T) {
	c := newFixture(t, Config{})
	c.list(105)
	c.compact(100)
	c.list(7)
	c.offer(reflector.Update{Kind: reflector.Progress, Revision: 8})
	require.EqualValues(t, 7, c.floor())
}

// The history of another storage was not compacted, however far that of the first one was.
func TestCompact_IsForgottenWithTheStorage(t *testing.T) {
	c := newFixture(t, Config{})
	c.list(105)
	c.compact(1000)
	c.offer(reflector.Update{Kind: reflector.Replace, Reason: reflector.Restored, Revision: 200, StoreID: "other"})
	c.offer(reflector.Update{Kind: reflector.Progress, Revision: 210})
	require.EqualValues(t, 200, c.floor())
}
