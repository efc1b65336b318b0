package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/engine"
)

// load writes objects, then updates them at random, and returns by how much the
// heap has grown, and what Stats says of it. value is another one for each n.
func load[T any](t *testing.T, cfg engine.Config[T], objects, updates int, value func(key, n int) T) (grown int64, s engine.Stats) {
	before := heapHeld()
	e, err := engine.New(cfg)
	require.NoError(t, err)
	// What is written before the engine watches its storage is state, and no event of the window.
	require.Eventually(t, func() bool { return e.Stats().Source.Phase == reflector.Watching }, time.Minute, time.Millisecond)
	var held weak.Pointer[engine.Object[T]]
	t.Cleanup(func() {
		require.NoError(t, e.Close())
		e = nil
		for held.Value() != nil { // so that the next test does not see this one's memory go
			collect()
		}
	})
	var last *engine.Object[T]
	random := rand.New(rand.NewPCG(1, 2))
	for n := range objects + updates {
		key := n
		if n >= objects {
			key = random.IntN(objects)
		}
		if last != nil && n == objects+updates-1 { // a write drops what the cache has read, which other load on the machine delays
			require.NoError(t, e.WaitForRevision(t.Context(), last.Revision))
		}
		last, err = e.Put(t.Context(), value(key, n))
		require.NoError(t, err)
	}
	require.NoError(t, e.WaitForRevision(t.Context(), last.Revision))
	held = weak.Make(last)
	grown, s = heapHeld()-before, e.Stats()
	runtime.KeepAlive(e)
	return grown, s
}

// heapHeld returns the bytes of the heap that are left when three collections in a row have
// freed nothing: what earlier tests have left is freed once finalizers have run and
// goroutines have ended, which other load on the machine delays.
func heapHeld() int64 {
	held := int64(math.MaxInt64)
	for quiet := 0; quiet < 3; quiet++ {
		collect()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if now := int64(m.HeapAlloc); now < held-held/1000 {
			held, quiet = now, 0
		}
	}
	return held
}

// collect returns when the finalizers have run that a collection has found to be due.
func collect() {
	done := make(chan struct{})
	runtime.SetFinalizer(&note{Name: "the last one"}, func(*note) { close(done) })
	for {
		runtime.GC()
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

const mib = 1 << 20

type note struct{ Name, Text string }

func noteName(n note) string { return n.Name }

func newNote(key, n int) note {
	return note{fmt.Sprintf("notes/%06d", key), strings.Repeat("x", 40) + fmt.Sprintf("%010d", n)}
}

func requireStatsTrue(t *testing.T, grown int64, s engine.Stats) {
	t.Helper()
	said := s.StateBytes + s.WindowBytes + s.HistoryBytes
	t.Logf("heap %.1f MiB, said %.1f: state %.1f, window %.1f, history %.1f",
		float64(grown)/mib, float64(said)/mib, float64(s.StateBytes)/mib, float64(s.WindowBytes)/mib, float64(s.HistoryBytes)/mib)
	require.InEpsilon(t, grown, said, 0.25)
}

func TestStats_SayWhatTheHeapHolds(t *testing.T) {
	const objects = 50_000
	// What all actor systems of a process share is made by the first.
	_, _ = load(t, engine.Config[note]{Key: noteName}, 1, 0, newNote)
	t.Run("small window", func(t *testing.T) {
		grown, s := load(t, engine.Config[note]{Key: noteName, Window: engine.Window{MaxEvents: 1000}}, objects, 2*objects, newNote)
		requireStatsTrue(t, grown, s)
		require.Less(t, grown, int64(60*mib*objects/100_000))
	})
	t.Run("defaults", func(t *testing.T) {
		grown, s := load(t, engine.Config[note]{Key: noteName}, objects, 2*objects, newNote)
		requireStatsTrue(t, grown, s)
		require.Less(t, grown, int64(250*mib*objects/100_000))
		require.Equal(t, 3*objects, s.WindowEvents)
	})
	t.Run("indexed, with maps that change", func(t *testing.T) {
		type pod struct {
			Name  string
			Node  string
			Notes map[string]string
		}
		grown, s := load(t, engine.Config[pod]{
			Key:    func(p pod) string { return p.Name },
			Fields: engine.Fields[pod]{"node": func(p pod) string { return p.Node }},
			Index:  []string{"node"},
		}, 20_000, 40_000, func(key, n int) pod {
			return pod{fmt.Sprintf("pods/%06d", key), fmt.Sprintf("node-%03d", n%100), map[string]string{
				"written": fmt.Sprintf("as number %010d", n), "by": strings.Repeat("x", n%100),
			}}
		})
		requireStatsTrue(t, grown, s)
	})
	t.Run("labels made for each object", func(t *testing.T) {
		grown, s := load(t, engine.Config[note]{Key: noteName, Labels: func(n note) labels.Set {
			return labels.Set{"text": n.Text, "app": "notes"}
		}}, objects, objects, newNote)
		requireStatsTrue(t, grown, s)
	})
	t.Run("labels by values", func(t *testing.T) {
		grown, s := load(t, engine.Config[note]{Key: noteName, LabelValues: engine.LabelValues[note]{
			"text": func(n note) string { return n.Text }, "app": func(note) string { return "notes" },
		}}, objects, objects, newNote)
		requireStatsTrue(t, grown, s)
	})
	t.Run("labels that are a part of the value", func(t *testing.T) {
		type labelled struct {
			Name   string
			Labels map[string]string
		}
		grown, s := load(t, engine.Config[labelled]{
			Key:    func(l labelled) string { return l.Name },
			Labels: func(l labelled) labels.Set { return l.Labels },
		}, objects, objects, func(key, n int) labelled {
			of := map[string]string{}
			for i := range 6 {
				of[fmt.Sprint("label-", i)] = "the same"
			}
			return labelled{fmt.Sprintf("%06d", key), of}
		})
		requireStatsTrue(t, grown, s)
	})
	t.Run("large values without Size", func(t *testing.T) {
		type file struct {
			Name string
			Data []byte
		}
		grown, s := load(t, engine.Config[file]{
			Key: func(f file) string { return f.Name }, Window: engine.Window{MaxBytes: 256 * mib},
		}, 10, 5990, func(key, n int) file {
			data := make([]byte, 100_000)
			copy(data, fmt.Sprint(n))
			return file{fmt.Sprint("file-", key), data}
		})
		requireStatsTrue(t, grown, s)
		require.Less(t, grown-s.StateBytes, int64(300*mib))
	})
}
