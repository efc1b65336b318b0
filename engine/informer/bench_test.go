package informer_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/store"
)

// BenchmarkListener measures the way from a write to all handlers, per event.
// client-go has a benchmark of that name.
func BenchmarkListener(b *testing.B) {
	for _, handlers := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(handlers), func(b *testing.B) { benchmarkHandlers(b, handlers) })
	}
}

func benchmarkHandlers(b *testing.B, handlers int) {
	source := enginetest.NewSource(podConfig())
	defer source.Close()
	host, err := engine.NewHost(engine.HostConfig{})
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	s, err := informer.New(informer.Config[pod]{Source: engine.SourceOf[pod](source), Host: host})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var told atomic.Int64
	listening := make([]*informer.Registration, handlers)
	for i := range listening {
		if listening[i], err = s.Subscribe(func(informer.Notification[pod]) { told.Add(1) }, informer.HandlerOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	var last store.Revision
	for i := 0; b.Loop(); i++ {
		p := pod{Name: fmt.Sprint("p", i%5000), N: i}
		if last, err = source.Modify(p); err != nil {
			last, err = source.Add(p)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.WaitForRevision(b.Context(), last); err != nil {
		b.Fatal(err)
	}
	for _, handle := range listening {
		if err := handle.Remove(b.Context(), informer.Drain); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(told.Load())/float64(b.N), "told/op")
}
