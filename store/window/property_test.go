package window_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// windowModel is a window that is obviously right: it keeps every event and
// every state for ever, and learns only from the window's First how much of
// them the window still has to know.
type windowModel struct {
	window *window.Window
	tree   *tree.Tree
	// now is the time, latest the latest that it has been.
	now, latest time.Time

	events   []store.Event
	states   map[store.Revision]string // at revisions that were seen
	unseen   map[store.Revision]bool
	relists  []relist
	floor    store.Revision
	revision store.Revision
	views    []pastView
}

// relist is where a list took the place of events, and the number of events
// before and after it.
type relist struct {
	after, through store.Revision
	start, end     int
	at             time.Time
}

// pastView is a view with what it showed when it was taken.
type pastView struct {
	view   window.View
	events []store.Event
}

func newWindowModel(limits window.Limits) *windowModel {
	m := &windowModel{
		window: window.New(limits, func(o *store.Object) int { return storetest.Things.Size(o) * megabyte }),
		tree:   storetest.TreeOf(), now: time.Unix(0, 0), latest: time.Unix(0, 0),
		states: map[store.Revision]string{}, unseen: map[store.Revision]bool{},
	}
	m.reset(10)
	m.window.Trim(m.now) // its clock begins where that of the model does, even if time jumps back at once
	return m
}

func (m *windowModel) reset(floor store.Revision) {
	m.window.Reset(floor)
	clear(m.states)
	clear(m.unseen)
	m.relists = nil
	m.floor, m.revision = floor, floor
	m.states[floor] = storetest.KeysAndRevisions(m.tree.View())
}

// reach notes that nothing more happens until rev.
func (m *windowModel) reach(rev store.Revision) {
	for r := m.revision; r <= rev; r++ {
		m.states[r] = storetest.KeysAndRevisions(m.tree.View())
	}
	m.revision = rev
}

func (m *windowModel) advance(t *rapid.T) {
	rev := m.revision + store.Revision(rapid.IntRange(0, 3).Draw(t, "ahead"))
	m.window.Advance(rev)
	m.reach(rev)
}

// change draws a change to the state and makes the event of it.
func (m *windowModel) change(t *rapid.T, rev store.Revision, objects *tree.Tree) store.Event {
	o := storetest.NewThing(store.Object{Key: fmt.Sprint("k", rapid.IntRange(0, 6).Draw(t, "key")), Revision: rev, Created: rev})
	store.As[storetest.Thing](o).Value = string(make([]byte, rapid.IntRange(0, 30).Draw(t, "size")))
	ev := store.Event{Type: store.Added, Revision: rev, Object: o, Prev: objects.Get(o.Key)}
	switch {
	case rapid.IntRange(0, 9).Draw(t, "emit") == 0:
		ev.Type, ev.Prev = store.Emitted, nil
	case ev.Prev == nil:
	case rapid.Bool().Draw(t, "delete"):
		ev.Type, ev.Object = store.Deleted, storetest.Things.Gone(ev.Prev, rev, m.now)
	default:
		ev.Type, o.Created = store.Modified, ev.Prev.Created
	}
	return ev
}

func (m *windowModel) append(t *rapid.T) {
	rev := m.revision + store.Revision(rapid.IntRange(1, 3).Draw(t, "step"))
	m.reach(rev - 1)
	ev := m.change(t, rev, m.tree)
	m.window.Append(ev, m.now)
	apply(m.tree, ev)
	m.events = append(m.events, ev)
	m.revision = rev
	m.reach(rev)
}

// relist changes the state behind the window's back and gives it the difference.
func (m *windowModel) relist(t *rapid.T) {
	r := relist{after: m.revision, start: len(m.events), at: m.latest}
	after, through := m.revision, m.revision
	is := tree.From(m.tree.View())
	for range rapid.IntRange(1, 12).Draw(t, "unseen") {
		through++
		if rapid.Bool().Draw(t, "ours") {
			apply(is, m.change(t, through, is))
		}
	}
	events := tree.Diff(storetest.Things, m.tree.View(), is.View(), after, through, m.now)
	m.window.AppendDiff(events, after, through, m.now)
	for _, ev := range events {
		apply(m.tree, ev)
	}
	require.Equal(t, storetest.KeysAndRevisions(is.View()), storetest.KeysAndRevisions(m.tree.View()))
	m.events = append(m.events, events...)
	for rev := after + 1; rev < through; rev++ {
		m.unseen[rev] = true
	}
	m.revision = through
	m.reach(through)
	if r.through, r.end = through, len(m.events); through > after+1 {
		m.relists = append(m.relists, r)
	}
}

// join forgets what lies between two relists with no event between, once the
// later one is old.
func (m *windowModel) join(minAge time.Duration) {
	m.relists = slices.DeleteFunc(m.relists, func(r relist) bool { return r.through <= m.floor })
	for i := 1; i < len(m.relists); i++ {
		a, b := m.relists[i-1], m.relists[i]
		if a.end == b.start && m.latest.Sub(b.at) >= minAge {
			for rev := a.through; rev <= b.after; rev++ {
				m.unseen[rev] = true
			}
		}
	}
}

// trim lets time pass, or jump, and drops what is out of the limits.
func (m *windowModel) trim(t *rapid.T, limits window.Limits) {
	before := m.window.View()
	m.now = m.now.Add(time.Duration(rapid.IntRange(-5, 20).Draw(t, "seconds")) * time.Second)
	if m.now.After(m.latest) {
		m.latest = m.now
	}
	dropped := m.window.Trim(m.now)
	v := m.window.View()
	require.Equal(t, before.Len()-v.Len(), dropped)
	require.GreaterOrEqual(t, v.Len(), min(before.Len(), limits.MinEvents))
	require.LessOrEqual(t, v.Len(), max(limits.MaxEvents, limits.MinEvents+limits.ChunkSize))
	m.forget(t)
	m.join(limits.MinAge)
}

