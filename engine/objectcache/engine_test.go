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

// A kubelet with many pods has thousands of watches at the server. Here the keys
// share the one stream of an engine.
func TestEngine_ServesAllKeysFromOneStream(t *testing.T) {
	const keys = 1000
	storage := enginetest.NewSource(secretConfig())
	e := enginetest.NewWith(t, engine.Config[secret]{Key: secretConfig().Key, Backend: storage}, enginetest.Deterministic(1))
	cache, err := objectcache.New(objectcache.Config[secret]{Source: e.Engine().Source(), Host: e.Host(), Immutable: immutable})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cache.Close()) })
	e.List(engine.ListOptions{}) // the engine has begun
	lists, watches := storage.ListCalls(), storage.WatchCalls()
	refs := make([]*objectcache.Ref[secret], keys)
	for n := range refs {
		refs[n], err = cache.Acquire(fmt.Sprintf("secret-%d", n))
		require.NoError(t, err)
	}
	for n, ref := range refs {
		_, err := ref.Get(context.Background())
		require.ErrorIs(t, err, objectcache.ErrNotFound)
		e.Create(secret{Name: fmt.Sprintf("secret-%d", n), Data: "here", Immutable: n%2 == 0})
	}
	e.Advance(0)
	for _, ref := range refs {
		o, err := ref.Get(context.Background())
		require.NoError(t, err)
		require.Equal(t, "here", o.Value.Data)
	}
	require.Equal(t, keys/2, cache.Stats().Reflectors)
	require.Equal(t, lists, storage.ListCalls(), "lists of the storage")
	require.Equal(t, watches, storage.WatchCalls(), "watches of the storage")
	require.Equal(t, 1, watches)
}

// countingSource counts the notifications of a source's watches.
type countingSource struct {
	engine.Source[secret]
	notified *int
}

func (s countingSource) Watch(ctx context.Context, opts backend.WatchOptions) (backend.Watcher, error) {
	notify := opts.Notify
	opts.Notify = func() { *s.notified++; notify() }
	return s.Source.Watch(ctx, opts)
}

// manyKeys is a cache that follows many keys of an engine, on a deterministic host.
type manyKeys struct {
	clock    *enginetest.VirtualClock
	executor *actors.Seeded
	engine   *engine.Engine[secret]
	refs     []*objectcache.Ref[secret]
	notified int
}

func newManyKeys(t testing.TB, keys int) *manyKeys {
	c := &manyKeys{clock: enginetest.NewVirtualClock(), executor: actors.NewSeeded(1)}
	host, err := engine.NewHost(engine.HostConfig{Clock: c.clock, Executor: c.executor, Seed: 1})
	require.NoError(t, err)
	cfg := secretConfig()
	cfg.Host = host
	c.engine, err = engine.New(cfg)
	require.NoError(t, err)
	cache, err := objectcache.New(objectcache.Config[secret]{
		Source: engine.SourceOf[secret](countingSource{c.engine.Source(), &c.notified}), Host: host, MaxIdle: objectcache.NeverIdle,
	})
	require.NoError(t, err)
	for i := range keys {
		ref, err := cache.Acquire(fmt.Sprintf("ns/%d", i))
		require.NoError(t, err)
		c.refs = append(c.refs, ref)
	}
	c.executor.Run()
	c.notified = 0
	t.Cleanup(func() {
		require.NoError(t, cache.Close())
		require.NoError(t, c.engine.Close())
		require.Zero(t, host.Timers())
		require.NoError(t, host.Close())
	})
	return c
}

func (c *manyKeys) write(t testing.TB, i int, data string) {
	_, err := c.engine.Put(t.Context(), secret{Name: c.refs[i].Key(), Data: data})
	require.NoError(t, err)
	c.executor.Run()
}

func TestEngine_AWriteWakesOneOfAThousandReflectors(t *testing.T) {
	c := newManyKeys(t, 1000)
	for n := range 3 {
		c.write(t, 7, strconv.Itoa(n))
		require.Equal(t, n+1, c.notified)
		o, err := c.refs[7].Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(n), o.Value.Data)
	}
	c.clock.Advance(time.Second)
	c.executor.Run()
	require.Equal(t, 3+999, c.notified, "the others get progress")
}

// BenchmarkWriteAmongFollowed writes one key while others are followed, a write per
// millisecond, and runs all the work that follows from it.
func BenchmarkWriteAmongFollowed(b *testing.B) {
	for _, keys := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			c := newManyKeys(b, keys)
			n := 0
			for b.Loop() {
				n++
				c.write(b, 0, strconv.Itoa(n))
				c.clock.Advance(time.Millisecond)
			}
			b.ReportMetric(float64(c.notified)/float64(n), "wakes/write")
		})
	}
}
