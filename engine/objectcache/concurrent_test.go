package objectcache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// Many goroutines acquire, read and release the same few keys, while another
// writes. None sees an object go back in time, and nothing is left.
func TestReferences_Concurrent(t *testing.T) {
	cache, source := realCache(t, func(c *objectcache.Config[secret]) { c.Immutable = nil })
	key := func(n int) string { return fmt.Sprintf("key-%d", n) }
	const keys, users, rounds = 4, 8, 60
	for n := range keys {
		_, err := source.Add(secret{Name: key(n)})
		require.NoError(t, err)
	}
	var all sync.WaitGroup
	for user := range users {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(user)))
			var last [keys]engine.Revision
			for range rounds {
				n := random.IntN(keys)
				last[n] = readTwice(t, cache, key(n), last[n])
			}
		})
	}
	all.Go(func() {
		for n := range users * rounds {
			_, err := source.Modify(secret{Name: key(n % keys), Data: fmt.Sprint(n)})
			if err != nil {
				t.Errorf("write: %v", err)
			}
		}
	})
	all.Wait()
	require.Zero(t, cache.Stats().References)
	require.Equal(t, 1, source.mostAtOnce())
}

// readTwice reads the object twice through a new reference, and returns its
// revision, which must not be older than last.
func readTwice(t *testing.T, cache *objectcache.Cache[secret], key string, last engine.Revision) engine.Revision {
	ref, err := cache.Acquire(key)
	if err != nil {
		t.Errorf("acquire: %v", err)
		return last
	}
	defer ref.Release()
	for range 2 {
		o, err := ref.Get(context.Background())
		if err != nil || o.Key != key || o.Revision < last {
			t.Errorf("Get: %v, %v; the last revision was %d", o, err, last)
			return last
		}
		last = o.Revision
	}
	return last
}

// Close comes while other goroutines use the cache: their calls end with ErrClosed.
func TestClose_DuringConcurrentUse(t *testing.T) {
	cache, _ := realCache(t)
	var all sync.WaitGroup
	busy := make(chan struct{}, 8)
	for user := range 8 {
		all.Go(func() {
			for n := 0; ; n++ {
				ref, err := cache.Acquire(fmt.Sprintf("key-%d", (user+n)%3))
				if err == nil {
					_, err = ref.Get(context.Background())
					ref.Release()
				}
				switch {
				case errors.Is(err, objectcache.ErrClosed):
					return
				case !errors.Is(err, objectcache.ErrNotFound):
					t.Errorf("before the end: %v", err)
					return
				}
				if n == 10 {
					busy <- struct{}{}
				}
			}
		})
	}
	for range 8 {
		<-busy
	}
	require.NoError(t, cache.Close())
	all.Wait()
}

func TestGet_AllocatesNothing(t *testing.T) {
	r := newFixture(t)
	r.put(secret{Name: "live"})
	r.put(secret{Name: "frozen", Immutable: true})
	for _, key := range []string{"live", "frozen", "missing"} {
		ref := r.acquire(key)
		r.settle()
		ctx := context.Background()
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = ref.Get(ctx) }), key)
	}
}

// BenchmarkGet reads an object that is being followed, from many goroutines.
func BenchmarkGet(b *testing.B) {
	source := newSpySource(enginetest.SourceOptions{})
	_, err := source.Add(secret{Name: "a"})
	require.NoError(b, err)
	cache, err := objectcache.New(objectcache.Config[secret]{Source: engine.SourceOf[secret](source)})
	require.NoError(b, err)
	ref, err := cache.Acquire("a")
	require.NoError(b, err)
	_, err = ref.Get(context.Background())
	require.NoError(b, err)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := ref.Get(context.Background()); err != nil {
				b.Error(err)
			}
		}
	})
	require.NoError(b, cache.Close())
	require.NoError(b, source.Close())
}
