package watcher

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// These tests are of what happens under a watch's lock, for which the dispatcher may wait.

// rareState returns a tree of objects without labels, the last of which is labelled rare, and the
// stream of those with that label.
func rareState(t *testing.T, n int) (*tree.Tree, *Stream) {
	objects := tree.New()
	for i := range n {
		objects.Put(numbered(i))
	}
	filter, err := store.NewFilter(nil, store.FilterOptions{Labels: "rare"})
	require.NoError(t, err)
	return objects, NewStream(new(store.Schema), filter, 0)
}

func numbered(i int) *store.Object {
	return &store.Object{Key: fmt.Sprintf("%06d", i), Revision: 2, Created: 2}
}

// steps has the watch take its next events, and returns how often it let go of the lock before.
func steps(w *Watch) (events []store.Event, n int) {
	for {
		events, rest, _ := w.takeStep()
		if rest == nil {
			return events, n
		}
		rest()
		n++
	}
}

func TestTake_SearchesAStateInSteps(t *testing.T) {
	objects, stream := rareState(t, 3*stepSize)
	objects.Put(&store.Object{Key: "rare", Revision: 2, Created: 2, Labels: store.LabelsOf(map[string]string{"rare": ""})})
	feed := &Feed{Registry: new(Registry)}
	feed.Publish(&window.Snapshot{Revision: 2, Generation: 1, Base: objects.View()})
	w := New(feed, Options{})
	w.Member().Begin(stream, Start{After: 2, State: objects.View(), InitialEnd: true})
	events, n := steps(w)
	require.Len(t, events, 1)
	require.Equal(t, "rare", events[0].Key())
	require.Equal(t, 3, n)
	events, _ = steps(w)
	require.Len(t, events, 1)
	require.True(t, events[0].Is(store.InitialEnd))
	events, n = steps(w)
	require.Empty(t, events)
	require.Zero(t, n)
}

// A search that is given up goes on from there with the next call.
func TestNext_GivesUpBetweenStepsOfASearch(t *testing.T) {
	objects, stream := rareState(t, 3*stepSize)
	objects.Put(&store.Object{Key: "rare", Revision: 2, Created: 2, Labels: store.LabelsOf(map[string]string{"rare": ""})})
	feed := &Feed{Registry: new(Registry)}
	feed.Publish(&window.Snapshot{Revision: 2, Generation: 1, Base: objects.View()})
	w := New(feed, Options{})
	w.Member().Begin(stream, Start{After: 2, State: objects.View()})
	reason := errors.New("enough")
	done, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	for range 3 {
		events, err := w.Next(done)
		require.ErrorIs(t, err, reason)
		require.Empty(t, events)
	}
	events, err := w.Next(done)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, "rare", events[0].Key())
}

// While nothing is found, other actors have turns in between.
func TestHandler_HasATurnForEachStep(t *testing.T) {
	objects, stream := rareState(t, 3*stepSize+1)
	feed := &Feed{Registry: new(Registry)}
	feed.Publish(&window.Snapshot{Revision: 2, Generation: 1, Base: objects.View()})
	w := NewHandled(feed, Options{}, func(*Delivery) { t.Error("there is nothing for it") })
	w.Member().Begin(stream, Start{After: 2, State: objects.View()})
	h, turns := w.target.(*handler), 1
	for h.Woken(nil) {
		turns++
	}
	require.Equal(t, 4, turns)
	require.EqualValues(t, 2, w.Revision())
}

// writtenWindow returns a window of n events of objects without labels.
func writtenWindow(n int) *window.Window {
	w := window.New(window.Limits{}, nil)
	w.Reset(1)
	for i := range n {
		appendAdded(w, fmt.Sprint(i), nil)
	}
	return w
}

func appendAdded(w *window.Window, key string, labels map[string]string) {
	rev := w.View().Revision() + 1
	o := &store.Object{Key: key, Revision: rev, Created: rev, Labels: store.LabelsOf(labels)}
	w.Append(store.Event{Type: store.Added, Revision: rev, Object: o}, time.Time{})
}

func snapshotOf(w *window.Window) *window.Snapshot {
	view := w.View()
	return &window.Snapshot{Revision: view.Revision(), Generation: 1, Base: tree.New().View(), Window: view}
}

func TestTake_SearchesTheWindowInSteps(t *testing.T) {
	_, stream := rareState(t, 0)
	recent := writtenWindow(2*stepSize + 10)
	appendAdded(recent, "rare", map[string]string{"rare": ""})
	feed := &Feed{Registry: new(Registry)}
	feed.Publish(snapshotOf(recent))
	w := New(feed, Options{})
	w.Member().Begin(stream, Start{After: 1})
	events, n := steps(w)
	require.Len(t, events, 1)
	require.Equal(t, "rare", events[0].Key())
	require.Equal(t, 2, n)
}

// A step that has found nothing has put nothing into the consumer's hands.
func TestWindowMoved_LooksOnceForWhatTheConsumerOfASearchHasInHand(t *testing.T) {
	_, stream := rareState(t, 0)
	recent := writtenWindow(2*stepSize + 10)
	prev := snapshotOf(recent)
	feed := &Feed{Registry: new(Registry)}
	feed.Publish(prev)
	w := New(feed, Options{})
	w.Member().Begin(stream, Start{After: 1})
	step := func() {
		events, rest, err := w.takeStep()
		require.NoError(t, err)
		require.Empty(t, events)
		require.NotNil(t, rest, "there is more to search")
	}
	step()
	recent.Compact(stepSize / 2)
	require.Equal(t, Reading, w.Member().WindowMoved(prev, snapshotOf(recent)))
	require.True(t, w.flags.has(emptyHanded))
	step()
	require.True(t, w.flags.has(emptyHanded))
}

