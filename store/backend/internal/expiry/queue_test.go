package expiry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/clock"
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
	require.Equal(t, expiry.Never, q.Earliest())
	gone := expiring("gone", 0)
	for _, o := range []*store.Object{expiring("late", 3), expiring("b", 2), expiring("a", 2), expiring("early", 1), gone} {
		q.Add(o, len(o.Key))
	}
	q.Remove(gone)
	q.Remove(&store.Object{Key: "permanent"})
	require.Equal(t, noon.Add(time.Second), q.Earliest())
	require.Empty(t, q.Expired(noon, 10))
	require.Len(t, q.Expired(noon.Add(2*time.Second), 2), 2)

	var order []string
	for e := q.Due(noon.Add(2 * time.Second)); e != nil; e = q.Due(noon.Add(2 * time.Second)) {
		order = append(order, fmt.Sprint(e.Object.Key, e.Size))
	}
	require.Equal(t, []string{"early5", "a1", "b1"}, order)
	require.Equal(t, noon.Add(3*time.Second), q.Earliest())
}

func TestAlarm_RingsOnceAtItsTime(t *testing.T) {
	virtual, rung := clock.NewVirtual(time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)), 0
	a := expiry.NewAlarm(virtual, func() { rung++ })
	a.Set(virtual.Now().Add(time.Minute))
	a.Set(virtual.Now().Add(2 * time.Minute))
	require.True(t, a.IsSet())
	require.Equal(t, 1, virtual.Pending())
	virtual.Advance(time.Minute)
	require.Zero(t, rung)
	virtual.Advance(time.Minute)
	require.Equal(t, 1, rung)
	a.Rang()
	require.False(t, a.IsSet())
	a.Set(virtual.Now())
	a.Set(expiry.Never)
	require.Zero(t, virtual.Pending())
}
