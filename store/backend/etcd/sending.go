package etcd

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// sending knows whether a request has left this process. A client of etcd waits for
// a connection as long as the call lasts, so that the error alone does not tell a
// request that was never sent, which may be made again, from one that was not
// answered, of which nothing is known.
type sending struct{ observed, sent atomic.Bool }

type sendingKey struct{}

// observeSending returns a context for one request.
func observeSending(ctx context.Context) (context.Context, *sending) {
	s := &sending{}
	return context.WithValue(ctx, sendingKey{}, s), s
}

// never reports whether it is certain that the request was not sent. It is false for
// clients that were given, which are not observed.
func (s *sending) never() bool { return s.observed.Load() && !s.sent.Load() }

// sendingObserver is told of all requests of a client.
type sendingObserver struct{}

var _ stats.Handler = sendingObserver{}

// TagRPC is called before a connection is chosen.
func (sendingObserver) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		s.observed.Store(true)
	}
	return ctx
}

// HandleRPC is told when the headers go out on a connection.
func (sendingObserver) HandleRPC(ctx context.Context, what stats.RPCStats) {
	if _, out := what.(*stats.OutHeader); !out {
		return
	}
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		s.sent.Store(true)
	}
}

// TagConn and HandleConn: connections are not observed.
func (sendingObserver) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (sendingObserver) HandleConn(context.Context, stats.ConnStats) {}
