package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

// box is an object that can be changed through what it points to.
type box struct {
	Name   string
	Tags   map[string]string
	Parent *box
	secret []int
}

func (b *box) String() string { panic("prints call no methods") }

// mutations collects what a detector reports.
type mutations struct {
	mu    sync.Mutex
	found []*engine.MutationError
}

func (m *mutations) report(err error) {
	var mutated *engine.MutationError
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.As(err, &mutated) {
		m.found = append(m.found, mutated)
	}
}

// all returns the keys and revisions that were reported.
func (m *mutations) all() (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.found {
		found = append(found, fmt.Sprintf("%s@%d", e.Key, e.Revision))
	}
	return found
}

// boxes returns an engine of boxes under a detector. It is deterministic, since
// a change while the detector looks is a data race.
func boxes(t *testing.T, cfg engine.Config[*box]) (*engine.Engine[*box], *mutations) {
	t.Helper()
	found := &mutations{}
	cfg.Key = func(b *box) string { return b.Name }
	cfg.Labels = func(b *box) labels.Set { return b.Tags }
	cfg.DetectMutations, cfg.OnError, cfg.FirstRevision = true, found.report, 1
	cfg.Host = hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch)})
	e, err := engine.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e, found
}

func newBox(name string) *box {
	return &box{Name: name, Tags: map[string]string{"a": "1"}, Parent: &box{Name: "p"}, secret: []int{1, 2}}
}

func TestMutation_OfAWrittenValueIsFoundAtClose(t *testing.T) {
	for what, change := range map[string]func(*box){
		"a field":               func(b *box) { b.Name = "b" },
		"a map":                 func(b *box) { b.Tags["b"] = "2" },
		"behind a pointer":      func(b *box) { b.Parent.Name = "q" },
		"an unexported element": func(b *box) { b.secret[1] = 3 },
		"a cycle":               func(b *box) { b.Parent.Parent = b },
	} {
		t.Run(what, func(t *testing.T) {
			e, found := boxes(t, engine.Config[*box]{})
			b := newBox("a")
			rev, err := revisionOf(e.Create(t.Context(), b))
			require.NoError(t, err)
			require.NoError(t, e.WaitForRevision(t.Context(), rev))
			change(b)
			require.NoError(t, e.Close())
			require.Equal(t, []string{fmt.Sprintf("a@%d", rev)}, found.all())
			require.ErrorIs(t, found.found[0], engine.ErrMutated)
		})
	}
}

// OnError may end its goroutine, as it does in a test that permits no errors. There is no cache,
// since a change while the detector looks is a data race.
func TestMutation_FoundAtCloseLetsItEndThoughOnErrorEndsItsGoroutine(t *testing.T) {
	var told atomic.Int64
	e, err := engine.New(engine.Config[*box]{
		Key: func(b *box) string { return b.Name }, DetectMutations: true, NoCache: true,
		OnError: func(error) { told.Add(1); runtime.Goexit() },
	})
	require.NoError(t, err)
	made := []*box{newBox("a"), newBox("b"), newBox("c")}
	for _, b := range made {
		_, err := e.Put(t.Context(), b)
		require.NoError(t, err)
	}
	for _, b := range made {
		b.Tags["b"] = "2"
	}
	require.NoError(t, e.Close())
	require.EqualValues(t, len(made), told.Load())
}

func TestMutation_InAHandlerIsFoundWhenTheObjectIsSuperseded(t *testing.T) {
	e, found := boxes(t, engine.Config[*box]{})
	_, err := e.Handle(t.Context(), engine.WatchOptions{Key: "a"}, func(ev engine.Event[*box]) {
		if ev.Type == engine.Added {
			ev.Object.Value.Tags["seen"] = "yes"
		}
	})
	require.NoError(t, err)
	rev, err := revisionOf(e.Create(t.Context(), newBox("a")))
	require.NoError(t, err)
	require.NoError(t, e.WaitForRevision(t.Context(), rev)) // runs everything
	_, err = e.Update(t.Context(), "a", func(b *box) (*box, error) { return newBox("a"), nil }, engine.UpdateOptions{})
	require.NoError(t, err)
	require.Contains(t, found.all(), fmt.Sprintf("a@%d", rev), "before Close")
}

func TestMutation_IsFoundByTheNextRead(t *testing.T) {
	e, found := boxes(t, engine.Config[*box]{})
	_, err := e.Create(t.Context(), newBox("a"))
	require.NoError(t, err)
	o, err := e.Get(t.Context(), "a", engine.GetOptions{})
	require.NoError(t, err)
	o.Labels.Set()["x"] = "y"
	require.Empty(t, found.all())
	_, err = e.Get(t.Context(), "a", engine.GetOptions{})
	require.NoError(t, err)
	require.Len(t, found.all(), 1)
	require.ErrorContains(t, found.found[0], `shared object "a" at revision 2 was changed in place`)
	require.ErrorContains(t, found.found[0], "y")

	_, err = e.Get(t.Context(), "a", engine.GetOptions{})
	require.NoError(t, err)
	require.Len(t, found.all(), 1, "each is told once")
}

