package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// LostError says that a change can be read, but not the object before it, because etcd
// has compacted that meanwhile. The state must be listed again.
type LostError struct {
	Key string
	// Revision is the revision of the change.
	Revision store.Revision
}

func (e *LostError) Error() string {
	return fmt.Sprintf("what was under %q before revision %d was compacted: list again", e.Key, e.Revision)
}

// Unwrap returns a [*store.ExpiredError], so that errors.Is(err,
// [store.ErrExpired]) is true.
func (e *LostError) Unwrap() error {
	return &store.ExpiredError{Requested: e.Revision - 1, Oldest: e.Revision}
}

// ClusterError says that the endpoints now lead to another cluster, whose revisions have
// another meaning. Every call fails until a new backend is made, and [Backend.Failure]
// says so. It is a [backend.ErrFailed].
type ClusterError struct {
	// Was and Is are the clusters' IDs.
	Was, Is uint64
}

func (e *ClusterError) Error() string {
	return fmt.Sprintf("the endpoints lead to cluster %x, not %x as when the backend was made: make a new one, and list again", e.Is, e.Was)
}

// Unwrap returns [backend.ErrFailed].
func (e *ClusterError) Unwrap() error { return backend.ErrFailed }

// VersionError says that a member is too old: it may report progress past events
// that it has not sent yet, so that they would be lost.
type VersionError struct{ Endpoint, Version string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("etcd %s at %s reports progress that cannot be relied on: use 3.5.13 or newer, or 3.4.31", e.Version, e.Endpoint)
}

// Is makes errors.Is(err, [store.ErrUnsupported]) true.
func (e *VersionError) Is(target error) bool { return target == store.ErrUnsupported }

// errNoAnswer is the cause of contexts that end by Config.RequestTimeout or by another
// timeout of this package.
var errNoAnswer = errors.New("no answer in time (Config.RequestTimeout)")

// errLearner is the refusal of a member that has no vote yet. The client tries other members for a call, but not for a
// watch.
var errLearner = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// meanings maps etcd's errors to those of package backend. A write that fails with one of
// them was not done, except with those that are ErrFailed.
var meanings = []struct {
	etcd error
	ours error
}{
	{rpctypes.ErrNoSpace, backend.ErrFull},
	{rpctypes.ErrAuthFailed, backend.ErrDenied},
	{rpctypes.ErrPermissionDenied, backend.ErrDenied},
	{rpctypes.ErrInvalidAuthToken, backend.ErrDenied},
	{rpctypes.ErrUserEmpty, backend.ErrDenied},
	{rpctypes.ErrUserNotFound, backend.ErrDenied},
	{rpctypes.ErrAuthOldRevision, backend.ErrDenied},
	{rpctypes.ErrRequestTooLarge, backend.ErrTooLarge},
	{rpctypes.ErrTooManyRequests, backend.ErrUnavailable},
	{rpctypes.ErrNotCapable, backend.ErrUnavailable},
	{errLearner, backend.ErrUnavailable},
	{rpctypes.ErrCorrupt, backend.ErrFailed},
}

// meaning returns the error of package backend that err stands for, nil if err is not in
// meanings.
func meaning(err error) error {
	for _, m := range meanings {
		if errors.Is(err, m.etcd) {
			return m.ours
		}
	}
	if status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max") {
		return backend.ErrTooLarge
	}
	return nil
}

// explained returns err with its meaning. That there is no space it tells with the cure, as etcd stores nothing for as
// long as the alarm lasts, even if there is space again.
func explained(known error, what string, err error) error {
	if known == backend.ErrFull {
		return fmt.Errorf("%w: %s: %w: compact etcd, defragment its members, and disarm the alarm, in this order", known, what, err)
	}
	return fmt.Errorf("%w: %s: %w", known, what, err)
}

// refusal returns the error that a watch was refused with, of which etcd sends the text alone.
func refusal(err error) error {
	const before = " desc = "
	text := err.Error()
	if i := strings.LastIndex(text, before); i >= 0 {
		text = text[i+len(before):]
	}
	if known, is := errors.AsType[rpctypes.EtcdError](rpctypes.Error(errors.New(text))); is {
		return known
	}
	return err
}

// tooLargeToReceive reports whether err is about a message that the member or the client has
// refused because of its size. It does not say which of them, so it may be the answer to a
// request that was done.
func tooLargeToReceive(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "received message larger than max")
}

// codeOf returns the code of err. Errors of etcd's client have theirs in another way than
// those of gRPC.
func codeOf(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}

// readError returns the error of a call that changes nothing.
func readError(ctx context.Context, what string, err error) error {
	if ended(ctx, err) {
		return interrupted(ctx, what)
	}
	if known := meaning(err); known != nil {
		return explained(known, what, err)
	}
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted:
		return fmt.Errorf("%w: %s: %w", backend.ErrUnavailable, what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ended reports whether ctx has ended, or ends now: gRPC and the member measure its deadline, too, and may fail a
// call with it just before ctx itself ends.
func ended(ctx context.Context, err error) bool {
	deadline, bounded := ctx.Deadline()
	if bounded && codeOf(err) == codes.DeadlineExceeded && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// interrupted returns the error of a call whose context has ended.
func interrupted(ctx context.Context, what string) error {
	cause := context.Cause(ctx)
	if cause == errNoAnswer {
		return fmt.Errorf("%w: %s: %w", backend.ErrUnavailable, what, cause)
	}
	return cause
}

// unsentError returns the error of a write of key that was not sent.
func unsentError(ctx context.Context, verb, key string, err error) error {
	return readError(ctx, verb+" of "+strconv.Quote(key), err)
}

// writeError returns the error of a write of key: a [backend.UncertainError] unless it is
// certain that etcd has not done the write and never will.
func writeError(ctx context.Context, verb, key string, s *sending, err error) error {
	if s.never() {
		return unsentError(ctx, verb, key, err)
	}
	if ended(ctx, err) {
		return &backend.UncertainError{Verb: verb, Key: key, Cause: context.Cause(ctx)}
	}
	known := meaning(err)
	if known != nil {
		err = explained(known, verb+" of "+strconv.Quote(key), err)
	}
	if known != nil && known != backend.ErrFailed || refused(err) {
		return err
	}
	return &backend.UncertainError{Verb: verb, Key: key, Cause: err}
}

// refused reports whether the server has rejected the request itself.
func refused(err error) bool {
	switch codeOf(err) {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}
