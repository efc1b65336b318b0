package buses

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/watchmill/watchmill/bench"
)

// Gochannel is Watermill's bus in memory, as its own benchmark sets it up: with a
// buffered channel for each subscriber, and messages with a constant for a UUID
// and a payload of bytes, each acknowledged.
func Gochannel() bench.Contender {
	return bench.Contender{Name: "watermill", Bus: func(context.Context) (bench.Bus, error) {
		return &watermillBus{bus: gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: channelCapacity}, watermill.NopLogger{})}, nil
	}}
}

// messageID is the UUID of all messages, since generating one for each would
// dominate.
const messageID = "1"

type watermillBus struct {
	bus       *gochannel.GoChannel
	consumers sync.WaitGroup
}

func (b *watermillBus) Publish(_ context.Context, m bench.Message) error {
	return b.bus.Publish(topic, message.NewMessage(messageID, encode(m.Seq)))
}

func (b *watermillBus) Subscribe(ctx context.Context, handle func(seq int64)) (bench.Watch, error) {
	ctx, cancel := context.WithCancel(ctx)
	messages, err := b.bus.Subscribe(ctx, topic)
	if err != nil {
		cancel()
		return nil, err
	}
	done := make(chan struct{})
	b.consumers.Go(func() {
		defer close(done)
		for m := range messages {
			handle(decode(m.Payload))
			m.Ack()
		}
	})
	return subscription{done: done, stop: cancel}, nil
}

func (b *watermillBus) Close() error {
	err := b.bus.Close()
	b.consumers.Wait()
	return err
}

// encode and decode are the payload of buses that carry bytes.
func encode(seq int64) []byte     { return binary.LittleEndian.AppendUint64(nil, uint64(seq)) }
func decode(b []byte) (seq int64) { return int64(binary.LittleEndian.Uint64(b)) }
