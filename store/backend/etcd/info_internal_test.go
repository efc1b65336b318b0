package etcd

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd/internal/avoid"
)

// A member that is down holds up a program that starts for a second alone, once another one has answered.
func TestAskEach_WaitsLittleBesideAMemberThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(ctx context.Context, endpoint string) answer {
			ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errNoAnswer)
			defer cancel()
			if endpoint == "up" {
				time.Sleep(10 * time.Millisecond)
				return answer{member: Member{Endpoint: endpoint, Version: "3.6.0"}}
			}
			<-ctx.Done()
			return answer{member: Member{Endpoint: endpoint, Err: context.Cause(ctx)}}
		}
		begun := time.Now()
		all := askEach(t.Context(), []string{"down", "up"}, ask)
		require.Equal(t, silence+10*time.Millisecond, time.Since(begun))
		require.Equal(t, Member{Endpoint: "down", Err: errNoAnswer}, all[0].member)
		require.Equal(t, "3.6.0", all[1].member.Version)

		begun = time.Now()
		all = askEach(t.Context(), []string{"down"}, ask)
		require.Equal(t, time.Minute, time.Since(begun), "it is all that there is")
		require.ErrorIs(t, all[0].member.Err, errNoAnswer)
	})
}

// A member that refuses holds nothing up beside one that answers. If it is all that there is, it may be about to start.
func TestAskEach_WaitsForAMemberThatRefusesIfNoneAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := fmt.Errorf("%w: connection refused", backend.ErrUnavailable)
		var begun time.Time
		ask := func(_ context.Context, endpoint string) answer {
			time.Sleep(10 * time.Millisecond)
			if endpoint == "up" || endpoint == "starting" && time.Since(begun) > time.Second {
				return answer{member: Member{Endpoint: endpoint, Version: "3.6.0"}}
			}
			return answer{member: Member{Endpoint: endpoint, Err: refused}}
		}
		begun = time.Now()
		all := askEach(t.Context(), []string{"down", "up"}, ask)
		require.Equal(t, 10*time.Millisecond, time.Since(begun))
		require.Equal(t, refused, all[0].member.Err)
		require.NoError(t, all[1].member.Err)

		begun = time.Now()
		all = askEach(t.Context(), []string{"down", "starting"}, ask)
		require.Less(t, time.Since(begun), time.Second+2*hurry)
		require.Equal(t, refused, all[0].member.Err)
		require.NoError(t, all[1].member.Err)
	})
}

// The reason why a member cannot be reached is told even if the time ends while it is asked again.
func TestAskEach_TellsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := fmt.Errorf("%w: connection refused", backend.ErrUnavailable)
		asked := 0
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errNoAnswer)
		defer cancel()
		all := askEach(ctx, []string{"down"}, func(ctx context.Context, _ string) answer {
			if asked++; asked == 1 {
				return answer{member: Member{Err: refused}}
			}
			<-ctx.Done()
			return answer{member: Member{Err: interrupted(ctx, "asking")}}
		})
		require.Equal(t, 2, asked)
		require.Equal(t, refused, all[0].member.Err)
	})
}

// slowKV answers the last of its reads. The others end with their calls.
type slowKV struct {
	clientv3.KV
	reads int
	left  int
	asked context.Context
}

func (kv *slowKV) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	kv.reads++
	kv.asked = ctx
	if kv.left--; kv.left > 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &clientv3.GetResponse{}, nil
}

// A question that ends with its call was not answered, and is asked again, until the backend is closed.
func TestAwaitAnswer_AsksUntilThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, kv := callable(), &slowKV{left: 3}
		b.client = &clientv3.Client{KV: kv}
		begun := time.Now()
		b.awaitAnswer("b")
		require.Equal(t, 3, kv.reads)
		require.Equal(t, "b", avoid.Member(kv.asked))
		require.Equal(t, 2*b.config.RequestTimeout, time.Since(begun))

		kv.left = 1 << 30
		time.AfterFunc(time.Hour, func() { _ = b.Close() })
		b.awaitAnswer("b")
		require.Equal(t, 2*b.config.RequestTimeout+time.Hour, time.Since(begun))
	})
}

// With fewer than three members none is avoided, and etcd's client is as it is without this.
func TestAvoidance_NeedsThreeMembers(t *testing.T) {
	b := &Backend{config: Config{Endpoints: []string{"a", "b"}, RequestTimeout: 5 * time.Second}}
	require.Nil(t, b.newAvoidance())
	require.Empty(t, b.newAvoidance().DialOptions())
	b.config.Endpoints = append(b.config.Endpoints, "c")
	require.Equal(t, 500*time.Millisecond, b.config.patience())
	b.config.RequestTimeout = time.Hour
	require.Equal(t, silence, b.config.patience())
}
