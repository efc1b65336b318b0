package expiry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/internal/expiry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func expiring(key string, seconds int) *store.Object {
	return &store.Object{Key: key, Expires: noon.Add(time.Duration(seconds) * time.Second)}
}

func TestQueue_IsInOrderOfTimeThenKey(t *testing.T) {
	q := expiry.NewQueue()
	require.Equal(t, expiry.Never, q.Earliest(noon))
	gone := expiring("gone", 0)
	for _, o := range []*store.Object{expiring("late", 3), expiring("b", 2), expiring("a", 2), expiring("c", 2), expiring("early", 1), gone} {
		q.Add(o, len(o.Key))
	}
	q.Remove(gone)
	q.Remove(&store.Object{Key: "permanent"})
	require.Equal(t, noon.Add(time.Second), q.Earliest(noon))
	require.Empty(t, q.Expired(noon, 10))
	require.Len(t, q.Expired(noon.Add(2*time.Second), 2), 2)

	var order []string
	for _, e := range q.Expired(noon.Add(2*time.Second), 10) {
		order = append(order, fmt.Sprint(e.Object.Key, e.Size))
		q.Remove(e.Object)
	}
	require.Equal(t, []string{"early5", "a1", "b1", "c1"}, order)
	require.Equal(t, noon.Add(3*time.Second), q.Earliest(noon))
}

// Objects from a file and others stay in order, and are found, when the wall clock is set.
func TestQueue_LosesNothingWhenTheWallClockIsSet(t *testing.T) {
	start := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		now, q, held := start, expiry.NewQueue(), map[string]*store.Object{}
		expired := func() (keys []string) {
			for key, o := range held {
				if !o.Expires.After(now) {
					keys = append(keys, key)
				}
			}
			return keys
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			hours := time.Duration(rapid.IntRange(1, 99).Draw(t, "hours")) * time.Hour
			key := fmt.Sprint("k", rapid.IntRange(0, 20).Draw(t, "key"))
			what := rapid.SampledFrom([]string{"write", "load", "remove", "pass", "set", "delete"}).Draw(t, "what")
			switch what {
			case "set":
				now = clocktest.SetWall(now, hours-50*time.Hour)
			case "pass":
				now = now.Add(hours / 10)
			case "remove":
				if o := held[key]; o != nil {
					q.Remove(o)
					delete(held, key)
				}
			case "delete":
				due := expired()
				var found []string
				for _, e := range q.Expired(now, 100) {
					require.Same(t, held[e.Object.Key], e.Object, "%s was written again", e.Object.Key)
					found = append(found, e.Object.Key)
					q.Remove(e.Object)
					delete(held, e.Object.Key)
				}
				require.ElementsMatch(t, due, found)
			case "load", "write":
				if o := held[key]; o != nil {
					q.Remove(o)
				}
				o := &store.Object{Key: key, Expires: now.Add(hours)}
				if what == "load" {
					o.Expires = o.Expires.Round(0) // as from a file
				}
				held[key] = o
				q.Add(o, 1)
			}
			require.Len(t, q.Expired(now, 100), len(expired()))
			earliest := expiry.Never
			for _, o := range held {
				if earliest.IsZero() || o.Expires.Sub(now) < earliest.Sub(now) {
					earliest = o.Expires
				}
			}
			require.Equal(t, earliest.IsZero(), q.Earliest(now).IsZero())
			require.Equal(t, earliest.Sub(now), q.Earliest(now).Sub(now))
		}
	})
}

// If Expired may not return all, it returns the first, of objects from a file and of others.
func TestQueue_ShowsTheFirstOfWhatHasExpired(t *testing.T) {
	start, q := time.Now(), expiry.NewQueue()
	for i, hours := range []time.Duration{4, 1, 3, 2} {
		at := start.Add(hours * time.Hour)
		q.Add(&store.Object{Key: fmt.Sprint("new ", hours), Expires: at}, i)
		q.Add(&store.Object{Key: fmt.Sprint("from a file ", hours), Expires: at.Round(0)}, i)
	}
	now := start.Add(3 * time.Hour)
	all := q.Expired(now, 100)
	require.Len(t, all, 6)
	for n := range all {
		require.Equal(t, all[:n], append([]*expiry.Expiring{}, q.Expired(now, n)...))
	}
}
