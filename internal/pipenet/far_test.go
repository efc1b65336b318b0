package pipenet_test

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/internal/pipenet"
)

func TestFar_TakesTheDelayInBothDirections(t *testing.T) {
	for name, turn := range map[string]bool{"there": false, "back": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, conn := net.Pipe()
				from, to := pipenet.Far(conn, time.Second), near
				if turn {
					from, to = to, from
				}
				began := time.Now()
				_, err := from.Write([]byte("hello"))
				require.NoError(t, err)
				require.NoError(t, from.Close())
				got := make([]byte, 5)
				_, err = io.ReadFull(to, got)
				require.NoError(t, err)
				require.Equal(t, "hello", string(got))
				require.Equal(t, time.Second, time.Since(began))
				_, err = to.Read(got)
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, 2*time.Second, time.Since(began), "after the last part")
				require.NoError(t, to.Close())
				time.Sleep(time.Second) // until the other end knows
			})
		})
	}
}
