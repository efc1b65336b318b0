package buses

import (
	"context"
	"slices"
	"sync"

	"github.com/watchmill/watchmill/bench"
)

// Channels is a bus without a library: a list of channels under a lock, and a
// publisher that blocks when one is full.
func Channels() bench.Contender {
	return bench.Contender{Name: "channels", Bus: func(context.Context) (bench.Bus, error) { return &channels{}, nil }}
}

// channelCapacity is how many messages the channel of a subscriber holds.
const channelCapacity = 1024

type channels struct {
	mu        sync.RWMutex
	out       []chan int64
	consumers sync.WaitGroup
}

func (b *channels) Publish(_ context.Context, m bench.Message) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, c := range b.out {
		c <- m.Seq
	}
	return nil
}

func (b *channels) Subscribe(_ context.Context, handle func(seq int64)) (bench.Watch, error) {
	c := make(chan int64, channelCapacity)
	b.consumers.Go(func() {
		for seq := range c {
			handle(seq)
		}
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out = append(b.out, c)
	return subscription{stop: func() { b.remove(c) }}, nil
}

func (b *channels) remove(c chan int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.out, c); i >= 0 {
		b.out = slices.Delete(b.out, i, i+1)
		close(c)
	}
}

func (b *channels) Close() error {
	b.mu.Lock()
	for _, c := range b.out {
		close(c)
	}
	b.out = nil
	b.mu.Unlock()
	b.consumers.Wait()
	return nil
}
