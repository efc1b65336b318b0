package bench

import (
	"context"
	"fmt"

	"github.com/watchmill/watchmill/engine"
)

// Message is a bus's message.
type Message struct{ Seq int64 }

// Bus is a system that carries messages from publishers to subscribers. Its
// methods are safe for concurrent use.
type Bus interface {
	// Publish sends m to all subscribers, in the way that loses least if the system
	// has several.
	Publish(ctx context.Context, m Message) error
	// Subscribe calls handle with every message from now on. It returns when the
	// subscription is active. The handler does not block.
	Subscribe(ctx context.Context, handle func(seq int64)) (Watch, error)
	// Close ends all subscriptions and frees everything.
	Close() error
}

// buses is W15: one publisher, and subscribers that count.
func buses() []Workload {
	work := func(id string, subscribers, messages int) Workload {
		return Workload{
			ID: id, Text: fmt.Sprintf("as a bus: 1 publisher as fast as it goes, subscribers: %d", subscribers),
			Full:  Params{Watchers: subscribers, Events: messages},
			Small: Params{Watchers: min(subscribers, 20), Events: 100},
			Goals: []Goal{atLeast(Deliveries, 1), mustBeZero(Lost)},
			Run:   publish, Floor: callFloor, Able: onBus,
		}
	}
	// With one subscriber, EventStream is a function call.
	one := work("W15/1", 1, 1_000_000)
	one.Goals = []Goal{
		atLeast(Deliveries, 0.9).than("channels"), atMost(P50, 1.5).than("channels"),
		atLeast(Deliveries, 1).than("watermill", "nats", "EventBus", "watch.Broadcaster"), mustBeZero(Lost),
	}
	return []Workload{one, work("W15/100", 100, 5000), work("W15/1000", 1000, 1000)}
}

// busRate is the rate at which latency is measured, in messages per second: every bus
// sustains it with 1,000 subscribers. At full speed, the latency of a bus that queues
// would be that of its queue.
const busRate = 100

// publish measures throughput at full speed, then latency at busRate.
func publish(ctx context.Context, c Contender, p Params) (Result, error) {
	on := func(p Params) (Result, error) {
		return run(ctx, c, c.Bus, func(ctx context.Context, b Bus) (Result, error) { return publishTo(ctx, b, p) })
	}
	saturated, err := on(p)
	if err != nil {
		return nil, err
	}
	p.Rate, p.Events = busRate, min(p.Events/5, 2*busRate)
	steady, err := on(p)
	if err != nil {
		return nil, err
	}
	return append(append(saturated.only(Deliveries), steady.only(P50, P99)...), saturated.only(Lost)...), nil
}

func publishTo(ctx context.Context, bus Bus, p Params) (Result, error) {
	crowd := newCrowd(p.Watchers, 1, newWriter(p, objects(1)))
	err := crowd.open(func(_ int, handle func(seq int64)) (Watch, error) { return bus.Subscribe(ctx, handle) })
	if err != nil {
		return nil, err
	}
	took, err := crowd.run(ctx, func(ctx context.Context, o Object) error { return bus.Publish(ctx, Message{o.Seq}) })
	if err != nil {
		return nil, err
	}
	return crowd.result(took), nil
}

// topicBus adapts a topic to Bus.
type topicBus struct{ topic *engine.Topic[Message] }

func openTopic(context.Context) (Bus, error) { return topicBus{engine.NewTopic[Message]()}, nil }

func (b topicBus) Publish(ctx context.Context, m Message) error {
	_, err := b.topic.Publish(ctx, m)
	return err
}

func (b topicBus) Subscribe(ctx context.Context, handle func(seq int64)) (Watch, error) {
	sub, err := b.topic.SubscribeWith(ctx, engine.SubscribeOptions{OnPool: true}, func(m Message) { handle(m.Seq) })
	return topicWatch{sub}, err
}

func (b topicBus) Close() error { return b.topic.Close() }

// topicWatch adapts a subscription to Watch.
type topicWatch struct{ *engine.Subscription }

// Drain has nothing to read: a subscription has a handler.
func (topicWatch) Drain(context.Context, int) int { return 0 }
