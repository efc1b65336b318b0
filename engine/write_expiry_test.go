package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// A write of a leased object leaves its expiry as it is, unless it says otherwise.
func TestWrite_LeavesTheExpiryAsItIs(t *testing.T) {
	clock := engine.NewVirtualClock(epoch)
	e, ctx := newEngine(t, func(c *engine.Config[pod]) { c.Host = hostFor(t, engine.HostConfig{Clock: clock}) })
	created, err := e.CreateWith(ctx, pod{Name: "a"}, engine.CreateOptions{TTL: time.Minute})
	require.NoError(t, err)
	require.Equal(t, epoch.Add(time.Minute), created.Expires)
	clock.Advance(time.Second)
	count := func(p pod) (pod, error) { p.N++; return p, nil }
	writes := []struct {
		what  string
		write func() (*engine.Object[pod], error)
		at    time.Time
	}{
		{"Put", func() (*engine.Object[pod], error) { return e.Put(ctx, pod{Name: "a", N: 1}) }, created.Expires},
		{"Put of an equal value", func() (*engine.Object[pod], error) { return e.Put(ctx, pod{Name: "a", N: 1}) }, created.Expires},
		{"Update", func() (*engine.Object[pod], error) { return e.Update(ctx, "a", count, engine.UpdateOptions{}) }, created.Expires},
		{"Update with a TTL", func() (*engine.Object[pod], error) {
			return e.Update(ctx, "a", count, engine.UpdateOptions{TTL: time.Hour})
		}, epoch.Add(time.Second + time.Hour)},
		{"Put with a TTL", func() (*engine.Object[pod], error) {
			return e.PutWith(ctx, pod{Name: "a"}, engine.PutOptions{TTL: time.Minute})
		}, epoch.Add(time.Second + time.Minute)},
		{"Update to permanent", func() (*engine.Object[pod], error) {
			return e.Update(ctx, "a", count, engine.UpdateOptions{Permanent: true})
		}, time.Time{}},
		{"Put with a TTL of what was permanent", func() (*engine.Object[pod], error) {
			return e.PutWith(ctx, pod{Name: "a"}, engine.PutOptions{TTL: time.Minute})
		}, epoch.Add(time.Second + time.Minute)},
		{"Put of an equal value to permanent", func() (*engine.Object[pod], error) {
			return e.PutWith(ctx, pod{Name: "a"}, engine.PutOptions{Permanent: true})
		}, time.Time{}},
		{"Put of what is permanent", func() (*engine.Object[pod], error) { return e.Put(ctx, pod{Name: "a", N: 9}) }, time.Time{}},
	}
	for _, w := range writes {
		o, err := w.write()
		require.NoError(t, err, w.what)
		require.Equal(t, w.at, o.Expires, w.what)
	}
	clock.Advance(24 * time.Hour)
	o, err := e.Get(ctx, "a", engine.GetOptions{})
	require.NoError(t, err, "it is permanent")
	require.Equal(t, 9, o.Value.N)
}

func TestWrite_TTLAndPermanentExcludeEachOther(t *testing.T) {
	e, ctx := newEngine(t, nil)
	_, err := e.PutWith(ctx, pod{Name: "a"}, engine.PutOptions{TTL: time.Second, Permanent: true})
	wanted{usercode.ErrConfig, []string{"Permanent", "1s", "one of them"}}.require(t, err)
	_, err = e.PutWith(ctx, pod{Name: "a"}, engine.PutOptions{TTL: -1})
	wanted{usercode.ErrConfig, []string{"TTL", "negative"}}.require(t, err)
	_, err = e.Get(ctx, "a", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound, "nothing was written")
}
