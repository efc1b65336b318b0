package avoid

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// avoidanceTest is an avoidance over members that answer at once, or never.
//
//	call ──▶ interceptor ──▶ attempt ──▶ picker ──▶ member
type avoidanceTest struct {
	testing.TB
	*Avoidance
	picker picker
	// silent are the members that do not answer.
	silent map[string]bool
	// heal has a channel for each member, which is closed when it answers the question whether it is there.
	heal map[string]chan struct{}
}

const patienceOfTest = time.Second

func newAvoidanceTest(t testing.TB, members ...string) *avoidanceTest {
	x := &avoidanceTest{TB: t, silent: map[string]bool{}, heal: map[string]chan struct{}{}}
	x.Avoidance = New(len(members), patienceOfTest, func(address string) {
		if x.silent[address] {
			<-x.heal[address]
		}
	})
	for _, m := range members {
		x.picker.connected = append(x.picker.connected, connection{m, memberPicker(m)})
		x.heal[m] = make(chan struct{})
	}
	x.picker.Picker = memberPicker("any")
	return x
}

// memberPicker is the picker of a member, whose answer names it.
type memberPicker string

func (p memberPicker) Pick(balancer.PickInfo) (balancer.PickResult, error) {
	return balancer.PickResult{SubConn: subConn{name: string(p)}}, nil
}

type subConn struct {
	balancer.SubConn
	name string
}

// pick returns the member that a request goes to.
func (x *avoidanceTest) pick(ctx context.Context) string {
	result, err := x.picker.Pick(balancer.PickInfo{Ctx: ctx})
	if err != nil {
		return err.Error()
	}
	return result.SubConn.(subConn).name
}

// call makes one attempt of a request, and returns the member that it went to. One that is silent ends it with ctx.
func (x *avoidanceTest) call(ctx context.Context, method string) (member string, err error) {
	err = x.unary(ctx, method, nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		if member = x.pick(ctx); x.silent[member] {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}
		return nil
	})
	return member, err
}

// asked returns the members that n writes go to, one after the other. None of them must be silent.
func (x *avoidanceTest) asked(n int) (members []string) {
	x.Helper()
	for range n {
		m, err := x.call(x.Context(), pb.KV_Txn_FullMethodName)
		require.NoError(x, err)
		members = append(members, m)
	}
	return members
}

// waitAt makes a request wait at a silent member. Its error is sent when it ends.
func (x *avoidanceTest) waitAt(ctx context.Context, member, method string) (ended chan error) {
	x.Helper()
	ended = make(chan error, 1)
	for i, c := range x.picker.connected {
		if c.address == member {
			x.picker.turn.Store(uint32(len(x.picker.connected) + i - 1))
		}
	}
	go func() {
		m, err := x.call(ctx, method)
		if m != member {
			err = status.Error(codes.Internal, "it went to "+m)
		}
		ended <- err
	}()
	synctest.Wait()
	return ended
}

// mute makes a member silent, and late.
func (x *avoidanceTest) mute(members ...string) {
	x.Helper()
	for _, m := range members {
		x.silent[m] = true
		ctx, cancel := context.WithCancel(x.Context())
		defer cancel()
		x.waitAt(ctx, m, pb.KV_Txn_FullMethodName)
	}
	time.Sleep(2 * patienceOfTest)
	synctest.Wait()
}

// answer lets a member answer again.
func (x *avoidanceTest) answer(member string) {
	delete(x.silent, member)
	close(x.heal[member])
	delete(x.heal, member)
	synctest.Wait()
}

// end lets all members answer.
func (x *avoidanceTest) end() {
	for member := range x.heal {
		x.answer(member)
	}
}

// A member that answers neither a write nor the question whether it is there gets no requests until it answers.
func TestAvoidance_UntilAMemberAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		require.ElementsMatch(t, []string{"a", "b", "c"}, x.asked(3))
		x.mute("b")
		members := x.asked(20)
		require.NotContains(t, members, "b")
		require.Subset(t, members, []string{"a", "c"})
		watch := func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			require.NotEqual(t, "b", x.pick(ctx))
			return nil, nil
		}
		for range 3 {
			_, err := x.stream(t.Context(), nil, nil, "/etcdserverpb.Watch/Watch", watch)
			require.NoError(t, err)
		}

		x.end()
		require.ElementsMatch(t, []string{"a", "b", "c"}, x.asked(3))
	})
}

// A read that waits at a member ends when that is late, so that etcd's client makes it again. A write does not, as it may
// have been done.
func TestAvoidance_EndsReadsAndNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		x.silent["b"] = true
		ctx, cancel := context.WithCancel(t.Context())
		read := x.waitAt(ctx, "b", pb.KV_Range_FullMethodName)
		write := x.waitAt(ctx, "b", pb.KV_Txn_FullMethodName)
		time.Sleep(2*patienceOfTest - 1)
		synctest.Wait()
		require.Empty(t, read)
		time.Sleep(time.Nanosecond)
		require.Equal(t, codes.Canceled, status.Code(<-read))
		require.NoError(t, ctx.Err(), "the call goes on")
		time.Sleep(time.Hour)
		require.Empty(t, write)
		cancel()
		require.Error(t, <-write)
		x.end()
	})
}

