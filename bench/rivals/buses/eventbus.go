package buses

import (
	"context"

	evbus "github.com/asaskevich/EventBus"

	"github.com/watchmill/watchmill/bench"
)

// EventBus is asaskevich's, with the Subscribe of its README.
func EventBus() bench.Contender {
	return bench.Contender{Name: "EventBus", Bus: func(context.Context) (bench.Bus, error) { return eventBus{evbus.New()}, nil }}
}

type eventBus struct{ bus evbus.Bus }

func (b eventBus) Publish(_ context.Context, m bench.Message) error {
	b.bus.Publish(topic, m.Seq)
	return nil
}

func (b eventBus) Subscribe(_ context.Context, handle func(seq int64)) (bench.Watch, error) {
	return subscription{stop: func() { _ = b.bus.Unsubscribe(topic, handle) }}, b.bus.Subscribe(topic, handle)
}

func (b eventBus) Close() error { return nil }
