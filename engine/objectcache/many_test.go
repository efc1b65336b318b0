package objectcache_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/store/backend"
)

// tolled counts how often the watches of a source are told that there is more.
type tolled struct {
	engine.Source[secret]
	tolls *int
}

func (s tolled) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	notify := opts.Notify
	opts.Notify = func() { *s.tolls++; notify() }
	return s.Source.Watch(ctx, opts)
}

// crowd is a cache that follows many keys of an engine, on a deterministic host.
type crowd struct {
	clock    *enginetest.VirtualClock
	executor *actors.Seeded
	engine   *engine.Engine[secret]
	refs     []*objectcache.Ref[secret]
	tolls    int
}

func newCrowd(t testing.TB, keys int) *crowd {
	c := &crowd{clock: enginetest.NewVirtualClock(), executor: actors.NewSeeded(1)}
	host, err := engine.NewHost(engine.HostConfig{Clock: c.clock, Executor: c.executor, Seed: 1})
	require.NoError(t, err)
	cfg := secretConfig()
	cfg.Host = host
	c.engine, err = engine.New(cfg)
	require.NoError(t, err)
	cache, err := objectcache.New(objectcache.Config[secret]{
		Source: engine.SourceOf[secret](tolled{c.engine.Source(), &c.tolls}), Host: host, MaxIdle: objectcache.NeverIdle,
	})
	require.NoError(t, err)
	for i := range keys {
		ref, err := cache.Acquire(fmt.Sprintf("ns/%d", i))
		require.NoError(t, err)
		c.refs = append(c.refs, ref)
	}
	c.executor.Run()
	c.tolls = 0
	t.Cleanup(func() {
		require.NoError(t, cache.Close())
		require.NoError(t, c.engine.Close())
		require.Zero(t, host.Timers())
		require.NoError(t, host.Close())
	})
	return c
}

func (c *crowd) write(t testing.TB, i int, data string) {
	_, err := c.engine.Put(t.Context(), secret{Name: c.refs[i].Key(), Data: data})
	require.NoError(t, err)
	c.executor.Run()
}

func TestAWriteWakesOneOfAThousandReflectors(t *testing.T) {
	c := newCrowd(t, 1000)
	for n := range 3 {
		c.write(t, 7, strconv.Itoa(n))
		require.Equal(t, n+1, c.tolls)
		o, err := c.refs[7].Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(n), o.Value.Data)
	}
	c.clock.Advance(time.Second)
	c.executor.Run()
	require.Equal(t, 3+999, c.tolls, "the others learn how far they have got")
}

// BenchmarkWriteAmongFollowed writes one key while others are followed, a write
// per millisecond, and does all the work that this makes.
func BenchmarkWriteAmongFollowed(b *testing.B) {
	for _, keys := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			c := newCrowd(b, keys)
			n := 0
			for b.Loop() {
				n++
				c.write(b, 0, strconv.Itoa(n))
				c.clock.Advance(time.Millisecond)
			}
			b.ReportMetric(float64(c.tolls)/float64(n), "wakes/write")
		})
	}
}
