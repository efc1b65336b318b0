package buses

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmill/watchmill/bench"
)

// Broadcaster is apimachinery's watch.Broadcaster as client-go's event recorder
// makes it, except that it blocks instead of dropping.
func Broadcaster() bench.Contender {
	return bench.Contender{Name: "watch.Broadcaster", Bus: func(context.Context) (bench.Bus, error) {
		return &broadcaster{bus: watch.NewLongQueueBroadcaster(recorderQueue, watch.WaitIfChannelFull)}, nil
	}}
}

// recorderQueue is client-go's maxQueuedEvents.
const recorderQueue = 1000

type broadcaster struct {
	bus       *watch.Broadcaster
	consumers sync.WaitGroup
}

func (b *broadcaster) Publish(_ context.Context, m bench.Message) error {
	return b.bus.Action(watch.Added, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: m.Seq}})
}

func (b *broadcaster) Subscribe(_ context.Context, handle func(seq int64)) (bench.Watch, error) {
	w, err := b.bus.Watch()
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	b.consumers.Go(func() {
		defer close(done)
		for ev := range w.ResultChan() {
			handle(ev.Object.(metav1.Object).GetGeneration())
		}
	})
	return subscription{done: done, stop: w.Stop}, nil
}

func (b *broadcaster) Close() error {
	b.bus.Shutdown()
	b.consumers.Wait()
	return nil
}
