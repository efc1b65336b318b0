package etcd

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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
