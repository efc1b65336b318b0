package queue_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/queue"
)

// TestWorkQueue_BehavesAsItsModel does the same at random to a work queue and to its model.
func TestWorkQueue_BehavesAsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &workModel{clock: clock.NewVirtual(epoch), dirty: map[string]bool{}, delayed: map[string]time.Time{}, order: map[string]int{}}
		m.real = newWork(t, queue.WorkQueueConfig[string]{Clock: m.clock})
		t.Repeat(rapid.StateMachineActions(m))
		m.drain(t)
	})
}

// workModel is the simplest work queue, beside a real one. Its exported methods are what
// happens at random to both.
type workModel struct {
	real  *queue.WorkQueue[string]
	clock *clock.Virtual

	queue, running []string
	dirty          map[string]bool
	delayed        map[string]time.Time
	delays         int
	order          map[string]int // of the delays
}

var workItem = rapid.SampledFrom([]string{"a", "b", "c", "d"})

func (m *workModel) Add(t *rapid.T) {
	item := workItem.Draw(t, "item")
	require.NoError(t, m.real.Add(item))
	m.add(item)
}

func (m *workModel) AddAfter(t *rapid.T) {
	item := workItem.Draw(t, "item")
	d := time.Duration(rapid.IntRange(0, 5).Draw(t, "seconds")) * time.Second
	require.NoError(t, m.real.AddAfter(item, d))
	m.delays++
	at := m.clock.Now().Add(d)
	if old, waits := m.delayed[item]; d == 0 {
		m.add(item)
	} else if !waits || at.Before(old) {
		m.delayed[item], m.order[item] = at, m.delays
	}
}

// Pass lets time pass, a second at a time, so that the model sees each.
func (m *workModel) Pass(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "seconds") {
		m.clock.Advance(time.Second)
		m.due(m.clock.Now())
	}
}

func (m *workModel) Get(t *rapid.T) {
	if len(m.queue) == 0 {
		t.Skip("nothing queued")
	}
	item := get(t, m.real)
	require.Equal(t, m.queue[0], item)
	m.queue, m.running = m.queue[1:], append(m.running, item)
	delete(m.dirty, item)
}

func (m *workModel) Done(t *rapid.T) {
	if len(m.running) == 0 {
		t.Skip("nothing runs")
	}
	item := rapid.SampledFrom(m.running).Draw(t, "item")
	m.real.Done(item)
	m.running = slices.DeleteFunc(m.running, func(r string) bool { return r == item })
	if m.dirty[item] {
		m.queue = append(m.queue, item)
	}
}

// Check is called after everything that happens.
func (m *workModel) Check(t *rapid.T) {
	s := m.real.Stats()
	require.Equal(t, []int{len(m.queue), len(m.running), len(m.delayed)}, []int{s.Queued, s.Running, s.Delayed})
}

// drain requires that the real queue ends once all of its items are done.
func (m *workModel) drain(t *rapid.T) {
	drained := make(chan error, 1)
	go func() { drained <- m.real.ShutDownWithDrain(context.Background()) }()
	for _, item := range m.running {
		m.real.Done(item)
	}
	for item, err := m.real.Get(context.Background()); err == nil; item, err = m.real.Get(context.Background()) {
		m.real.Done(item)
	}
	require.NoError(t, <-drained)
}

func (m *workModel) add(item string) {
	if !m.dirty[item] {
		m.dirty[item] = true
		if !slices.Contains(m.running, item) {
			m.queue = append(m.queue, item)
		}
	}
}

// due adds what is due, in order.
func (m *workModel) due(now time.Time) {
	items := slices.SortedFunc(maps.Keys(m.delayed), func(a, b string) int {
		return cmp.Or(m.delayed[a].Compare(m.delayed[b]), cmp.Compare(m.order[a], m.order[b]))
	})
	for _, item := range items {
		if !m.delayed[item].After(now) {
			delete(m.delayed, item)
			m.add(item)
		}
	}
}