func TestMutation_IsFoundByReadsOfOthersSoonerOrLater(t *testing.T) {
	e, found := boxes(t, engine.Config[*box]{})
	boxed := newBox("b")
	for _, b := range []*box{newBox("a"), boxed, newBox("c")} {
		_, err := e.Create(t.Context(), b)
		require.NoError(t, err)
	}
	boxed.secret[0] = 100
	for range 3 { // every call compares one object more, in turn
		_, err := e.List(t.Context(), engine.ListOptions{Key: "a"})
		require.NoError(t, err)
	}
	require.Equal(t, []string{"b@3"}, found.all())
}

func TestMutation_OfADeletedObjectIsFound(t *testing.T) {
	e, found := boxes(t, engine.Config[*box]{})
	b := newBox("a")
	_, err := e.Create(t.Context(), b)
	require.NoError(t, err)
	_, err = e.Delete(t.Context(), "a", engine.DeleteOptions{})
	require.NoError(t, err)
	b.Tags["after"] = "death" // the window still has it
	require.NoError(t, e.Close())
	require.Equal(t, []string{"a@2"}, found.all())
}

func TestMutation_OfAnEmittedValueIsFound(t *testing.T) {
	e, found := boxes(t, engine.Config[*box]{})
	b := newBox("a")
	_, err := e.Emit(t.Context(), b)
	require.NoError(t, err)
	b.Name = "z"
	require.NoError(t, e.Close())
	require.Equal(t, []string{"a@2"}, found.all())
}

func TestMutation_IsFoundWithoutCacheToo(t *testing.T) {
	e, found := boxes(t, engine.Config[*box]{NoCache: true})
	b := newBox("a")
	_, err := e.Create(t.Context(), b)
	require.NoError(t, err)
	b.Parent = nil
	require.NoError(t, e.Close())
	require.Equal(t, []string{"a@2"}, found.all())
}

func TestMutation_CopiesAreNone(t *testing.T) {
	e, found := boxes(t, engine.Config[*box]{})
	w, err := e.Watch(t.Context(), engine.WatchOptions{})
	require.NoError(t, err)
	_, err = e.Create(t.Context(), newBox("a"))
	require.NoError(t, err)
	for i := range 3000 { // more than are watched over after they were superseded
		_, err := e.Update(t.Context(), "a", func(b *box) (*box, error) {
			next := *b
			next.Tags = maps.Clone(b.Tags)
			next.Tags["n"] = fmt.Sprint(i)
			return &next, nil
		}, engine.UpdateOptions{})
		require.NoError(t, err)
	}
	got := 0
	for _, err := range w.Events() {
		require.NoError(t, err)
		if got++; got == 3001 {
			break
		}
	}
	require.NoError(t, e.Close())
	require.Empty(t, found.all())
}

func ExampleMutationError() {
	e, err := engine.New(engine.Config[*box]{
		Key:             func(b *box) string { return b.Name },
		NoCache:         true, // no other reader meanwhile
		FirstRevision:   1,
		DetectMutations: true,
		OnError:         func(err error) { fmt.Println(err) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := &box{Name: "a", Tags: map[string]string{"color": "red"}}
	_, _ = e.Create(context.Background(), b)
	b.Tags["color"] = "blue" // it is the engine's now
	_ = e.Close()
	// Output:
	// shared object "a" at revision 2 was changed in place, from …gs:(map[string]string)map[color:red] Parent:(*engine_test.box)<nil>… to …gs:(map[string]string)map[color:blue] Parent:(*engine_test.box)<nil>…: objects are immutable once written; change a copy and write that
}

// Messages of a topic are shared, also what they refer to without a pointer of their own.
func TestMutation_OfAMessageIsFound(t *testing.T) {
	type message struct {
		Lines []string
		Tags  map[string]string
	}
	for what, change := range map[string]func(message){
		"an element of a slice": func(m message) { m.Lines[0] = "b" },
		"an entry of a map":     func(m message) { m.Tags["b"] = "2" },
	} {
		t.Run(what, func(t *testing.T) {
			found := &mutations{}
			topic := engine.NewTopicWith[message](engine.TopicOptions{
				DetectMutations: true, OnError: found.report, FirstRevision: 1,
				Host: hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch)}),
			})
			t.Cleanup(func() { require.NoError(t, topic.Close()) })
			w, err := topic.Watch(t.Context(), engine.SubscribeOptions{})
			require.NoError(t, err)
			_, err = topic.Publish(t.Context(), message{Lines: []string{"a"}, Tags: map[string]string{"a": "1"}})
			require.NoError(t, err)
			got, err := w.Next(t.Context())
			require.NoError(t, err)
			change(got[0].Object.Value)
			require.NoError(t, topic.Close())
			require.Equal(t, []string{"message@2"}, found.all())
		})
	}
}
