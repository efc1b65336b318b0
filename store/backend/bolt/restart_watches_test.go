package bolt_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// server is what the engine of these tests keeps: about 256 bytes of JSON.
type server struct {
	Name, Zone, Image string
	Restarts          int
}

func serverConfig() engine.Config[server] {
	return engine.Config[server]{
		FreshnessTimeout: time.Minute, // a machine may be slow

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

func restart(tb testing.TB, path string) *restarted {
	cfg := serverConfig()
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(tb, err)
	cfg.Backend, err = bolt.New(f, "servers", bolt.Config{Schema: cfg.Schema(), FirstRevision: 1})
	require.NoError(tb, err)
	e, err := engine.New(cfg)
	require.NoError(tb, err)
	return &restarted{e, f}
}

func (r *restarted) close(tb testing.TB) {
	require.NoError(tb, r.Engine.Close())
	require.NoError(tb, r.file.Close())
}

// fillServers creates n servers and then updates each, with many writers, and
// discards the history of the creations. It returns the last revision of those.
func fillServers(tb testing.TB, e *engine.Engine[server], n int) engine.Revision {
	const writers = 512
	created := engine.Revision(0)
	for restarts := range 2 {
		created = e.Revision()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := w; i < n; i += writers {
					if _, err := e.Put(tb.Context(), someServer(i, restarts)); err != nil {
						tb.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		require.NoError(tb, e.WaitForRevision(tb.Context(), created+engine.Revision(n)))
	}
	require.NoError(tb, e.Compact(tb.Context(), created))
	return created
}

// watchUpTo has n watches that begin after oldest stop, each at another place of the history
// up to newest, and returns the checkpoints that they leave.
func (r *restarted) watchUpTo(tb testing.TB, n int, oldest, newest engine.Revision) []engine.Checkpoint {
	left := make([]engine.Checkpoint, n)
	var wg sync.WaitGroup
	for i := range n {
		place := oldest + 1 + (newest-oldest-1)*engine.Revision(i)/engine.Revision(n)
		wg.Go(func() {
			w, err := r.Watch(tb.Context(), engine.WatchOptions{From: oldest})
			if err != nil {
				tb.Error(err)
				return
			}
			defer w.Stop()
			for ev, err := range w.Events() {
				if err != nil {
					tb.Error(err)
				}
				if err != nil || ev.Revision == place {
					break
				}
			}
			if left[i], err = r.Checkpoint(tb.Context(), w.Revision()); err != nil {
				tb.Error(err)
			}
		})
	}
	wg.Wait()
	return left
}

// resume goes on with a watch from each checkpoint, until each has got, in order and each
// once, all that came after it up to newest.
func (r *restarted) resume(tb testing.TB, from []engine.Checkpoint, newest engine.Revision) {
	var wg sync.WaitGroup
	for _, checkpoint := range from {
		wg.Go(func() {
			last, err := r.RevisionOf(tb.Context(), checkpoint)
			if err != nil {
				tb.Error(err)
				return
			}
			w, err := r.Watch(tb.Context(), engine.WatchOptions{From: last})
			for err == nil && last < newest {
				var events []engine.Event[server]
				events, err = w.Next(tb.Context())
				for _, ev := range events {
					if last++; ev.Revision != last {
						tb.Errorf("got revision %d for %d", ev.Revision, last)
						return
					}
				}
			}
			if err != nil {
				tb.Error(err)
			}
		})
	}
	wg.Wait()
}

// waitUntilReady blocks until the engine serves the state that storage has.
func (r *restarted) waitUntilReady(tb testing.TB, newest engine.Revision) {
	err := r.WaitForRevision(tb.Context(), newest)
	for errors.Is(err, engine.ErrNotReady) {
		err = r.WaitForRevision(tb.Context(), newest)
	}
	require.NoError(tb, err)
}

func TestRestart_WatchesGoOnWhereTheyStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	r := restart(t, path)
	oldest := fillServers(t, r.Engine, 500)
	newest := r.Revision()
	left := r.watchUpTo(t, 50, oldest, newest)
	r.close(t)
	require.Equal(t, oldest+1, left[0].Revision)
	require.Greater(t, left[49].Revision, left[48].Revision)

	r = restart(t, path)
	defer r.close(t)
	r.waitUntilReady(t, newest)
	r.resume(t, left, newest)
}

// A restart with 100,000 objects and as many changes of them: how long it takes until
// the engine serves the state that storage has, and from then until 1,000 watches, which
// before the restart had stopped at places all over the history, have what came after:
// 50 million events.
func BenchmarkRestart(b *testing.B) {
	const objects, watches = 100_000, 1000
	path := filepath.Join(b.TempDir(), "state.db")
	r := restart(b, path)
	oldest := fillServers(b, r.Engine, objects)
	newest := r.Revision()
	left := r.watchUpTo(b, watches, oldest, newest)
	r.close(b)
	runtime.GC()
	var ready, resumed time.Duration
	for b.Loop() {
		start := time.Now()
		r := restart(b, path)
		r.waitUntilReady(b, newest)
		ready += time.Since(start)
		start = time.Now()
		r.resume(b, left, newest)
		resumed += time.Since(start)
		b.StopTimer()
		r.close(b)
		b.StartTimer()
	}
	b.ReportMetric(float64(ready.Milliseconds())/float64(b.N), "ready-ms")
	b.ReportMetric(float64(resumed.Milliseconds())/float64(b.N), "resumed-ms")
}
