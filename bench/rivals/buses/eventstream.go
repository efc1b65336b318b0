package buses

import (
	"context"

	"github.com/asynkron/protoactor-go/eventstream"

	"github.com/watchmill/watchmill/bench"
)

// EventStream is protoactor's.
func EventStream() bench.Contender {
	return bench.Contender{Name: "EventStream", Bus: func(context.Context) (bench.Bus, error) {
		return stream{eventstream.NewEventStream()}, nil
	}}
}

type stream struct{ bus *eventstream.EventStream }

func (b stream) Publish(_ context.Context, m bench.Message) error {
	b.bus.Publish(m)
	return nil
}

func (b stream) Subscribe(_ context.Context, handle func(seq int64)) (bench.Watch, error) {
	s := b.bus.Subscribe(func(m any) {
		if m, ok := m.(bench.Message); ok {
			handle(m.Seq)
		}
	})
	return subscription{stop: func() { b.bus.Unsubscribe(s) }}, nil
}

func (b stream) Close() error { return nil }
