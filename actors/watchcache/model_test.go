package watchcache

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/actors/dispatcher"
	"github.com/watchmill/watchmill/actors/reflector"
	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/clock/clocktest"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/tree"
	"github.com/watchmill/watchmill/store/window"
)

// TestCache_AgreesWithAModel gives a cache the updates of a source at random, with outages,
// lists of storage that was restored, compactions, failures of the actor and a clock that is
// set back, while calls wait for revisions and watches begin.
func TestCache_AgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newCacheModel(t)
		t.Repeat(rapid.StateMachineActions(m))
		m.close(t)
	})
}

// cacheModel is a source with its history, and what a cache of it must be like. Its exported
// methods are what happens at random.
type cacheModel struct {
	seeded    *actors.Seeded
	clock     *clock.Virtual
	faults    *clocktest.Failing
	system    *actors.System
	real      *Cache
	last      *window.Snapshot // as of the latest check, when the state was as lastState
	lastState map[string]version
	begun     []dispatcher.Register
	stats     Stats
	lists     uint64 // that the cache has been given

	// The source: unsent are the events that the cache has not received. Once it is restored
	// there are none that follow those before, until it is listed.
	storage  *tree.Tree
	rev      store.Revision
	id       string
	unsent   []store.Event
	restored bool

	// What the cache has. The positions have the revisions of all events, by their places in
	// the window.
	filled, trusted, ready bool
	wrong                  bool // since Distrust
	state                  map[string]version
	revision, compacted    store.Revision
	epoch                  uint64
	heldID                 string
	positions              []store.Revision
	waits                  []modelWait
}

// version is an object's revision, and that at which it was created.
type version struct{ revision, created store.Revision }

func versionOf(o *store.Object) version { return version{o.Revision, o.Created} }

// modelWait is a call that waits.
type modelWait struct {
	revision store.Revision
	until    time.Time
	reply    chan error
}

// collecting is a dispatcher that keeps the registrations.
type collecting struct{ to *[]dispatcher.Register }

func (c collecting) Receive(_ *actors.Context, m dispatcher.Message) {
	if r, ok := m.(dispatcher.Register); ok {
		*c.to = append(*c.to, r)
	}
}

