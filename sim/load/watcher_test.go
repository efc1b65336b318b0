package load

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/scenario"
)

// A watcher that cannot come back has failed, but not one that is stopped while it
// tries.
func TestAWatcherThatIsStoppedHasNotFailed(t *testing.T) {
	r := &run{}
	attempt := func(ctx context.Context, err error) (again, failed bool) {
		w := &watcher{run: r, group: &watchers{spec: &scenario.Watcher{Name: "w"}}}
		return w.retry(ctx, err), w.failed
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	again, failed := attempt(stopped, stopped.Err())
	require.False(t, again)
	require.False(t, failed)
	require.Empty(t, r.failed.all())

	again, failed = attempt(t.Context(), engine.ErrEngineClosed)
	require.False(t, again)
	require.True(t, failed)
	require.Empty(t, r.failed.all())

	again, failed = attempt(t.Context(), errors.New("not now"))
	require.True(t, again)
	require.True(t, failed)
	require.Equal(t, []string{"w-0: not now"}, r.failed.all())
}
