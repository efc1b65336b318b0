package cache_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/cache"
)

// indexedKeys returns a store of n strings, each its own key and its own value
// in the one index, as a watch cache indexes nodes by name.
func indexedKeys(b *testing.B, n int) (*cache.ThreadSafeStore[string], []string) {
	s, err := cache.NewThreadSafeStore(cache.Indexers[string]{
		"self": func(item string) ([]string, error) { return []string{item}, nil },
	})
	require.NoError(b, err)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("object-number-%d", i)
		require.NoError(b, s.Add(keys[i], keys[i], 0))
	}
	return s, keys
}

// BenchmarkIndexer is client-go's: one update of 5000 keys with an index whose
// values stay.
func BenchmarkIndexer(b *testing.B) {
	s, keys := indexedKeys(b, 5000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := s.Update(keys[i%len(keys)], keys[i%len(keys)], 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIndexerUnderList is the same while every hundredth update is
// followed by a list, which makes the next writes copy what they touch.
func BenchmarkIndexerUnderList(b *testing.B) {
	s, keys := indexedKeys(b, 5000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := s.Update(keys[i%len(keys)], keys[i%len(keys)], 0); err != nil {
			b.Fatal(err)
		}
		if i%100 == 0 {
			s.View()
		}
	}
}

func BenchmarkThreadSafeStoreGet(b *testing.B) {
	s, keys := indexedKeys(b, 5000)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			s.Get(keys[i%len(keys)])
		}
	})
}
