package etcd

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// sending records whether a request has left this process. An etcd client waits for a
// connection until the call's context ends, so the error alone does not distinguish a
// request that was never sent, which can be made again, from one that was not answered,
// whose outcome is unknown.
type sending struct{ observed, sent atomic.Bool }

type sendingKey struct{}

// observed is the context of a request that is observed.
type observed struct {
	context.Context
	sending
}

// Value returns what is recorded, for sendingKey.
func (o *observed) Value(key any) any {
	if key == (sendingKey{}) {
		return &o.sending
	}
	return o.Context.Value(key)
}

// observeSending returns a context for one request, and what is recorded about it: nothing
// with Config.Client, which has no observer.
func (b *Backend) observeSending(ctx context.Context) (context.Context, *sending) {
	if !b.owned {
		return ctx, nil
	}
	o := &observed{Context: ctx}
	return o, &o.sending
}

// never reports whether it is certain that the request was not sent.
func (s *sending) never() bool { return s != nil && s.observed.Load() && !s.sent.Load() }

// sendingObserver is the stats.Handler of the backend's own clients.
type sendingObserver struct{}

var _ stats.Handler = sendingObserver{}

// TagRPC is called before a connection is chosen.
func (sendingObserver) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		s.observed.Store(true)
	}
	return ctx
}

// HandleRPC records that the headers of a request were sent, or that those of its answer have come, which may be long.
func (sendingObserver) HandleRPC(ctx context.Context, what stats.RPCStats) {
	switch what.(type) {
	case *stats.OutHeader:
		if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
			s.sent.Store(true)
		}
	case *stats.InHeader:
		if r, ok := ctx.Value(requestKey{}).(*request); ok {
			r.avoidance.end(r, true)
		}
	}
}

// TagConn and HandleConn: connections are not observed.
func (sendingObserver) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (sendingObserver) HandleConn(context.Context, stats.ConnStats) {}
