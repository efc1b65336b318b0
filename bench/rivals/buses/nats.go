package buses

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/watchmill/watchmill/bench"
)

// NATS is a server in the process with in-process connections. Subscriptions have
// no pending limits, so that the client drops nothing.
func NATS() bench.Contender {
	return bench.Contender{Name: "nats", Bus: openNATS}
}

// startTimeout is how long the server may take to accept connections.
const startTimeout = time.Minute

type natsBus struct {
	server          *server.Server
	publisher, subs *nats.Conn
	// lost is closed once the subscribers' connection has failed.
	lost chan struct{}
}

func openNATS(context.Context) (bench.Bus, error) {
	s, err := server.NewServer(&server.Options{DontListen: true, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	s.Start()
	b := &natsBus{server: s, lost: make(chan struct{})}
	if !s.ReadyForConnections(startTimeout) {
		return nil, errors.Join(fmt.Errorf("not ready within %v", startTimeout), b.Close())
	}
	lose := sync.OnceFunc(func() { close(b.lost) })
	b.publisher, err = nats.Connect("", nats.InProcessServer(s))
	if err == nil {
		b.subs, err = nats.Connect("", nats.InProcessServer(s), nats.NoReconnect(),
			nats.ClosedHandler(func(*nats.Conn) { lose() }),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { lose() }))
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *natsBus) Publish(_ context.Context, m bench.Message) error {
	return b.publisher.Publish(topic, encode(m.Seq))
}

func (b *natsBus) Subscribe(_ context.Context, handle func(seq int64)) (bench.Watch, error) {
	s, err := b.subs.Subscribe(topic, func(m *nats.Msg) { handle(decode(m.Data)) })
	if err != nil {
		return nil, err
	}
	if err := s.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	// The subscription is active once the server has answered.
	return subscription{done: b.lost, stop: func() { _ = s.Unsubscribe() }}, b.subs.Flush()
}

func (b *natsBus) Close() error {
	for _, c := range []*nats.Conn{b.publisher, b.subs} {
		if c != nil {
			c.Close()
		}
	}
	b.server.Shutdown()
	b.server.WaitForShutdown()
	return nil
}
