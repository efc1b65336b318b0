package etcd

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
)

// sending is the context of a request, and records whether that has left this process. An etcd
// client waits for a connection until the call's context ends, so the error alone does not
// distinguish a request that was never sent, which can be made again, from one that was not
// answered, whose outcome is unknown.
type sending struct {
	context.Context
	// to is the member that the request was sent to, without an address if there is none.
	to peer.Peer
}

type sendingKey struct{}

// Value returns s, for sendingKey.
func (s *sending) Value(key any) any {
	if key == (sendingKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// observeSending returns a context for one request, and what is recorded about it: nothing
// with Config.Client, which has no interceptor.
func (b *Backend) observeSending(ctx context.Context) (context.Context, *sending) {
	if !b.owned {
		return ctx, nil
	}
	s := &sending{Context: ctx}
	return s, s
}

// never reports whether it is certain that the request was not sent.
func (s *sending) never() bool { return s != nil && s.to.Addr == nil }

// noteMember is the interceptor of the backend's own clients. gRPC sets the member at the end of each attempt for which
// it has opened a stream, without which nothing is sent.
func noteMember(ctx context.Context, method string, req, reply any, on *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if s, is := ctx.Value(sendingKey{}).(*sending); is {
		opts = append(slices.Clip(opts), grpc.Peer(&s.to)) // a copy, as they may be another attempt's, too
	}
	return invoke(ctx, method, req, reply, on, opts...)
}
