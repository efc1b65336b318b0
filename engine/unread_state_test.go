package engine_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

// The cache makes its state when it is read. However much was written, trimmed and
// compacted since the last read, the next one sees what storage has.
func TestReads_AfterWritesThatNothingRead(t *testing.T) {
	keys := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(rt *rapid.T) {
		host, err := engine.NewHost(engine.HostConfig{Clock: clock.NewVirtual(epoch), Executor: actors.NewSeeded(rapid.Uint64().Draw(rt, "seed")), Seed: 1})
		require.NoError(rt, err)
		defer func() { require.NoError(rt, host.Close()) }()
		c := thingConfig()
		c.Host, c.FirstRevision, c.Index = host, 1, []string{"node"}
		size := rapid.IntRange(2, 200).Draw(rt, "window")
		c.Window = engine.Window{MaxEvents: size, ChunkSize: rapid.IntRange(1, min(size, 8)).Draw(rt, "chunk")}
		e, err := engine.New(c)
		require.NoError(rt, err)
		defer func() { require.NoError(rt, e.Close()) }()

		want, last := map[string]int{}, engine.Revision(1)
		for n := range rapid.IntRange(1, 150).Draw(rt, "steps") {
			key := rapid.SampledFrom(keys).Draw(rt, "key")
			switch rapid.IntRange(0, 15).Draw(rt, "step") {
			case 0:
				o, err := e.Delete(t.Context(), key, engine.DeleteOptions{})
				if errors.Is(err, engine.ErrNotFound) {
					continue
				}
				require.NoError(rt, err)
				last = o.Revision
				delete(want, key)
			case 1:
				require.NoError(rt, e.WaitForRevision(t.Context(), last)) // otherwise the Reflector lists again, after a delay
				require.NoError(rt, e.Compact(t.Context(), last))
			case 2:
				o, err := e.Get(t.Context(), key, engine.GetOptions{Read: engine.NotOlderThan(last)})
				if _, there := want[key]; !there {
					require.ErrorIs(rt, err, engine.ErrNotFound)
					continue
				}
				require.NoError(rt, err)
				require.Equal(rt, want[key], o.Value.N)
			case 3:
				require.Equal(rt, want, cachedThings(rt, e, last))
			default:
				o, err := e.Put(t.Context(), thing{Key: key, Node: key, N: n + 1})
				require.NoError(rt, err)
				last, want[key] = o.Revision, n+1
			}
		}
		require.Equal(rt, want, cachedThings(rt, e, last))
	})
}

// cachedThings returns the numbers of the things in the cache, by key, as a list and lookups by
// index agree on them.
func cachedThings(t *rapid.T, e *engine.Engine[thing], rev engine.Revision) map[string]int {
	list, err := e.List(t.Context(), engine.ListOptions{Read: engine.NotOlderThan(rev)})
	require.NoError(t, err)
	all, found := map[string]int{}, map[string]int{}
	for _, o := range list.Items {
		all[o.Key] = o.Value.N
		indexed, err := e.List(t.Context(), engine.ListOptions{Fields: "node=" + o.Key, Read: engine.NotOlderThan(rev)})
		require.NoError(t, err)
		for _, o := range indexed.Items {
			found[o.Key] = o.Value.N
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(found)))
	require.Equal(t, all, found)
	return all
}
