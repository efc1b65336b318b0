package queue_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store/cache"
)

// TestDeltaFIFO_RebuildsTheSourcesStateAfterAList changes a source at random, loses some of
// the changes, and applies what is popped. After a list the consumer must have the
// source's state, however slow it was.
func TestDeltaFIFO_RebuildsTheSourcesStateAfterAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newLossySource(t)
		t.Repeat(rapid.StateMachineActions(m))
		m.List(t)
		for m.queue.Len() > 0 {
			m.pop(t, func() {})
		}
		require.Equal(t, m.objects, maps.Collect(m.mirror.All()))
		require.True(t, m.queue.HasSynced())
	})
}

// lossySource is a source of which a DeltaFIFO does not hear every change, and the mirror
// to which what is popped leads. Its exported methods are what happens at random.
type lossySource struct {
	queue   *queue.DeltaFIFO[thing]
	mirror  *cache.Store[thing]
	objects map[string]thing
	version int
}

var (
	thingName = rapid.SampledFrom([]string{"a", "b", "c", "d"})
	lost      = rapid.Bool()
)

func newLossySource(t *rapid.T) *lossySource {
	mirror, err := cache.NewStore(cache.StoreConfig[thing]{Key: thingKey})
	require.NoError(t, err)
	q, err := queue.NewDeltaFIFO(queue.DeltaFIFOConfig[thing]{
		Key: thingKey, Known: mirror, MaxDeltas: rapid.IntRange(2, 5).Draw(t, "max"),
	})
	require.NoError(t, err)
	return &lossySource{queue: q, mirror: mirror, objects: map[string]thing{}}
}

func (m *lossySource) Change(t *rapid.T) {
	m.version++
	o := thing{thingName.Draw(t, "name"), fmt.Sprint(m.version)}
	tell := m.queue.Add
	if _, exists := m.objects[o.Name]; exists {
		tell = m.queue.Update
	}
	m.objects[o.Name] = o
	if !lost.Draw(t, "lost") {
		require.NoError(t, tell(o))
	}
}

func (m *lossySource) Remove(t *rapid.T) {
	o := thing{thingName.Draw(t, "name"), "last"}
	_, existed := m.objects[o.Name]
	delete(m.objects, o.Name)
	if existed && !lost.Draw(t, "lost") {
		require.NoError(t, m.queue.Delete(o))
	}
}

func (m *lossySource) List(t *rapid.T) {
	var objects []thing
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		objects = append(objects, m.objects[key])
	}
	require.NoError(t, m.queue.Replace(objects, 0))
}

func (m *lossySource) Resync(t *rapid.T) { require.NoError(t, m.queue.Resync()) }

// Pop pops, and something else may happen before the deltas are applied.
func (m *lossySource) Pop(t *rapid.T) {
	if m.queue.Len() == 0 {
		t.Skip("nothing queued")
	}
	during := map[string]func(*rapid.T){
		"change": m.Change, "list": m.List, "nothing": func(*rapid.T) {}, "remove": m.Remove, "resync": m.Resync,
	}
	what := rapid.SampledFrom(slices.Sorted(maps.Keys(during))).Draw(t, "during")
	m.pop(t, func() { during[what](t) })
}

// Check is called after everything that happens.
func (m *lossySource) Check(t *rapid.T) { require.LessOrEqual(t, m.queue.Len(), 4) }

// pop applies the deltas of one object to the mirror, and calls during before that.
func (m *lossySource) pop(t *rapid.T, during func()) {
	require.NoError(t, m.queue.Pop(t.Context(), func(ds queue.Deltas[thing], _ bool) error {
		during()
		for i, d := range ds {
			require.Equal(t, ds.Key(), d.Key)
			if d.Type != queue.DeltaDeleted {
				require.NoError(t, m.mirror.Update(d.Object))
				continue
			}
			require.False(t, i > 0 && ds[i-1].Type == queue.DeltaDeleted, "two deletions in a row")
			m.mirror.DeleteByKey(d.Key, 0)
		}
		return nil
	}))
}
