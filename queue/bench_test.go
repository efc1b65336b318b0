package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/queue"
)

func benchThings(n int) []thing {
	things := make([]thing, n)
	for i := range things {
		things[i] = thing{fmt.Sprintf("thing-%d", i), "v"}
	}
	return things
}

func BenchmarkDeltaFIFOAddPop(b *testing.B) {
	q, things := newDelta(b, queue.DeltaFIFOConfig[thing]{}), benchThings(1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = q.Add(things[i%len(things)])
		_ = q.Pop(context.Background(), func(queue.Deltas[thing], bool) error { return nil })
	}
}

func BenchmarkRealFIFOAddPop(b *testing.B) {
	q, things := newReal(b, queue.RealFIFOConfig[thing]{}), benchThings(1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = q.Add(things[i%len(things)])
		_ = q.Pop(context.Background(), func(queue.Delta[thing], bool) error { return nil })
	}
}

// BenchmarkRealFIFOBatch is one add and its share of a batch of a thousand.
func BenchmarkRealFIFOBatch(b *testing.B) {
	q, things := newReal(b, queue.RealFIFOConfig[thing]{}), benchThings(1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = q.Add(things[i%len(things)])
		if i%len(things) == len(things)-1 {
			_ = q.PopBatch(context.Background(), func([]queue.Delta[thing], bool) error { return nil })
		}
	}
}

// BenchmarkDeltaFIFOReplace is a list of 5000 objects against what is known.
func BenchmarkDeltaFIFOReplace(b *testing.B) {
	things := benchThings(5000)
	for b.Loop() {
		q := newDelta(b, queue.DeltaFIFOConfig[thing]{Known: &known{}})
		require.NoError(b, q.Replace(things, 1))
	}
}

// BenchmarkWorkQueue is client-go's BenchmarkQueue: 100 items added, got and
// done.
func BenchmarkWorkQueue(b *testing.B) {
	q := newWork(b, queue.WorkQueueConfig[int]{})
	b.ReportAllocs()
	for b.Loop() {
		for i := range 100 {
			_ = q.Add(i)
		}
		for range 100 {
			i, _ := q.Get(context.Background())
			q.Done(i)
		}
	}
}

// BenchmarkWorkQueueAddAfter is one delay among up to a thousand.
func BenchmarkWorkQueueAddAfter(b *testing.B) {
	q := newWork(b, queue.WorkQueueConfig[int]{Clock: clock.NewVirtual(epoch)})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = q.AddAfter(i%1000, time.Duration(1+i*37%1000)*time.Second)
	}
	q.ShutDown()
}
