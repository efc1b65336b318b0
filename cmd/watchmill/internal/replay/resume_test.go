package replay

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
)

// The window holds the last few of fifty writes, so the consumer cannot resume
// from before the first.
func TestConsumersThatCannotResumeListAgain(t *testing.T) {
	ctx := context.Background()
	opts := &Options{Watchers: 1, Window: 4, Select: "ext=go"}
	e, err := newEngine(opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	r := &run{opts: opts, input: &input{}, engine: e, latencies: newLatencies()}
	require.NoError(t, r.openAll(ctx))
	c := r.consumers[0].(*consumer)
	c.state["stale.go"] = object("stale.go", "1", r.base)

	var last engine.Revision
	for i := range 50 {
		o, err := e.Put(ctx, File{Path: fmt.Sprintf("%d.%s", i%5, []string{"go", "md"}[i%2]), Version: fmt.Sprint(i)})
		require.NoError(t, err)
		last = o.Revision
	}
	require.NoError(t, e.WaitFor(ctx, last))
	require.NoError(t, c.resume(ctx, r.base))
	require.Equal(t, 1, c.resumed)
	require.Equal(t, 1, c.relisted)
	require.Equal(t, last, c.seen)
	truth, err := r.backendState(ctx)
	require.NoError(t, err)
	require.Empty(t, difference(c.state, truth))
	require.Len(t, truth, 5)

	require.NoError(t, c.resume(ctx, c.watch.Revision()))
	require.Equal(t, 2, c.resumed)
	require.Equal(t, 1, c.relisted, "from there it can")
	c.watch.Stop()
}