func newCacheModel(t *rapid.T) *cacheModel {
	m := &cacheModel{
		seeded: actors.NewSeeded(rapid.Uint64().Draw(t, "seed")), clock: clock.NewVirtual(began),
		last: &window.Snapshot{}, state: map[string]version{},
	}
	m.faults = &clocktest.Failing{Clock: m.clock}
	m.restore(1, "storage 0")
	system, err := actors.NewSystem(actors.SystemConfig{Executor: m.seeded, Clock: m.faults, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	m.system = system
	down := actors.Spawn(system, "dispatcher", func() actors.Behavior[dispatcher.Message] { return collecting{&m.begun} }, actors.Options{})
	actors.Spawn(system, "parent", func() actors.Behavior[struct{}] {
		return restarting{func(ctx *actors.Context) {
			m.real = Spawn(ctx, m.faults, Config{
				Schema:    &store.Schema{Clone: func(o *store.Object) *store.Object { c := *o; return &c }},
				Limits:    window.Limits{ChunkSize: 2, MinEvents: 4, MaxEvents: 8, MinAge: time.Second},
				Published: new(window.Published), Dispatcher: down, Stats: &m.stats,
				Relist: func(reflector.Reason) {}, Report: func(error) {}, OnBehind: func() {},
			})
		}}
	}, actors.Options{})
	m.seeded.Run()
	return m
}

// restore replaces the source's storage by an empty one.
func (m *cacheModel) restore(rev store.Revision, id string) {
	m.storage, m.rev, m.id, m.unsent, m.restored = tree.New(), rev, id, nil, true
}

func (m *cacheModel) Write(t *rapid.T) {
	m.rev++
	o := &store.Object{Key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), Revision: m.rev, Created: m.rev}
	ev := store.Event{Type: store.Added, Revision: m.rev, Object: o, Prev: m.storage.Get(o.Key)}
	switch {
	case ev.Prev == nil:
	case rapid.Bool().Draw(t, "delete"):
		ev.Type = store.Deleted
	default:
		ev.Type, o.Created = store.Modified, ev.Prev.Created
	}
	m.storage.Apply(ev)
	m.unsent = append(m.unsent, ev)
}

func (m *cacheModel) Changes(t *rapid.T) {
	if len(m.unsent) == 0 || m.restored {
		t.Skip("no event")
	}
	n := rapid.IntRange(1, len(m.unsent)).Draw(t, "events")
	events := m.unsent[:n]
	u := reflector.Update{Kind: reflector.Changes, Revision: events[n-1].Revision, Events: events}
	if m.unsent = m.unsent[n:]; len(m.unsent) == 0 && rapid.Bool().Draw(t, "with the state") {
		u.State = m.storage.View()
	}
	m.offer(t, u)
	if m.trusted {
		m.take(u)
	}
}

// take has the model take changes as the cache does.
func (m *cacheModel) take(u reflector.Update) {
	for _, ev := range u.Events {
		m.positions = append(m.positions, ev.Revision)
		if m.state[ev.Key()] = versionOf(ev.Object); ev.Type == store.Deleted {
			delete(m.state, ev.Key())
		}
	}
	m.revision, m.ready = u.Revision, true
}

func (m *cacheModel) Progress(t *rapid.T) {
	if len(m.unsent) > 0 || m.restored {
		t.Skip("there are events")
	}
	m.rev += store.Revision(rapid.IntRange(0, 2).Draw(t, "others"))
	m.offer(t, reflector.Update{Kind: reflector.Progress, Revision: m.rev})
	if m.trusted {
		m.revision, m.ready = m.rev, true
	}
}

func (m *cacheModel) Outage(t *rapid.T) {
	m.offer(t, reflector.Update{Kind: reflector.Unavailable, Err: errors.New("down")})
	m.ready = false
}

// Restore has the source go back in time, or replaces it.
func (m *cacheModel) Restore(t *rapid.T) {
	id := rapid.SampledFrom([]string{m.id, "storage 1", "storage 2"}).Draw(t, "storage")
	m.restore(m.rev-min(m.rev-1, store.Revision(rapid.IntRange(0, 3).Draw(t, "revisions"))), id)
}

// List lists the state. The history may be compacted before the cache has the list.
func (m *cacheModel) List(t *rapid.T) {
	u := reflector.Update{Kind: reflector.Replace, Reason: reflector.Requested, Revision: m.rev, StoreID: m.id}
	listed := map[string]version{}
	for o := range m.storage.View().All("", "") {
		u.Objects, listed[o.Key] = append(u.Objects, o), versionOf(o)
	}
	if rapid.Bool().Draw(t, "as the state") {
		u.State, u.Objects = m.storage.View(), nil
	}
	m.unsent, m.restored = nil, false
	if rapid.Bool().Draw(t, "compacted meanwhile") {
		m.Write(t)
		m.Compact(t)
	}
	m.replace(t, u, listed)
}

// replace gives the cache a list.
func (m *cacheModel) replace(t *rapid.T, u reflector.Update, listed map[string]version) {
	other, older := m.filled && u.StoreID != m.heldID, m.filled && u.Revision < m.revision
	if other || older || m.filled && u.Revision == m.revision && !maps.Equal(listed, m.state) {
		m.epoch++
	}
	if other || older {
		m.compacted = 0
	}
	before := m.real.published.Load().Window.Next()
	m.offer(t, u)
	m.lists++
	m.filled, m.trusted, m.ready = true, true, true
	m.state, m.revision, m.heldID = listed, u.Revision, u.StoreID
	if m.wrong {
		require.Equal(t, m.revision, m.real.published.Load().Window.Floor(), "no watch starts from a wrong state")
		m.wrong = false
	}
	first := max(before, m.real.published.Load().Window.First()) // some may have left it at once
	m.positions = append(m.positions, make([]store.Revision, first-before)...)
	for _, ev := range m.eventsFrom(t, first) { // the differences
		m.positions = append(m.positions, ev.Revision)
	}
}

// eventsFrom returns the events from a position on, which the window must have.
func (m *cacheModel) eventsFrom(t *rapid.T, at window.Seq) (all []store.Event) {
	w := m.real.published.Load().Window
	for at < w.Next() {
		events, ok := w.Read(at)
		require.True(t, ok)
		all = append(all, events...)
		at += window.Seq(len(events))
	}
	return all
}

func (m *cacheModel) Distrust(t *rapid.T) {
	reply := make(chan error, 2)
	m.real.Distrust(Distrust{Cause: ErrInconsistent, Reply: reply})
	m.seeded.Run()
	require.Len(t, reply, 1)
	m.trusted, m.ready, m.wrong = false, false, true
}

// Fail has the actor fail before it has handled an update.
func (m *cacheModel) Fail(t *rapid.T) {
	m.faults.Fail(clocktest.Now, 0, 1)
	m.offer(t, reflector.Update{Kind: reflector.Progress, Revision: m.rev})
	m.trusted, m.ready = false, false
}

// FailInACall has the actor fail before it has handled a call, which is answered all the same.
func (m *cacheModel) FailInACall(t *rapid.T) {
	reply := make(chan error, 2)
	call := rapid.SampledFrom([]Message{
		Wait{Revision: m.revision, Until: m.clock.Now().Add(time.Second), Reply: reply},
		Distrust{Cause: ErrInconsistent, Reply: reply}, Compact{Revision: m.revision, Reply: reply},
	}).Draw(t, "call")
	m.faults.Fail(clocktest.Now, 0, 1)
	m.real.send(call)
	m.seeded.Run()
	require.Len(t, reply, 1)
	require.ErrorIs(t, <-reply, ErrNotReady)
	m.trusted, m.ready = false, false
}

// FailBehindChanges has the actor fail after it has handled events, which are lost if it has not
// published them: if that was in the same turn.
func (m *cacheModel) FailBehindChanges(t *rapid.T) {
	if len(m.unsent) == 0 || m.restored {
		t.Skip("no event")
	}
	u := reflector.Update{Kind: reflector.Changes, Revision: m.unsent[len(m.unsent)-1].Revision, Events: m.unsent}
	require.Equal(t, actors.Accepted, m.real.Offer(u))
	m.faults.Fail(clocktest.Now, 1, 1)
	m.offer(t, reflector.Update{Kind: reflector.Progress, Revision: u.Revision})
	if m.trusted && m.real.published.Load().Revision == u.Revision {
		m.take(u)
		m.checkWaits(t, m.revision)
	}
	m.unsent, m.trusted, m.ready = nil, false, false
}

func (m *cacheModel) Compact(t *rapid.T) {
	reply := make(chan error, 2)
	rev := max(m.revision+1, m.rev, 3) - store.Revision(rapid.IntRange(0, 3).Draw(t, "before"))
	m.real.Compact(Compact{Revision: rev, Reply: reply})
	m.seeded.Run()
	require.Len(t, reply, 1)
	m.compacted = max(m.compacted, rev)
}

func (m *cacheModel) Wait(t *rapid.T) {
	w := modelWait{
		revision: m.revision + store.Revision(rapid.IntRange(0, 4).Draw(t, "ahead")), reply: make(chan error, 2),
		until: m.clock.Now().Add(time.Duration(rapid.IntRange(-1, 3).Draw(t, "seconds")) * time.Second),
	}
	m.real.Wait(Wait{Revision: w.revision, Until: w.until, Reply: w.reply})
	m.seeded.Run()
	m.waits = append(m.waits, w)
}

// Pass lets time pass. A call that is to be answered within less than waitSpacing could be
// answered later.
func (m *cacheModel) Pass(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.IntRange(1, 300).Draw(t, "times")) * waitSpacing)
	m.seeded.Run()
}