// A read that was sent to a late member because half of the members were late is made again when another one answers.
func TestAvoidance_EndsReadsOnceThereAreEnoughOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		x.mute("b", "c")
		ctx, cancel := context.WithCancel(t.Context())
		read := x.waitAt(ctx, "b", pb.KV_Range_FullMethodName)
		write := x.waitAt(ctx, "b", pb.KV_Txn_FullMethodName)
		time.Sleep(time.Hour)
		require.Empty(t, read, "the others cannot answer without b")
		x.answer("c")
		require.Equal(t, codes.Canceled, status.Code(<-read))
		require.Empty(t, write)
		cancel()
		require.Error(t, <-write)
		x.end()
	})
}

// A request for a lease is to be answered in time, too. One that logs in is not: then there is no client yet that could ask.
func TestAvoidance_CountsAllButLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		x.silent["b"] = true
		ctx, cancel := context.WithCancel(t.Context())
		login := x.waitAt(ctx, "b", pb.Auth_Authenticate_FullMethodName)
		require.Empty(t, x.targets)
		grant := x.waitAt(ctx, "b", pb.Lease_LeaseGrant_FullMethodName)
		time.Sleep(2 * patienceOfTest)
		synctest.Wait()
		require.NotContains(t, x.asked(20), "b")
		cancel()
		require.Error(t, <-login)
		require.Error(t, <-grant)
		x.end()
	})
}

// Requests that end by themselves, sooner than a member is asked, show that it is silent all the same.
func TestAvoidance_AfterRequestsThatEndSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		x.silent["b"] = true
		ctx, cancel := context.WithTimeout(t.Context(), patienceOfTest/10)
		defer cancel()
		require.Error(t, <-x.waitAt(ctx, "b", pb.KV_Txn_FullMethodName))
		time.Sleep(2 * patienceOfTest)
		synctest.Wait()
		require.NotContains(t, x.asked(20), "b")
		x.end()
	})
}

// A member that takes long for an answer, and answers the question whether it is there, is not late.
func TestAvoidance_NotForALongAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		x.silent["b"] = true
		close(x.heal["b"]) // it answers that
		ctx, cancel := context.WithCancel(t.Context())
		list := x.waitAt(ctx, "b", pb.KV_Range_FullMethodName)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, list)
		delete(x.silent, "b")
		require.ElementsMatch(t, []string{"a", "b", "c"}, x.asked(3))
		cancel()
		require.Error(t, <-list)
	})
}

// A read whose answer has begun goes on, though the member is late with what it was asked after that.
func TestAvoidance_LeavesAnAnswerThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		x.picker.turn.Store(0) // b is next
		begun, rest := make(chan struct{}), make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- x.unary(t.Context(), pb.KV_Range_FullMethodName, nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				x.pick(ctx)
				beginnings{}.HandleRPC(ctx, &stats.InHeader{Client: true})
				close(begun)
				<-rest
				return ctx.Err()
			})
		}()
		<-begun
		x.mute("b")
		require.NotContains(t, x.asked(20), "b")
		close(rest)
		require.NoError(t, <-ended)
		x.end()
	})
}

// If half of the members do not answer, the others need them to answer, and none is avoided.
func TestAvoidance_NotOfHalfTheMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		x.mute("b", "c")
		clear(x.silent)
		require.ElementsMatch(t, []string{"a", "b", "c"}, x.asked(3))
		x.end()
	})
}

// If only late members are connected, requests go to them.
func TestAvoidance_NotOfAllThatAreConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		x.mute("b")
		x.picker.connected = x.picker.connected[1:2]
		clear(x.silent)
		require.Equal(t, []string{"b", "b"}, x.asked(2))
		x.end()
	})
}

// The question whether a late member answers goes to that alone, and waits until it is connected. What is asked about one
// member has a connection of its own.
func TestAvoidance_AsksALateMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		x.mute("b")
		clear(x.silent)
		only := Only(t.Context(), "b")
		for range 3 {
			m, err := x.call(only, pb.KV_Range_FullMethodName)
			require.NoError(t, err)
			require.Equal(t, "b", m)
		}
		require.NotContains(t, x.asked(20), "b", "that is for the one that asks to say")
		m, err := x.call(t.Context(), pb.Maintenance_Status_FullMethodName)
		require.NoError(t, err)
		require.Equal(t, "any", m)
		x.picker.connected = x.picker.connected[:1]
		m, err = x.call(only, pb.KV_Range_FullMethodName)
		require.NoError(t, err)
		require.Equal(t, balancer.ErrNoSubConnAvailable.Error(), m)
		x.end()
	})
}

// What stands before a member that is gone may refuse at once. etcd's client then asks again at once, and without end.
func TestAvoidance_AsksAMemberThatRefusesOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAvoidanceTest(t, "a", "b", "c")
		refused := status.Error(codes.Unavailable, "upstream")
		refuse := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return refused }
		only, cancel := context.WithCancel(Only(t.Context(), "b"))
		for ctx, rests := range map[context.Context]time.Duration{only: patienceOfTest, t.Context(): 0} {
			begun := time.Now()
			require.Equal(t, refused, x.unary(ctx, pb.KV_Range_FullMethodName, nil, nil, nil, refuse))
			require.Equal(t, rests, time.Since(begun))
		}
		cancel()
		begun := time.Now()
		require.Equal(t, refused, x.unary(only, pb.KV_Range_FullMethodName, nil, nil, nil, refuse))
		require.Zero(t, time.Since(begun), "the backend is closed")
	})
}

// An error is an answer, unless a member that is cut off from the others could give it.
func TestAnswered(t *testing.T) {
	require.True(t, Answered(codes.OK))
	require.True(t, Answered(codes.PermissionDenied))
	for _, c := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled} {
		require.False(t, Answered(c))
	}
}
