package etcd_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/etcd"
)

type counter struct {
	Name  string
	Value int
}

// counters is an engine over the prefix of the fixture, as one process has it.
type counters struct {
	*engine.Engine[counter]
	backend *etcd.Backend
}

// newCounters opens an engine. It is closed when the test ends.
func (f *fixture) newCounters(endpoint string) *counters {
	f.Helper()
	cfg := engine.Config[counter]{Key: func(c counter) string { return c.Name }, FreshnessTimeout: patience}
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	b, err := open(ctx, etcd.Config{
		Prefix: f.cfg.Prefix, Endpoints: []string{endpoint}, Schema: cfg.Schema(), ProgressEvery: f.cfg.ProgressEvery,
	})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, b.Close()) })
	cfg.Backend = b
	e, err := engine.New(cfg)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, e.Close()) })
	return &counters{e, b}
}

// add adds one, n times.
func (c *counters) add(ctx context.Context, name string, n int) error {
	for range n {
		_, err := c.Update(ctx, name, func(v counter) (counter, error) {
			v.Value++
			return v, nil
		}, engine.UpdateOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// values returns what a linearizable list has.
func (c *counters) values(t testing.TB) map[string]int {
	t.Helper()
	l, err := c.List(context.Background(), engine.ListOptions{})
	require.NoError(t, err)
	values := map[string]int{}
	for _, o := range l.Items {
		values[o.Value.Name] = o.Value.Value
	}
	return values
}

// follow returns the events after a revision up to another.
func (c *counters) follow(t testing.TB, from, through engine.Revision) (events []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w, err := c.Watch(ctx, engine.WatchOptions{From: from})
	require.NoError(t, err)
	for ev, err := range w.Events() {
		require.NoError(t, err)
		events = append(events, fmt.Sprintf("%v %v", ev.Type, ev.Object.Value))
		if ev.Revision >= through {
			return events
		}
	}
	require.Fail(t, "the watch ended")
	return nil
}

// Two processes write the same objects: no update is lost, and both see the same, in
// the same order. A revision of one can be resumed from at the other.
func TestEngines_OverOnePrefixConverge(t *testing.T) {
	f := newFixture(t)
	engines := []*counters{f.newCounters(f.server.Endpoint), f.newCounters(f.server.Endpoint)}
	names := []string{"a", "b", "c"}
	var start engine.Revision
	for _, name := range names {
		o, err := engines[0].Create(f.ctx, counter{Name: name})
		require.NoError(t, err)
		start = o.Revision
	}
	const each = 20
	var wg sync.WaitGroup
	for _, e := range engines {
		for _, name := range names {
			wg.Go(func() {
				if err := e.add(f.ctx, name, each); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	want := map[string]int{"a": 2 * each, "b": 2 * each, "c": 2 * each}
	for _, e := range engines {
		require.Equal(t, want, e.values(t), "a linearizable list, right after the last write")
	}
	last, err := engines[0].Create(f.ctx, counter{Name: "last"})
	require.NoError(t, err)
	told := engines[0].follow(t, start, last.Revision)
	require.Len(t, told, 2*len(names)*each+1)
	require.Equal(t, told, engines[1].follow(t, start, last.Revision))

	saved, err := engines[0].Checkpoint(f.ctx, start)
	require.NoError(t, err)
	later := f.newCounters(f.server.Endpoint) // a process that starts now
	from, err := later.RevisionOf(f.ctx, saved)
	require.NoError(t, err)
	require.Equal(t, told, later.follow(t, from, last.Revision), "history from before it has started")
}

func TestNoHistory_StartsEnginesAtTheNewestState(t *testing.T) {
	f := newFixture(t, func(c *etcd.Config) { c.NoHistory = true })
	require.False(t, f.Traits().KeepsHistory)
	f.cfg.NoHistory = false
	require.True(t, f.open().Traits().KeepsHistory)
}

// A linearizable read from the cache sees what another process has just written, and
// does not wait when nothing happened below the prefix in a cluster that is busy.
func TestEngine_ReadsOfACacheAreLinearizable(t *testing.T) {
	f := newFixture(t)
	f.cfg.ProgressEvery = time.Hour // so that only asking helps
	writer, reader := f.newCounters(f.server.Endpoint), f.newCounters(f.server.Endpoint)
	for i := range 30 {
		_, err := writer.Put(f.ctx, counter{"a", i})
		require.NoError(t, err)
		_, err = f.raw.Put(f.ctx, "/elsewhere", "x")
		require.NoError(t, err)
		require.Equal(t, map[string]int{"a": i}, reader.values(t))
	}
}

// An engine that was cut off while history was compacted lists again, and is right.
func TestEngine_ListsAgainAfterACompactionWhileAway(t *testing.T) {
	f := newFixture(t)
	f.cfg.ProgressEvery = 200 * time.Millisecond
	away, other := f.newCounters(f.proxy.Endpoint), f.newCounters(f.server.Endpoint)
	_, err := other.Create(f.ctx, counter{"a", 1})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 1}, away.values(t))
	f.proxy.Cut()
	for i := range 10 {
		_, err := other.Put(f.ctx, counter{"a", i})
		require.NoError(t, err)
	}
	last, err := other.Create(f.ctx, counter{"b", 1})
	require.NoError(t, err)
	_, err = f.raw.Compact(f.ctx, int64(last.Revision))
	require.NoError(t, err)
	f.proxy.Heal()
	require.Eventually(t, func() bool { return away.Revision() >= last.Revision }, patience, 10*time.Millisecond)
	l, err := away.List(f.ctx, engine.ListOptions{Read: engine.Cached()})
	require.NoError(t, err)
	require.Len(t, l.Items, 2)
	require.Equal(t, 9, l.Items[0].Value.Value)
}