func (m *cacheModel) SetBack(*rapid.T) { m.clock.Jump(-time.Second) }

// Watch begins a watch after a revision.
func (m *cacheModel) Watch(t *rapid.T) {
	from := store.Revision(rapid.IntRange(1, int(m.revision)+2).Draw(t, "from"))
	start, err := m.watch(t, watcher.From{Revision: from})
	switch {
	case err != nil:
		require.ErrorIs(t, err, store.ErrExpired)
		require.Less(t, from, m.revision)
	case start == nil:
	case from > m.revision:
		require.Equal(t, watcher.Start{Pending: from}, *start)
	default:
		require.Equal(t, from, start.After)
		m.requireBetween(t, *start)
	}
}

// WatchLast begins a watch with the last events. Those from before the window's floor are not among them.
func (m *cacheModel) WatchLast(t *rapid.T) {
	n := rapid.IntRange(1, 9).Draw(t, "last")
	start, err := m.watch(t, watcher.From{Last: n})
	require.NoError(t, err)
	if start == nil {
		return
	}
	w := m.real.published.Load().Window
	require.LessOrEqual(t, uint64(w.Next()-start.Next), uint64(n))
	if w.Next()-start.Next < window.Seq(n) && start.Next > w.First() {
		require.LessOrEqual(t, m.positions[start.Next-1], w.Floor())
	}
	m.requireBetween(t, *start)
}

// requireBetween requires that what begins so has everything before its position, and nothing after.
func (m *cacheModel) requireBetween(t *rapid.T, start watcher.Start) {
	if start.Next > m.last.Window.First() {
		require.LessOrEqual(t, m.positions[start.Next-1], start.After)
	}
	if start.Next < m.last.Window.Next() {
		require.Greater(t, m.positions[start.Next], start.After)
	}
}

