package queue_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/queue"
	"github.com/watchmill/watchmill/store"
)

// TestRealFIFO_HasTheStatesOfTheSourceOneAfterTheOther changes a source at random and applies
// what is popped. After each batch the consumer must have the state that the source had after
// as many changes.
func TestRealFIFO_HasTheStatesOfTheSourceOneAfterTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, err := queue.NewRealFIFO(queue.RealFIFOConfig[thing]{Key: thingKey, BatchSize: rapid.IntRange(1, 4).Draw(t, "batch")})
		require.NoError(t, err)
		m := &loggedSource{queue: q, states: []map[string]thing{{}}, mirror: map[string]thing{}}
		t.Repeat(rapid.StateMachineActions(m))
		for m.queue.Len() > 0 {
			m.pop(t, m.queue.PopBatch)
		}
		require.Equal(t, m.newest(), m.mirror)
	})
}

// loggedSource is a source with a state after each of its changes, and the mirror to which what
// is popped leads. Its exported methods are what happens at random.
type loggedSource struct {
	queue  *queue.RealFIFO[thing]
	states []map[string]thing
	// initial is whether each change is of the first list.
	initial []bool
	changed bool
	mirror  map[string]thing
	applied int
	version int
}

func (m *loggedSource) newest() map[string]thing { return m.states[len(m.states)-1] }

// synced reports whether the first list, if the first change is one, has been applied.
func (m *loggedSource) synced() bool {
	return m.changed && !slices.Contains(m.initial[m.applied:], true)
}

// log records the state after a change.
func (m *loggedSource) log(state map[string]thing, initial bool) {
	m.states, m.initial, m.changed = append(m.states, state), append(m.initial, initial), true
}

// logSame records what is queued without a change.
func (m *loggedSource) logSame() {
	m.states, m.initial = append(m.states, m.newest()), append(m.initial, false)
}

func (m *loggedSource) Change(t *rapid.T) {
	m.version++
	o := thing{thingName.Draw(t, "name"), fmt.Sprint(m.version)}
	state := maps.Clone(m.newest())
	tell := m.queue.Add
	if _, exists := state[o.Name]; exists {
		tell = m.queue.Update
	}
	state[o.Name] = o
	require.NoError(t, tell(o))
	m.log(state, false)
}

func (m *loggedSource) Remove(t *rapid.T) {
	state := maps.Clone(m.newest())
	o := thing{thingName.Draw(t, "name"), "last"}
	delete(state, o.Name)
	require.NoError(t, m.queue.Delete(o))
	m.log(state, false)
}

func (m *loggedSource) List(t *rapid.T) {
	m.version++
	state := map[string]thing{}
	for _, name := range rapid.SliceOfDistinct(thingName, rapid.ID).Draw(t, "names") {
		state[name] = thing{name, fmt.Sprint(m.version)}
	}
	initial := !m.changed
	require.NoError(t, m.queue.Replace(slices.Collect(maps.Values(state)), store.Revision(m.version)))
	m.log(state, initial)
}

func (m *loggedSource) Resync(t *rapid.T) {
	require.NoError(t, m.queue.Resync())
	m.logSame()
}

func (m *loggedSource) Bookmark(t *rapid.T) {
	require.NoError(t, m.queue.Bookmark(store.Revision(m.version)))
	m.logSame()
}

func (m *loggedSource) PopBatch(t *rapid.T) { m.pop(t, m.queue.PopBatch) }

func (m *loggedSource) Pop(t *rapid.T) {
	m.pop(t, func(ctx context.Context, process func([]queue.Delta[thing], bool) error) error {
		return m.queue.Pop(ctx, func(d queue.Delta[thing], initial bool) error { return process([]queue.Delta[thing]{d}, initial) })
	})
}

// Check is called after everything that happens.
func (m *loggedSource) Check(t *rapid.T) {
	require.Equal(t, m.synced(), m.queue.HasSynced())
	require.Equal(t, len(m.initial)-m.applied, m.queue.Len())
}

// pop applies one batch.
func (m *loggedSource) pop(t *rapid.T, pop func(context.Context, func([]queue.Delta[thing], bool) error) error) {
	if m.queue.Len() == 0 {
		t.Skip("nothing queued")
	}
	require.NoError(t, pop(t.Context(), func(batch []queue.Delta[thing], initial bool) error {
		for _, d := range batch {
			require.Equal(t, m.initial[m.applied], initial)
			m.apply(d)
			m.applied++
		}
		require.Equal(t, m.states[m.applied], m.mirror)
		return nil
	}))
}

func (m *loggedSource) apply(d queue.Delta[thing]) {
	switch d.Type {
	case queue.DeltaAdded, queue.DeltaUpdated:
		m.mirror[d.Key] = d.Object
	case queue.DeltaDeleted:
		delete(m.mirror, d.Key)
	case queue.DeltaReplacedAll:
		m.mirror = map[string]thing{}
		for _, o := range d.Objects {
			m.mirror[o.Name] = o
		}
	}
}
