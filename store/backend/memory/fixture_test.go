package memory_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// began is when the clocks of the tests start.
var began = time.Date(2024, time.April, 17, 12, 0, 0, 0, time.UTC)

// fixture is a backend on a clock that the test moves.
type fixture struct {
	*testing.T
	*memory.Backend
	ctx   context.Context
	clock *clock.Virtual
}

func newFixture(t *testing.T, opts memory.Options) *fixture {
	return newFixtureOf(t, lamps, opts)
}

func newFixtureOf(t *testing.T, schema store.Schema, opts memory.Options) *fixture {
	virtual := clock.NewVirtual(began)
	opts.Clock, opts.FirstRevision = virtual, cmp.Or(opts.FirstRevision, 1)
	b, err := memory.New(schema, opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, b.Close())
		require.Zero(t, virtual.Pending(), "a closed backend leaves no timer")
	})
	return &fixture{T: t, Backend: b, ctx: t.Context(), clock: virtual}
}

func (f *fixture) put(key string, prev *store.Object, opts backend.PutOptions) *store.Object {
	f.Helper()
	o, err := f.Put(f.ctx, newLamp(key, false), prev, opts)
	require.NoError(f, err)
	return o
}

// flicker updates one object n times, creating it if need be, and returns its
// last state.
func (f *fixture) flicker(key string, n int) *store.Object {
	f.Helper()
	o, _ := f.Get(f.ctx, key)
	for range n {
		o = f.put(key, o, backend.PutOptions{})
	}
	return o
}

func (f *fixture) watch(from store.Revision, notify func()) backend.Watcher {
	f.Helper()
	w, err := f.Watch(f.ctx, backend.WatchOptions{From: from, Notify: notify})
	require.NoError(f, err)
	return w
}

// read returns all events that w has, as text.
func (f *fixture) read(w backend.Watcher) (events []string) {
	f.Helper()
	for {
		batch, err := w.Next(100)
		require.NoError(f, err)
		if len(batch.Events) == 0 {
			return events
		}
		for _, ev := range batch.Events {
			events = append(events, ev.String())
		}
	}
}

func nothing() {}
