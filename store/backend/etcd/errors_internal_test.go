package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// What a write fails with is uncertain unless it is known that it was not done.
func TestWriteError_IsUncertainUnlessItIsKnown(t *testing.T) {
	for _, c := range []struct {
		err       error
		want      error
		uncertain bool
	}{
		{rpctypes.ErrNoSpace, backend.ErrFull, false},
		{rpctypes.ErrPermissionDenied, backend.ErrDenied, false},
		{rpctypes.ErrRequestTooLarge, backend.ErrTooLarge, false},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (3 vs. 2)"), backend.ErrTooLarge, false},
		{rpctypes.ErrTooManyRequests, backend.ErrUnavailable, false},
		{rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner), backend.ErrUnavailable, false},
		{rpctypes.ErrLeaseNotFound, rpctypes.ErrLeaseNotFound, false},
		{rpctypes.ErrCorrupt, backend.ErrFailed, true},
		{rpctypes.ErrTimeout, rpctypes.ErrTimeout, true},
		{rpctypes.ErrLeaderChanged, rpctypes.ErrLeaderChanged, true},
		{rpctypes.ErrStopped, rpctypes.ErrStopped, true},
		{status.Error(codes.Unavailable, "error reading from server: EOF"), backend.ErrUncertain, true},
		{errors.New("anything else"), backend.ErrUncertain, true},
	} {
		err := writeError(context.Background(), "put", "a", nil, c.err)
		require.ErrorIs(t, err, c.want, "%v", c.err)
		require.Equal(t, c.uncertain, backend.Uncertain(err), "%v", c.err)
	}
}

// A read fails as one that can be made again if a member or its cluster cannot serve now, as
// while there is no leader. etcd's client has errors of its own for that.
func TestReadError_IsRetryableIfAnotherReadMaySucceed(t *testing.T) {
	for _, passing := range []error{
		rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrUnhealthy, rpctypes.ErrTooManyRequests,
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
		status.Error(codes.Unavailable, "connection refused"), status.Error(codes.DeadlineExceeded, "too slow"),
	} {
		err := readError(context.Background(), "reading", passing)
		require.ErrorIs(t, err, backend.ErrUnavailable, "%v", passing)
		require.ErrorIs(t, err, passing)
		require.True(t, backend.Retryable(err), "%v", passing)
	}
	for _, lasting := range []error{rpctypes.ErrPermissionDenied, rpctypes.ErrCorrupt, rpctypes.ErrUserEmpty, errors.New("anything else")} {
		err := readError(context.Background(), "reading", lasting)
		require.ErrorIs(t, err, lasting)
		require.NotErrorIs(t, err, backend.ErrUnavailable, "%v", lasting)
		require.False(t, backend.Retryable(err), "%v", lasting)
	}
}

// etcd sends the reason for which it refuses a watch as text. A login that it does not know is one that it will: the
// client has logged in for the stream, at another member.
func TestFailure_OfAWatchThatIsRefused(t *testing.T) {
	w := (&Backend{life: context.Background()}).newWatcher(backend.WatchOptions{From: 1, Notify: func() {}})
	for reason, want := range map[error]error{
		rpctypes.ErrGRPCPermissionDenied:     backend.ErrDenied,
		rpctypes.ErrGRPCUserEmpty:            backend.ErrDenied,
		rpctypes.ErrGRPCInvalidAuthToken:     backend.ErrUnavailable,
		rpctypes.ErrGRPCAuthOldRevision:      backend.ErrUnavailable,
		errors.New("a reason of the future"): nil,
	} {
		err := w.failure(context.Background(), clientv3.WatchResponse{Canceled: true, CancelReason: reason.Error()})
		for _, kind := range []error{backend.ErrDenied, backend.ErrUnavailable} {
			require.Equal(t, kind == want, errors.Is(err, kind), "%v", reason)
		}
	}
}

// lateContext is a context whose deadline has passed, and which ends when it is waited for.
type lateContext struct {
	context.Context
	end context.CancelCauseFunc
}

func (c lateContext) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

