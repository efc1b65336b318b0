package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func benchBackend(b *testing.B, objects int) (*memory.Backend[lamp], []string, []store.Revision) {
	m, err := memory.New(lamps, memory.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { _ = m.Close() })
	keys, revisions := make([]string, objects), make([]store.Revision, objects)
	for i := range keys {
		keys[i] = fmt.Sprintf("ns-%d/lamp-%d", i%100, i)
		o, err := m.Put(context.Background(), keys[i], lamp{Name: keys[i]}, 0, backend.PutOptions{})
		require.NoError(b, err)
		revisions[i] = o.Revision
	}
	b.ReportAllocs()
	b.ResetTimer()
	return m, keys, revisions
}

func BenchmarkPut(b *testing.B) {
	m, keys, revisions := benchBackend(b, 10_000)
	for i := 0; b.Loop(); i++ {
		k := i % len(keys)
		o, err := m.Put(context.Background(), keys[k], lamp{Name: keys[k]}, revisions[k], backend.PutOptions{})
		if err != nil {
			b.Fatal(err)
		}
		revisions[k] = o.Revision
	}
}

func BenchmarkCreateRemove(b *testing.B) {
	m, _, _ := benchBackend(b, 10_000)
	for b.Loop() {
		o, err := m.Put(context.Background(), "one/more", lamp{Name: "one/more"}, 0, backend.PutOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Remove(context.Background(), "one/more", o.Revision); err != nil {
			b.Fatal(err)
		}
	}
}

// One write, one notification, one batch: what each event costs a watch that
// keeps up.
func BenchmarkPutNotifyNext(b *testing.B) {
	m, keys, revisions := benchBackend(b, 10_000)
	notified := false
	w, err := m.Watch(context.Background(), backend.WatchOptions{Notify: func() { notified = true }})
	require.NoError(b, err)
	defer w.Close()
	_, _ = w.Next(100)
	for i := 0; b.Loop(); i++ {
		k, err := i%len(keys), error(nil)
		var o *store.Object[lamp]
		if o, err = m.Put(context.Background(), keys[k], lamp{Name: keys[k]}, revisions[k], backend.PutOptions{}); err != nil {
			b.Fatal(err)
		}
		revisions[k] = o.Revision
		if batch, _ := w.Next(100); !notified || len(batch.Events) != 1 {
			b.Fatal("the event was not delivered")
		}
		notified = false
		_, _ = w.Next(100)
	}
}

// Reading history in batches of up to 256: ns per event.
func BenchmarkNext(b *testing.B) {
	m, _, revisions := benchBackend(b, 10_000)
	for i := 0; b.Loop(); i++ {
		w, err := m.Watch(context.Background(), backend.WatchOptions{From: revisions[0], Notify: func() {}})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for batch, _ := w.Next(256); len(batch.Events) > 0; batch, _ = w.Next(256) {
			n += len(batch.Events)
		}
		if n != len(revisions)-1 {
			b.Fatal(n)
		}
		w.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(revisions)-1), "ns/event")
}

func BenchmarkGet(b *testing.B) {
	m, keys, _ := benchBackend(b, 10_000)
	for i := 0; b.Loop(); i++ {
		if _, err := m.Get(context.Background(), keys[i%len(keys)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList10k(b *testing.B) {
	m, keys, _ := benchBackend(b, 10_000)
	for b.Loop() {
		list, err := m.List(context.Background(), backend.ListOptions{})
		if err != nil || len(list.Items) != len(keys) {
			b.Fatal(err)
		}
	}
}
