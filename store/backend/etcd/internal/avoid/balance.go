package avoid

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// DialOptions make a client avoid late members. Without an avoidance there are none.
func (a *Avoidance) DialOptions() []grpc.DialOption {
	if a == nil {
		return nil
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(a.unary), grpc.WithChainStreamInterceptor(a.stream),
		grpc.WithStatsHandler(beginnings{}),
		grpc.WithDisableServiceConfig(), // in which etcd's client chooses another balancer
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + balancerName + `": {}}]}`),
	}
}

// unary makes an attempt of a request. etcd's client makes another one if it was cancelled and the call was not.
func (a *Avoidance) unary(ctx context.Context, method string, req, reply any, on *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if strings.HasPrefix(method, "/etcdserverpb.Maintenance/") { // a question to one member, and about that alone
		return invoke(ctx, method, req, reply, on, opts...)
	}
	r := a.newRequest(ctx)
	r.counts = r.only == "" && !strings.HasPrefix(method, "/etcdserverpb.Auth/") // as the client logs in before it can ask
	if method == pb.KV_Range_FullMethodName {
		r.Context, r.again = context.WithCancel(ctx)
		defer r.again()
	}
	err := invoke(r, method, req, reply, on, opts...)
	answered := Answered(status.Code(err))
	a.end(r, answered)
	if r.only != "" && !answered {
		a.rest(ctx)
	}
	return err
}

// rest waits before a member is asked again that has refused at once, as what stands before it may, if it is gone.
func (a *Avoidance) rest(ctx context.Context) {
	select {
	case <-time.After(a.patience):
	case <-ctx.Done():
	}
}

// stream opens a stream at a member that is not late.
func (a *Avoidance) stream(ctx context.Context, desc *grpc.StreamDesc, on *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(a.newRequest(ctx), desc, on, method, opts...)
}

func (a *Avoidance) newRequest(ctx context.Context) *request {
	return &request{Context: ctx, avoidance: a, only: Member(ctx)}
}

// balancerName is the name of takingTurns in gRPC.
const balancerName = "watchmill_etcd_taking_turns"

func init() { balancer.Register(takingTurns{}) }

// takingTurns builds balancers with which the members that are connected take turns, as with that of etcd's client,
// but for those that are avoided.
type takingTurns struct{}

func (takingTurns) Name() string { return balancerName }

func (takingTurns) Build(client balancer.ClientConn, opts balancer.BuildOptions) balancer.Balancer {
	member := balancer.Get(pickfirst.Name).Build
	return endpointsharding.NewBalancer(connections{client}, opts, member, endpointsharding.Options{})
}

// connections are those of a client.
type connections struct{ balancer.ClientConn }

// UpdateState lets requests choose among the members that are connected, if there are any.
func (c connections) UpdateState(s balancer.State) {
	p := &picker{Picker: s.Picker}
	for _, member := range endpointsharding.ChildStatesFromPicker(s.Picker) {
		if member.State.ConnectivityState == connectivity.Ready {
			p.connected = append(p.connected, connection{member.Endpoint.Addresses[0].Addr, member.State.Picker})
		}
	}
	if len(p.connected) > 0 {
		s.Picker = p
	}
	c.ClientConn.UpdateState(s)
}

// connection is a member that is connected.
type connection struct {
	address string
	picker  balancer.Picker
}

// picker chooses a member for each request. Its Picker is for those that avoid none.
type picker struct {
	balancer.Picker
	connected []connection
	turn      atomic.Uint32
}

// Pick chooses the next member that the request can go to. Without one the request waits.
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	r, avoids := info.Ctx.Value(requestKey{}).(*request)
	if !avoids {
		return p.Picker.Pick(info)
	}
	turn := p.turn.Add(1) % uint32(len(p.connected))
	i, found := r.avoidance.choose(r, p.connected, int(turn))
	if !found {
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
	return p.connected[i].picker.Pick(info)
}

// beginnings is the stats.Handler by which an avoidance knows that an answer has begun, which may be long.
type beginnings struct{}

var _ stats.Handler = beginnings{}

// HandleRPC notes that the headers of an answer have come.
func (beginnings) HandleRPC(ctx context.Context, what stats.RPCStats) {
	if _, begun := what.(*stats.InHeader); !begun {
		return
	}
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		r.avoidance.end(r, true)
	}
}

// TagRPC, TagConn and HandleConn: nothing else is observed.
func (beginnings) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (beginnings) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (beginnings) HandleConn(context.Context, stats.ConnStats) {}
