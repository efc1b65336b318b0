package etcd

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
)

// A write that shares a lease waits for another that requests it, no longer than its
// context allows.
func TestLeases_WaitForAnotherCallAsLongAsTheContext(t *testing.T) {
	l := newLeases(10)
	held := <-l.shared // as a call has it that waits for etcd
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.take(ctx, nil, time.Minute)
	require.ErrorIs(t, err, context.Canceled)

	ctx, overdue := context.WithCancelCause(context.Background())
	overdue(errNoAnswer)
	_, err = l.take(ctx, nil, time.Minute)
	require.ErrorIs(t, err, backend.ErrUnavailable)
	l.shared <- held
}