// A drain waits for events in hand, so they are looked for again after each search.
func TestWindowMoved_KeepsWhatTheConsumerHasTakenAfterASearch(t *testing.T) {
	_, stream := rareState(t, 0)
	recent := writtenWindow(stepSize + 10)
	appendAdded(recent, "rare", map[string]string{"rare": ""})
	for i := range 2 * window.DefaultChunkSize {
		appendAdded(recent, fmt.Sprint("later", i), nil)
	}
	feed := &Feed{Registry: new(Registry)}
	feed.Publish(snapshotOf(recent))
	w := New(feed, Options{})
	w.Member().Begin(stream, Start{After: 1})
	move := func(to store.Revision) {
		prev := snapshotOf(recent)
		recent.Compact(to)
		next := snapshotOf(recent)
		w.Member().WindowMoved(prev, next)
		feed.Publish(next)
	}
	_, rest, err := w.takeStep()
	require.NoError(t, err)
	require.NotNil(t, rest, "there is more to search")
	move(stepSize / 2)
	require.True(t, w.flags.has(emptyHanded))
	events, _, err := w.takeStep()
	require.NoError(t, err)
	require.Len(t, events, 1)
	move(recent.View().Revision())
	require.Greater(t, feed.Load().Window.Floor(), events[0].Revision)
	require.Equal(t, events, w.inHand(feed.Load()))
}

// The window drops thousands of events, of which the watch has to keep one.
func TestWindowMoved_KeepsWhatIsForTheWatchAmongMuchThatIsNot(t *testing.T) {
	_, stream := rareState(t, 0)
	recent := window.New(window.Limits{}, nil)
	recent.Reset(1)
	appendAdded(recent, "rare", map[string]string{"rare": ""})
	for i := range 2*stepSize + 10 {
		appendAdded(recent, fmt.Sprint(i), nil)
	}
	prev := snapshotOf(recent)
	feed := &Feed{Registry: new(Registry)}
	feed.Publish(prev)
	w := New(feed, Options{Buffer: 1})
	w.Member().Begin(stream, Start{After: 1})
	recent.Compact(prev.Revision)
	next := snapshotOf(recent)
	require.Equal(t, Reading, w.Member().WindowMoved(prev, next))
	feed.Publish(next)
	events, _ := steps(w)
	require.Len(t, events, 1)
	require.Equal(t, "rare", events[0].Key())
	events, _ = steps(w)
	require.Empty(t, events)
	require.NoError(t, w.Err())
}

// The states are compared, and the user's Clone called, without the lock.
func TestConflate_ComparesWithoutTheLock(t *testing.T) {
	free := false
	w := toBeConflated(t, func(w *Watch) {
		if free = w.mu.TryLock(); free {
			w.mu.Unlock()
		}
	})
	events, n := steps(w)
	require.Equal(t, 1, n)
	require.Len(t, events, 9)
	require.True(t, free)
}

// The user's Clone may stop the watch.
func TestConflate_OfAWatchThatEndsMeanwhileKeepsNothing(t *testing.T) {
	w := toBeConflated(t, (*Watch).Stop)
	events, n := steps(w)
	require.Equal(t, 1, n)
	require.Empty(t, events)
	require.ErrorIs(t, w.Err(), ErrStopped)
	require.Nil(t, w.cur.backlog)
}

// toBeConflated returns a watch that is conflated to nine events when it reads. The schema's Clone calls
// during while the states are compared.
func toBeConflated(t *testing.T, during func(*Watch)) *Watch {
	var w *Watch
	schema := &store.Schema{Clone: func(o *store.Object) *store.Object {
		during(w)
		clone := *o
		return &clone
	}}
	objects, recent := tree.New(), window.New(window.Limits{MaxEvents: 4, ChunkSize: 1}, nil)
	recent.Reset(1)
	publish := func() *window.Snapshot {
		recent.Trim(time.Time{})
		return &window.Snapshot{Revision: recent.View().Revision(), Generation: 1, Base: objects.View(), Window: recent.View()}
	}
	write := func(what store.EventType, key string, prev *store.Object) {
		rev := recent.View().Revision() + 1
		ev := store.Event{Type: what, Revision: rev, Object: &store.Object{Key: key, Revision: rev, Created: rev}, Prev: prev}
		objects.Apply(ev)
		recent.Append(ev, time.Time{})
	}
	write(store.Added, "a", nil)
	feed := &Feed{Registry: new(Registry)}
	first := publish()
	feed.Publish(first)
	w = New(feed, Options{Policy: Conflate, Buffer: 1})
	w.Member().Begin(NewStream(schema, nil, 0), Start{Next: first.Window.Next(), After: first.Revision})
	write(store.Deleted, "a", objects.Get("a"))
	for i := range 8 {
		write(store.Added, fmt.Sprint("b", i), nil)
	}
	second := publish()
	require.Equal(t, Reading, w.Member().WindowMoved(first, second))
	feed.Publish(second)
	return w
}
