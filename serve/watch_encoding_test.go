package serve_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

func TestWatch_AllGetTheSameAndShareOneEncoding(t *testing.T) {
	s := newServer(t)
	const watches, writes = 20, 50
	var all sync.WaitGroup
	got := make([]string, watches)
	for i := range watches {
		w := s.watch(inDefault + "?watch=1")
		all.Go(func() {
			for range writes {
				f, ok := w.next()
				if !ok {
					return
				}
				got[i] += f.str("metadata.resourceVersion") + " " + f.Type + "\n"
			}
		})
	}
	s.create("a", 0)
	for i := range writes - 1 {
		s.do("PATCH", inDefault+"/a", fmt.Sprintf(`{"spec":{"size":%d}}`, i+1), "Content-Type", mergePatch)
	}
	all.Wait()
	for _, one := range got {
		require.Equal(t, got[0], one)
		require.Len(t, strings.Split(one, "\n"), writes+1)
	}
	stats := s.handler.Stats()
	require.LessOrEqual(t, stats.EncodingMisses, uint64(writes))
	require.GreaterOrEqual(t, stats.EncodingHits, uint64((watches-1)*writes))
	require.Positive(t, stats.EncodingBytes)
}

// So do those that have tables, each row of which has the object's metadata, when the cache is full of events.
func TestWatch_TablesShareOneEncoding(t *testing.T) {
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Limits.EncodingBytes = 20_000 })
	whole := s.watch(inDefault + "?watch=1")
	for i := range 20 {
		s.createLarge(fmt.Sprint("w", i), 1000)
		whole.expect(fmt.Sprint("ADDED w", i))
	}
	from := inDefault + "?watch=1&resourceVersion=" + s.get(inDefault).str("metadata.resourceVersion")
	var tables []*watch
	for range 5 {
		tables = append(tables, s.watch(from, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"))
	}
	before := s.handler.Stats().EncodingMisses
	s.createLarge("last", 1000)
	whole.expect("ADDED last")
	for _, w := range tables {
		f, _ := w.next()
		require.Equal(t, "ADDED last", f.Type+" "+f.str("rows.0.object.metadata.name"))
	}
	require.EqualValues(t, 2, s.handler.Stats().EncodingMisses-before, "of the object, and of its metadata")
}

// However many events watches are sent, the server keeps the newest of their encodings alone.
func TestWatch_KeepsNoMoreEncodingsThanTheLimit(t *testing.T) {
	const limit, each = 20_000, 1000
	s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Limits.EncodingBytes = limit })
	first := s.watch(inDefault + "?watch=1")
	for i := range 100 {
		s.createLarge(fmt.Sprint("w", i), each)
		first.expect(fmt.Sprint("ADDED w", i))
	}
	before := s.handler.Stats()
	require.LessOrEqual(t, before.EncodingBytes, limit)
	require.Greater(t, before.EncodingBytes, limit/2)
	require.Contains(t, s.get(inDefault+"/w99").body, `"w99"`)
	require.Equal(t, before.EncodingHits+1, s.handler.Stats().EncodingHits, "the newest is kept")
	s.get(inDefault + "/w0")
	require.Equal(t, before.EncodingHits+1, s.handler.Stats().EncodingHits, "the oldest is not")
}

// Metadata is far smaller than its object may be, so what is kept of it keeps no state that nothing else has.
func TestWatch_EncodingsOfMetadataKeepNoObjects(t *testing.T) {
	for _, form := range []string{"PartialObjectMetadata", "Table"} {
		t.Run(form, func(t *testing.T) {
			s := newServer(t, func(w *registry.Config[Widget], _ *serve.Config) {
				w.Engine.Window.MaxEvents = 16
			})
			s.create("a", 1)
			w := s.watch(inDefault+"?watch=1", "Accept", "application/json;as="+form+";g=meta.k8s.io;v=v1")
			_, ok := w.next()
			require.True(t, ok)
			var states []weak.Pointer[engine.Object[Widget]]
			for i := range 200 {
				o, _, err := s.widgets.Update(t.Context(), "default/a", func(old *engine.Object[Widget]) (Widget, error) {
					changed := old.Value
					changed.Spec.Size = i + 2
					return changed, nil
				}, registry.WriteOptions{})
				require.NoError(t, err)
				states = append(states, weak.Make(o))
				_, ok = w.next()
				require.True(t, ok)
			}
			require.GreaterOrEqual(t, s.handler.Stats().EncodingMisses, uint64(200), "all were encoded")
			require.Eventually(t, func() bool {
				runtime.GC()
				states = slices.DeleteFunc(states, func(o weak.Pointer[engine.Object[Widget]]) bool { return o.Value() == nil })
				return len(states) < 100
			}, time.Minute, time.Millisecond)
		})
	}
}
