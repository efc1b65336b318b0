package buses

import (
	"context"

	"github.com/watchmill/watchmill/bench"
)

// topic is the topic of all messages.
const topic = "bench"

// subscription is the bench.Watch of a bus. It ends by itself only if done is set.
type subscription struct {
	done <-chan struct{}
	stop func()
}

func (s subscription) Done() <-chan struct{}          { return s.done }
func (s subscription) Drain(context.Context, int) int { return 0 }
func (s subscription) Stop()                          { s.stop() }

// All returns every bus.
func All() []bench.Contender {
	return []bench.Contender{Channels(), Gochannel(), NATS(), EventBus(), Broadcaster(), EventStream()}
}
