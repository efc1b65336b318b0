package pipenet_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/internal/pipenet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestListener_ConnectsClientAndServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sent := pipenet.Listen(), make(chan error)
		go func() {
			conn, err := l.Dial(t.Context())
			if err == nil {
				_, err = conn.Write([]byte("hello"))
			}
			sent <- err
		}()
		conn, err := l.Accept()
		require.NoError(t, err)
		got := make([]byte, 5)
		_, err = conn.Read(got)
		require.NoError(t, err)
		require.NoError(t, <-sent)
		require.Equal(t, "hello", string(got))
	})
}

func TestListener_CloseEndsAcceptAndDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, failed := pipenet.Listen(), make(chan error)
		go func() {
			_, err := l.Accept()
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-failed, net.ErrClosed)
		_, err := l.Dial(t.Context())
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestListener_DialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no time")
	cancel(cause)
	_, err := pipenet.Listen().Dial(ctx)
	require.ErrorIs(t, err, cause)
}