func (c lateContext) Done() <-chan struct{} {
	c.end(errors.New("the time is over"))
	return c.Context.Done()
}

// A call that has failed because of its deadline has the cause of its context, though that may end
// a moment later.
func TestErrors_OfADeadlineAreThatOfTheContext(t *testing.T) {
	late := func() context.Context {
		ctx, end := context.WithCancelCause(t.Context())
		return lateContext{ctx, end}
	}
	over := status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	require.EqualError(t, readError(late(), "reading", over), "the time is over")
	err := writeError(late(), "put", "a", nil, over)
	var uncertain *backend.UncertainError
	require.ErrorAs(t, err, &uncertain)
	require.Equal(t, "put a", uncertain.Verb+" "+uncertain.Key)
	require.EqualError(t, errors.Unwrap(err), "the time is over")
	require.ErrorIs(t, readError(late(), "reading", rpctypes.ErrStopped), backend.ErrUnavailable, "it failed otherwise, and before")
}

func TestReliable_DemandsProgressThatComesBehindItsEvents(t *testing.T) {
	for version, want := range map[string]bool{
		"3.3.27": false, "3.4.30": false, "3.4.31": true, "3.5.12": false, "3.5.13": true, "3.6.0": true, "4.0.0": true, "2.3.8": false, "": false, "x": false,
	} {
		require.Equal(t, want, reliable(version), version)
	}
}

func TestCutHeader_RefusesWhatIsCutOff(t *testing.T) {
	whole := header{tag: 3, sealed: true}.add([]byte("data"))
	h, data, err := cutHeader(whole)
	require.NoError(t, err)
	require.Equal(t, "data", string(data))
	require.Equal(t, header{tag: 3, sealed: true}, h)
	for n := 2; n < len(whole)-len("data"); n++ {
		_, _, err := cutHeader(whole[:n])
		require.Error(t, err, "%d bytes", n)
	}
	_, _, err = cutHeader([]byte("\x00W\x02\x00\x00\x00\x00"))
	require.ErrorIs(t, err, errVersion)
	_, _, err = cutHeader([]byte("\x00W\x01\x02\x00\x00\x00"))
	require.ErrorIs(t, err, errVersion, "the data is not what this version takes it for")
}

func TestListed_IsExactlyTheKeysUnderAPrefix(t *testing.T) {
	k := newKeyspace("/p")
	for _, c := range []struct {
		prefix, after string
		want          []span
	}{
		{"", "", []span{{"/p/", "/p0"}}},
		{"", "a", []span{{"/p/a\x00", "/p0"}}},
		{"foo", "", []span{{"/p/foo", "/p/foo\x00"}, {"/p/foo/", "/p/foo0"}}},
		{"foo", "foo", []span{{"/p/foo/", "/p/foo0"}}},
		{"foo", "foo/a", []span{{"/p/foo/a\x00", "/p/foo0"}}},
		{"foo/", "", []span{{"/p/foo/", "/p/foo0"}}},
	} {
		require.Equal(t, c.want, k.listed(c.prefix, c.after), "%q after %q", c.prefix, c.after)
	}
}

// The key of the floor is an object's below no prefix.
func TestKeyspace_FloorIsNoObject(t *testing.T) {
	for _, prefix := range []string{"/shop", "shop"} {
		floor := newKeyspace(prefix + "/pods").floor
		above := newKeyspace(prefix)
		require.Error(t, store.ValidateKey(above.key([]byte(floor))))
		require.NotContains(t, floor, newKeyspace(prefix+"/pods").root)
	}
}

// Progress that was not read does not keep the error behind it from being told: the
// consumer waits for no notification then.
func TestNext_TellsTheErrorBehindProgress(t *testing.T) {
	b := &Backend{life: context.Background(), watches: map[*watcher]struct{}{}}
	w := b.newWatcher(backend.WatchOptions{From: 1, Notify: func() {}})
	w.append(nil, 5)
	w.finish(backend.ErrUnavailable)
	batch, err := w.Next(1)
	require.ErrorIs(t, err, backend.ErrUnavailable, "%+v", batch)
}
