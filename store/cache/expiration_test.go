package cache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/cache"
)

// hand is a clock that stands still until it is moved.
type hand struct{ now time.Time }

func newHand() *hand { return &hand{time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (h *hand) Now() time.Time { return h.now }

// newMortals returns a cache of widgets that live as many seconds as their Rev
// says.
func newMortals(t *testing.T) (*cache.ExpirationCache[widget], *hand) {
	clock := newHand()
	c, err := cache.NewExpirationCache(cache.ExpirationConfig[widget]{
		Key: widgetKey,
		Now: clock.Now,
		TTL: func(w widget) time.Duration { return time.Duration(w.Rev) * time.Second },
	})
	require.NoError(t, err)
	return c, clock
}

func TestExpirationCache_MeetsTheStoreContract(t *testing.T) {
	c, _ := newMortals(t)
	checkContract(t, c, same)
	require.Equal(t, store.Revision(10), c.LastRevision())
}

func TestExpirationCache_GetRemovesAnExpiredItem(t *testing.T) {
	c, clock := newMortals(t)
	require.NoError(t, c.Add(widget{Name: "a", Rev: 5}))
	clock.now = clock.now.Add(6 * time.Second)
	_, exists, err := c.Get(widget{Name: "a"})
	require.NoError(t, err)
	require.False(t, exists)
	require.Zero(t, c.Purge(), "it was removed already")
}

func TestExpirationCache_KeepsAnItemAddedAgain(t *testing.T) {
	var c *cache.ExpirationCache[widget]
	clock := newHand()
	again := false
	c, err := cache.NewExpirationCache(cache.ExpirationConfig[widget]{
		Key: widgetKey,
		TTL: func(widget) time.Duration { return time.Second },
		Now: func() time.Time {
			if again { // between finding it dead and removing it
				again = false
				require.NoError(t, c.Add(widget{Name: "a", Rev: 2}))
			}
			return clock.now
		},
	})
	require.NoError(t, err)
	require.NoError(t, c.Add(widget{Name: "a", Rev: 1}))
	clock.now = clock.now.Add(time.Minute)
	again = true
	_, exists := c.GetByKey("a")
	require.False(t, exists, "what was found was dead")
	got, exists := c.GetByKey("a")
	require.True(t, exists)
	require.Equal(t, store.Revision(2), got.Rev)
}

func TestExpirationCache_ListRemovesExpiredItems(t *testing.T) {
	c, clock := newMortals(t)
	require.NoError(t, c.Replace([]widget{{Name: "a", Rev: 1}, {Name: "b", Rev: 9}, {Name: "c", Rev: 2}}, 3))
	clock.now = clock.now.Add(5 * time.Second)
	require.Equal(t, []string{"b"}, c.ListKeys(), "keys of the dead are not listed either")
	require.Equal(t, []string{"b"}, widgetNames(c.List()))
	require.Zero(t, c.Purge())
	clock.now = clock.now.Add(5 * time.Second)
	require.Equal(t, 1, c.Purge())
	require.Empty(t, c.List())
}

func TestExpirationCache_TTL(t *testing.T) {
	c, clock := newMortals(t)
	require.NoError(t, c.Add(widget{Name: "a", Rev: 5}))
	require.NoError(t, c.Add(widget{Name: "immortal"}))
	clock.now = clock.now.Add(5 * time.Second)
	require.Equal(t, []string{"a", "immortal"}, c.ListKeys(), "as old as its time to live")
	clock.now = clock.now.Add(time.Nanosecond)
	require.Equal(t, []string{"immortal"}, c.ListKeys())
	clock.now = clock.now.AddDate(100, 0, 0)
	require.Equal(t, []string{"immortal"}, c.ListKeys())

	forever, err := cache.NewExpirationCache(cache.ExpirationConfig[widget]{Key: widgetKey, Now: clock.Now})
	require.NoError(t, err)
	require.NoError(t, forever.Add(widget{Name: "a"}))
	clock.now = clock.now.AddDate(100, 0, 0)
	require.Equal(t, []widget{{Name: "a"}}, forever.List())
}

func TestExpirationCache_ReturnsErrors(t *testing.T) {
	_, err := cache.NewExpirationCache(cache.ExpirationConfig[widget]{Now: time.Now})
	require.ErrorIs(t, err, cache.ErrNoKeyFunc)
	_, err = cache.NewExpirationCache(cache.ExpirationConfig[widget]{Key: widgetKey})
	require.ErrorIs(t, err, cache.ErrNoClock)

	c, err := cache.NewExpirationCache(cache.ExpirationConfig[widget]{
		Key: widgetKey, Now: time.Now, TTL: func(widget) time.Duration { panic(errNameless) },
	})
	require.NoError(t, err)
	_, _, getErr := c.Get(widget{})
	for _, err := range []error{c.Add(widget{Name: "a"}), c.Add(widget{}), c.Delete(widget{}), c.Replace([]widget{{Name: "a"}}, 1), getErr} {
		require.ErrorIs(t, err, errNameless)
	}
	require.Empty(t, c.List())
}

func ExampleExpirationCache() {
	now := time.Unix(0, 0)
	sessions, err := cache.NewExpirationCache(cache.ExpirationConfig[machine]{
		Key: machineName,
		Now: func() time.Time { return now },
		TTL: func(machine) time.Duration { return time.Hour },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sessions.Add(machine{Name: "m1"})
	fmt.Println(sessions.ListKeys())
	now = now.Add(61 * time.Minute)
	fmt.Println(sessions.ListKeys(), sessions.Purge())
	// Output:
	// [m1]
	// [] 1
}
