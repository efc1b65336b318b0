package buses

import (
	"context"

	"github.com/watchmill/watchmill/bench"
)

// topic is where all messages go.
const topic = "bench"

// subscription is a bench.Watch of a bus: none of these ends by itself, except
// where done says so.
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
