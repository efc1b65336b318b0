package buses

import (
	"context"

	evbus "github.com/asaskevich/EventBus"

	"github.com/watchmill/watchmill/bench"
)

// EventBus is asaskevich's, with the Subscribe of its README.
func EventBus() bench.Contender {
	return bench.Contender{Name: "EventBus", Bus: func(context.Context) (bench.Bus, error) { return reflective{evbus.New()}, nil }}
}

type reflective struct{ bus evbus.Bus }

func (b reflective) Publish(_ context.Context, m bench.Message) error {
	b.bus.Publish(topic, m.Seq)
	return nil
}

func (b reflective) Subscribe(_ context.Context, handle func(seq int64)) (bench.Watch, error) {
	return subscription{stop: func() { _ = b.bus.Unsubscribe(topic, handle) }}, b.bus.Subscribe(topic, handle)
}

func (b reflective) Close() error { return nil }
