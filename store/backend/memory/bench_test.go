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

func benchBackend(b *testing.B, objects int) (*memory.Backend, []*store.Object) {
	m, err := memory.New(lamps, memory.Options{FirstRevision: 1})
	require.NoError(b, err)
	b.Cleanup(func() { _ = m.Close() })
	lit := make([]*store.Object, objects)
	for i := range lit {
		lit[i], err = m.Put(context.Background(), newLamp(fmt.Sprintf("ns-%d/lamp-%d", i%100, i), false), nil, backend.PutOptions{})
		require.NoError(b, err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	return m, lit
}

func BenchmarkPut(b *testing.B) {
	m, lit := benchBackend(b, 10_000)
	for i := 0; b.Loop(); i++ {
		k := i % len(lit)
		o, err := m.Put(context.Background(), newLamp(lit[k].Key, false), lit[k], backend.PutOptions{})
		if err != nil {
			b.Fatal(err)
		}
		lit[k] = o
	}
}

func BenchmarkCreateRemove(b *testing.B) {
	m, _ := benchBackend(b, 10_000)
	for b.Loop() {
		o, err := m.Put(context.Background(), newLamp("one/more", false), nil, backend.PutOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Remove(context.Background(), o); err != nil {
			b.Fatal(err)
		}
	}
}

// One write, one notification, one batch: what each event costs a watch that
// keeps up.
func BenchmarkPutNotifyNext(b *testing.B) {
	m, lit := benchBackend(b, 10_000)
	notified := false
	w, err := m.Watch(context.Background(), backend.WatchOptions{Notify: func() { notified = true }})
	require.NoError(b, err)
	defer w.Close()
	_, _ = w.Next(100)
	for i := 0; b.Loop(); i++ {
		k := i % len(lit)
		o, err := m.Put(context.Background(), newLamp(lit[k].Key, false), lit[k], backend.PutOptions{})
		if err != nil {
			b.Fatal(err)
		}
		lit[k] = o
		if batch, _ := w.Next(100); !notified || len(batch.Events) != 1 {
			b.Fatal("the event was not delivered")
		}
		notified = false
		_, _ = w.Next(100)
	}
}

// Reading history in batches of up to 256: ns per event.
func BenchmarkNext(b *testing.B) {
	m, lit := benchBackend(b, 10_000)
	for i := 0; b.Loop(); i++ {
		w, err := m.Watch(context.Background(), backend.WatchOptions{From: lit[0].Revision, Notify: func() {}})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for batch, _ := w.Next(256); len(batch.Events) > 0; batch, _ = w.Next(256) {
			n += len(batch.Events)
		}
		if n != len(lit)-1 {
			b.Fatal(n)
		}
		w.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(lit)-1), "ns/event")
}

func BenchmarkGet(b *testing.B) {
	m, lit := benchBackend(b, 10_000)
	for i := 0; b.Loop(); i++ {
		if _, err := m.Get(context.Background(), lit[i%len(lit)].Key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList10k(b *testing.B) {
	m, lit := benchBackend(b, 10_000)
	for b.Loop() {
		list, err := m.List(context.Background(), backend.ListOptions{})
		if err != nil || len(list.Items) != len(lit) {
			b.Fatal(err)
		}
	}
}
