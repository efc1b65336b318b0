package bolt_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

func benchBackend(b *testing.B, path string, cfg bolt.Config) (*bolt.File, *bolt.Backend) {
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { _ = f.Close() })
	cfg.Schema, cfg.FirstRevision = backendtest.Schema(), 1
	items, err := bolt.New(f, "items", cfg)
	require.NoError(b, err)
	return f, items
}

var text256 = fmt.Sprintf("%0256d", 0)

// Updates of one object each by a number of writers, on a real disk.
func BenchmarkPut(b *testing.B) {
	for _, writers := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			_, items := benchBackend(b, filepath.Join(b.TempDir(), "state.db"), bolt.Config{})
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					var prev *store.Object
					for left.Add(-1) >= 0 {
						var err error
						if prev, err = items.Put(b.Context(), draft(fmt.Sprint("k", w), text256), prev, backend.PutOptions{}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	_, items := benchBackend(b, filepath.Join(b.TempDir(), "state.db"), bolt.Config{})
	_, err := items.Put(b.Context(), draft("k", text256), nil, backend.PutOptions{})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := items.Get(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}

// fill makes n objects and then updates each, with many writers.
func fill(b *testing.B, items *bolt.Backend, n int) {
	var wg sync.WaitGroup
	const writers = 512
	for w := range writers {
		wg.Go(func() {
			for i := w; i < n; i += writers {
				o, err := items.Put(b.Context(), draft(fmt.Sprintf("ns-%d/item-%d", i%100, i), text256), nil, backend.PutOptions{})
				if err == nil {
					_, err = items.Put(b.Context(), draft(o.Key, text256), o, backend.PutOptions{})
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Opening a file of 100,000 objects and as many changes of them, and resuming a
// watch from the first.
func BenchmarkReopen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "state.db")
	f, items := benchBackend(b, path, bolt.Config{})
	fill(b, items, 100_000)
	require.NoError(b, f.Close())
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			f, err := bolt.Open(path, bolt.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := bolt.New(f, "items", bolt.Config{Schema: backendtest.Schema()}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			_ = f.Close()
			b.StartTimer()
		}
	})
	b.Run("resume", func(b *testing.B) {
		_, items := benchBackend(b, path, bolt.Config{})
		n := 0
		for b.Loop() {
			notified := make(chan struct{}, 1)
			w, err := items.Watch(b.Context(), backend.WatchOptions{From: 100_001, Notify: func() {
				select {
				case notified <- struct{}{}:
				default:
				}
			}})
			if err != nil {
				b.Fatal(err)
			}
			for seen := 0; seen < 100_000; {
				batch, err := w.Next(1000)
				if err != nil {
					b.Fatal(err)
				}
				if seen += len(batch.Events); len(batch.Events) == 0 {
					<-notified
				}
			}
			n += 100_000
			w.Close()
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
	})
}
