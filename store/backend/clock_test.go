package backend_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
)

func TestWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := backend.WallClock()
		start, rang := clock.Now(), make(chan time.Time, 1)
		clock.AfterFunc(time.Minute, func() { rang <- clock.Now() })
		stopped := clock.AfterFunc(time.Second, func() { t.Error("a stopped timer rang") })
		require.True(t, stopped.Stop())
		require.Equal(t, time.Minute, (<-rang).Sub(start))
	})
}