// watch begins a watch. It returns where, or that it cannot. With neither, the cache is not ready.
func (m *cacheModel) watch(t *rapid.T, from watcher.From) (*watcher.Start, error) {
	reply, feed := make(chan error, 2), &watcher.Feed{Registry: new(watcher.Registry)}
	m.begun = nil
	m.real.Register(Register{Watch: watcher.New(feed, watcher.Options{}), From: from, Reply: reply})
	m.seeded.Run()
	if len(reply) == 0 { // the dispatcher, which answers then, has been given it
		require.True(t, m.ready)
		require.Len(t, m.begun, 1)
		return &m.begun[0].Start, nil
	}
	require.Empty(t, m.begun)
	err := <-reply
	if !m.ready {
		require.ErrorIs(t, err, ErrNotReady)
		return nil, nil
	}
	return nil, err
}

// offer gives the cache an update, which it handles at once.
func (m *cacheModel) offer(t *rapid.T, u reflector.Update) {
	require.Equal(t, actors.Accepted, m.real.Offer(u))
	m.seeded.Run()
}

// Check is called after everything that happens.
func (m *cacheModel) Check(t *rapid.T) {
	now := m.real.published.Load()
	require.Equal(t, m.ready, m.real.Ready())
	require.Equal(t, m.ready, m.real.Check(m.clock.Now()) == nil)
	require.Equal(t, m.wrong, m.real.Distrusted())
	require.Equal(t, m.revision, now.Revision)
	require.Equal(t, m.epoch, now.Epoch)
	require.Equal(t, m.heldID, now.StoreID)
	require.Equal(t, m.lists, m.stats.Replaces.Load())
	if rapid.Bool().Draw(t, "read the state") { // which a cache that is not read does not make
		require.Equal(t, m.state, versionsOf(now))
	}
	require.GreaterOrEqual(t, now.Window.Floor(), min(m.compacted, m.revision))
	require.LessOrEqual(t, now.Window.Len(), 8)
	require.EqualValues(t, len(m.positions), now.Window.Next())
	m.checkEvents(t, now)
	m.checkWaits(t, now.Revision)
	require.LessOrEqual(t, m.system.Timers(), 3, "to trim, for waits and to ask for progress")
	m.last, m.lastState = now, maps.Clone(m.state)
}

func versionsOf(s *window.Snapshot) map[string]version {
	all := map[string]version{}
	for o := range s.State().All("", "") {
		all[o.Key] = versionOf(o)
	}
	return all
}

// checkEvents requires that the events since the latest check lead from the state then to the
// state now, if they are of one timeline and have not left the window.
func (m *cacheModel) checkEvents(t *rapid.T, now *window.Snapshot) {
	if m.last.Timeline() != now.Timeline() || m.last.Generation == 0 || m.last.Window.Next() < now.Window.First() {
		return
	}
	state, at := m.lastState, m.last.Revision
	for _, ev := range m.eventsFrom(t, m.last.Window.Next()) {
		require.GreaterOrEqual(t, ev.Revision, at)
		require.LessOrEqual(t, ev.Revision, now.Revision)
		at = ev.Revision
		was, known := state[ev.Key()]
		require.Equal(t, ev.Type != store.Added, known, "%v", ev)
		require.Equal(t, known, ev.Prev != nil, "%v", ev)
		if known {
			require.Equal(t, was, versionOf(ev.Prev))
		}
		if state[ev.Key()] = versionOf(ev.Object); ev.Type == store.Deleted {
			delete(state, ev.Key())
		}
	}
	require.Equal(t, m.state, state)
}

// checkWaits requires that each call is answered once, at the right time.
func (m *cacheModel) checkWaits(t *rapid.T, revision store.Revision) {
	m.waits = slices.DeleteFunc(m.waits, func(w modelWait) bool {
		reached, late := m.ready && revision >= w.revision, !w.until.After(m.clock.Now())
		require.Equal(t, reached || late, len(w.reply) == 1)
		if len(w.reply) == 0 {
			return false
		}
		switch err := <-w.reply; {
		case reached:
			require.NoError(t, err)
		case m.ready:
			require.ErrorIs(t, err, store.ErrFuture)
		default:
			require.ErrorIs(t, err, ErrNotReady)
		}
		return true
	})
}

// close requires that the cache ends as it must.
func (m *cacheModel) close(t *rapid.T) {
	require.NoError(t, m.system.Close(context.Background()))
	for _, w := range m.waits {
		require.Len(t, w.reply, 1)
		require.ErrorIs(t, <-w.reply, ErrStopped)
	}
	require.Zero(t, m.system.Timers())
}
