package bolt_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
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

// server is what the engine of BenchmarkRestart keeps: about 256 bytes of JSON.
type server struct {
	Name, Zone, Image string
	Restarts          int
}

func serverConfig() engine.Config[server] {
	return engine.Config[server]{
		Key:    func(s server) string { return s.Name },
		Fields: engine.Fields[server]{"zone": func(s server) string { return s.Zone }},
	}
}

func someServer(i, restarts int) server {
	return server{Name: fmt.Sprintf("ns-%d/server-%06d", i%100, i), Zone: fmt.Sprint("zone-", i%10), Image: text256[:180], Restarts: restarts}
}

// restarted is an engine over a file that has just been opened.
type restarted struct {
	*engine.Engine[server]
	file *bolt.File
}

func restart(b *testing.B, path string) *restarted {
	cfg := serverConfig()
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(b, err)
	cfg.Backend, err = bolt.New(f, "servers", bolt.Config{Schema: cfg.Schema(), FirstRevision: 1})
	require.NoError(b, err)
	e, err := engine.New(cfg)
	require.NoError(b, err)
	return &restarted{e, f}
}

func (r *restarted) close(b *testing.B) {
	require.NoError(b, r.Engine.Close())
	require.NoError(b, r.file.Close())
}

// fillServers creates n servers and then updates each, with many writers, and
// discards the history of the creations.
func fillServers(b *testing.B, e *engine.Engine[server], n int) {
	const writers = 512
	created := engine.Revision(0)
	for restarts := range 2 {
		created = e.Revision()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := w; i < n; i += writers {
					if _, err := e.Put(b.Context(), someServer(i, restarts)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		require.NoError(b, e.WaitFor(b.Context(), created+engine.Revision(n)))
	}
	require.NoError(b, e.Compact(b.Context(), created))
}

// A restart with 100,000 objects and as many changes of them: how long it takes until
// the engine serves the state that storage has, and from then until 1,000 watches from
// revisions before the restart, of the last 10,000, have read up to the newest.
func BenchmarkRestart(b *testing.B) {
	const objects, watches = 100_000, 1000
	path := filepath.Join(b.TempDir(), "state.db")
	r := restart(b, path)
	fillServers(b, r.Engine, objects)
	newest := r.Revision()
	r.close(b)
	runtime.GC()
	var ready, resumed time.Duration
	for b.Loop() {
		start := time.Now()
		r := restart(b, path)
		err := r.WaitFor(b.Context(), newest)
		for errors.Is(err, engine.ErrNotReady) {
			err = r.WaitFor(b.Context(), newest)
		}
		require.NoError(b, err)
		ready += time.Since(start)
		start = time.Now()
		var wg sync.WaitGroup
		for i := range watches {
			wg.Go(func() {
				w, err := r.Watch(b.Context(), engine.WatchOptions{From: newest - engine.Revision(1+i*10)})
				for err == nil && w.Revision() < newest {
					_, err = w.Next(b.Context())
				}
				if err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		resumed += time.Since(start)
		b.StopTimer()
		r.close(b)
		b.StartTimer()
	}
	b.ReportMetric(float64(ready.Milliseconds())/float64(b.N), "ready-ms")
	b.ReportMetric(float64(resumed.Milliseconds())/float64(b.N), "resumed-ms")
}
