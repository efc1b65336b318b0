package objectcache_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/objectcache"
)

// BenchmarkGet reads an object that is being followed, from many goroutines.
func BenchmarkGet(b *testing.B) {
	source := newSpy(enginetest.SourceOptions{})
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
