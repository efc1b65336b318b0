package engine_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pod is the object of the tests that are not scenarios.
type pod struct {
	Name string
	App  string
	N    int
}

// patience is the FreshnessTimeout of engines on the real clock. With the default a read, or a
// wait for a revision, fails if the machine pauses for three seconds.
const patience = time.Minute

// cfg is the least that an engine of pods needs, and patience.
func cfg() engine.Config[pod] {
	return engine.Config[pod]{
		Key:              func(p pod) string { return p.Name },
		Labels:           func(p pod) labels.Set { return labels.Set{"app": p.App} },
		FirstRevision:    1,
		FreshnessTimeout: patience,
	}
}

// cfgOver is cfg over storage, which has a first revision of its own.
func cfgOver(b backend.Backend) engine.Config[pod] {
	c := cfg()
	c.Backend, c.FirstRevision = b, 0
	return c
}

// draftOf returns what an engine would give to its backend to store value.
func draftOf[T any](c engine.Config[T], value T) *store.Object {
	schema, draft := c.Schema(), store.Header(&engine.Object[T]{Value: value})
	draft.Key = schema.Key(draft)
	schema.Describe(draft)
	return draft
}

// newEngine returns an engine that is ready and is closed with the test, and a
// context that ends a test which hangs.
func newEngine(t testing.TB, change func(*engine.Config[pod])) (*engine.Engine[pod], context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := cfg()
	if change != nil {
		change(&c)
	}
	if c.Backend != nil {
		c.FirstRevision = 0 // storage has its own
	}
	e, err := engine.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.WaitForRevision(ctx, 1)) // or history might begin with what the test writes
	return e, ctx
}

// until collects what the watch shows up to the event at revision last.
func until(t testing.TB, ctx context.Context, w *engine.Watch[pod], last engine.Revision) (seen []string) {
	t.Helper()
	for {
		events, err := w.Next(ctx)
		require.NoError(t, err, "after %v", seen)
		for _, ev := range events {
			seen = append(seen, ev.String())
			if ev.Type != engine.Bookmark && ev.Revision == last {
				return seen
			}
		}
	}
}

// eventually yields until cond holds. The context ends a test that hangs.
func eventually(t testing.TB, ctx context.Context, cond func() bool) {
	t.Helper()
	for !cond() {
		require.NoError(t, context.Cause(ctx))
		runtime.Gosched()
	}
}

func names[E fmt.Stringer](events []E) (out []string) {
	for _, ev := range events {
		out = append(out, ev.String())
	}
	return out
}

// epoch is when virtual clocks start.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// hostFor returns a host that says nothing, closed when the test ends.
func hostFor(t *testing.T, cfg engine.HostConfig) *engine.Host {
	t.Helper()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	host, err := engine.NewHost(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	return host
}

// revisionOf returns the revision of what a write has stored.
func revisionOf[T any](o *engine.Object[T], err error) (engine.Revision, error) {
	if err != nil {
		return 0, err
	}
	return o.Revision, nil
}

// raceEnabled reports whether the race detector is on, which makes all ten
// times as expensive.
var raceEnabled = sync.OnceValue(func() bool {
	build, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
})