func (m *windowModel) compact(t *rapid.T) {
	rev := store.Revision(rapid.IntRange(0, int(m.revision)+2).Draw(t, "compact"))
	m.window.Compact(rev)
	m.floor = max(m.floor, min(rev, m.revision))
	m.forget(t)
}

// forget lets the model know no more than the events that are left do.
func (m *windowModel) forget(t *rapid.T) {
	v := m.window.View()
	if first := int(v.First()); first > 0 && first <= len(m.events) {
		m.floor = max(m.floor, m.events[first-1].Revision)
	}
	for m.unseen[m.floor] {
		m.floor++
	}
	require.GreaterOrEqual(t, v.Floor(), m.floor)
}

// look compares all that the window says with the model.
func (m *windowModel) look(t *rapid.T) {
	v := m.window.View()
	kept := m.events[v.First():]
	require.Equal(t, window.Seq(len(m.events)), v.Next())
	require.Equal(t, len(kept), v.Len())
	require.Equal(t, m.revision, v.Revision())
	require.Equal(t, m.floor, v.Floor())
	requireHolds(t, v, kept)
	for rev := m.floor - 1; rev <= m.revision+1; rev++ {
		m.lookAt(t, v, rev)
	}
	for at := v.First(); at <= v.Next(); at++ {
		m.lookFrom(t, v, at)
	}
	m.views = append(m.views, pastView{v, kept})
}

// requireHolds checks that the events are what the view has, and no more.
func requireHolds(t *rapid.T, v window.View, events []store.Event) {
	read, held := []store.Event{}, int64(0)
	for at := v.First(); at < v.Next(); {
		chunk, ok := v.Read(at)
		require.True(t, ok)
		require.NotEmpty(t, chunk)
		read = append(read, chunk...)
		at += window.Seq(len(chunk))
	}
	require.True(t, slices.Equal(events, read), "want %v, got %v", events, read)
	for _, ev := range read {
		switch ev.Type {
		case store.Emitted:
			held += int64(storetest.Things.Size(ev.Object))
		case store.Modified, store.Deleted:
			held += int64(storetest.Things.Size(ev.Prev))
		}
	}
	require.Equal(t, held, v.Bytes()/megabyte)
	if v.First() > 0 {
		_, ok := v.Read(v.First() - 1)
		require.False(t, ok)
	}
}

// lookAt checks what the window says of a revision.
func (m *windowModel) lookAt(t *rapid.T, v window.View, rev store.Revision) {
	at, err := v.Seek(rev)
	state, stateErr := snapshot(m.window, m.tree).StateAt(t.Context(), rev)
	if rev < m.floor || m.unseen[rev] {
		require.ErrorIs(t, err, store.ErrExpired, "%v", rev)
		require.ErrorIs(t, stateErr, store.ErrExpired, "%v", rev)
		return
	}
	require.NoError(t, err, "%v", rev)
	want := window.Seq(len(m.events))
	for want > v.First() && m.events[want-1].Revision > rev {
		want--
	}
	require.Equal(t, want, at, "%v", rev)
	switch {
	case rev > m.revision:
		require.ErrorIs(t, stateErr, store.ErrFuture)
	default:
		require.NoError(t, stateErr, "%v", rev)
		require.Equal(t, m.states[rev], storetest.KeysAndRevisions(state), "%v", rev)
	}
}

// lookFrom checks that a reader at a position misses nothing if it starts
// again from its revision, if it can.
func (m *windowModel) lookFrom(t *rapid.T, v window.View, at window.Seq) {
	rev := v.RevisionAt(at)
	if again, err := v.Seek(rev); err == nil {
		require.Equal(t, at, again, "revision %v", rev)
	} else if at < v.Next() {
		next := m.events[at].Revision
		require.True(t, m.unseen[rev] || rev < m.floor, "position %d, revision %v, next %v", at, rev, next)
		require.Less(t, rev, next)
	}
}

func TestWindow_AgreesWithTheFullHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := window.Limits{
			ChunkSize: rapid.IntRange(1, 5).Draw(t, "chunk"),
			MaxEvents: rapid.IntRange(5, 20).Draw(t, "events"),
			MaxBytes:  int64(rapid.IntRange(1, 500).Draw(t, "megabytes")) * megabyte,
			MinEvents: rapid.IntRange(0, 5).Draw(t, "min"),
			MinAge:    time.Duration(rapid.SampledFrom([]int{5, 60}).Draw(t, "age")) * time.Second,
		}
		require.NoError(t, limits.Validate("limits"))
		m := newWindowModel(limits)
		t.Repeat(map[string]func(*rapid.T){
			"append":  m.append,
			"burst":   func(t *rapid.T) { m.append(t); m.append(t); m.append(t); m.append(t) },
			"advance": m.advance,
			"relist":  m.relist,
			"trim":    func(t *rapid.T) { m.trim(t, limits) },
			"compact": m.compact,
			"reset": func(t *rapid.T) {
				m.reset(m.revision + store.Revision(rapid.IntRange(0, 3).Draw(t, "ahead")))
			},
			"": m.look,
		})
		for _, p := range m.views {
			requireHolds(t, p.view, p.events)
		}
	})
}
