package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/informer"
	"github.com/watchmill/watchmill/engine/objectcache"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// mirrors are the consumers of the engine's Source in a world: an informer with handlers,
// and an object cache with references. Both are closed before the engine is. If storage
// goes back, each may show the old history for a while, but never again after it has shown
// the new one: see [World.judgeByKnownHistory].
//
//	engine ──Source──▶ informer ──▶ snapshots: the state at their revision
//	           │           └──────▶ notifications ──▶ copy: at rest, the newest state
//	           └─────▶ object cache ──▶ references: a state no older than the last shown
type mirrors[T any] struct {
	informer *informer.SharedInformer[T]
	handlers []*handler[T]
	// indexes are the names of its indexes.
	indexes []string
	// snapshotSeen is the newest state that the informer's snapshots have shown.
	snapshotSeen seen

	cache      *objectcache.Cache[T]
	references []*objectcache.Ref[T]
	// shown is, by key, the oldest state that a reference may show. It outlives the
	// references: one acquired just after the last was released shows the same state.
	shown map[string]*seen
}

// handler is a handler of an informer, and the copy to which its notifications add up.
type handler[T any] struct {
	judge.Copy[T]
	registration *informer.Registration // nil until it is added
}

// seen is the newest state that was shown: the index of its history, counted from the
// oldest, and its revision.
type seen struct {
	history  int
	revision store.Revision
}

// reconnect is the backoff of the mirrors between attempts to list or watch.
var reconnect = engine.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}

// startMirrors starts the informer and the object cache that the scenario has.
func (w *World[T]) startMirrors() (err error) {
	setup, m := w.scenario.Setup, &w.mirrors
	if setup.InformerBuffer > 0 {
		c := informer.Config[T]{Source: w.source(), Host: w.host, Name: "informer", Backoff: reconnect}
		if setup.InformerIndexed {
			c.Indexers = w.newIndex()
		}
		m.informer, err = informer.New(c)
		if err != nil {
			return err
		}
		w.Cleanup(func() { w.closeMirror("informer", m.informer.Close) })
		err = w.addHandler()
	}
	if err == nil && setup.ObjectsIdle != 0 {
		m.shown = map[string]*seen{}
		m.cache, err = objectcache.New(objectcache.Config[T]{
			Source: w.source(), Host: w.host, Name: "object cache", MaxIdle: setup.ObjectsIdle, Backoff: reconnect,
		})
		if err == nil {
			w.Cleanup(func() { w.closeMirror("object cache", m.cache.Close) })
		}
	}
	return err
}

// maxHandlers is the most handlers of an informer.
const maxHandlers = 4

// addHandler adds a handler to the informer, unless it has as many as it may.
func (w *World[T]) addHandler() (err error) {
	setup, m := w.scenario.Setup, &w.mirrors
	if len(m.handlers) == maxHandlers {
		return nil
	}
	h := &handler[T]{Copy: judge.Copy[T]{Name: fmt.Sprintf("handler %d", len(m.handlers)), Equal: w.storage.Equal}}
	m.handlers = append(m.handlers, h)
	h.registration, err = m.informer.Subscribe(func(n informer.Notification[T]) { w.notified(h, n) }, informer.HandlerOptions{
		Name: h.Name, Buffer: setup.InformerBuffer, Policy: setup.InformerPolicy, Resync: setup.InformerResync,
	})
	return err
}

// subscribe performs a step that adds a handler to the informer, if there is one.
func (w *World[T]) subscribe(s script.Step) {
	if w.mirrors.informer == nil {
		return
	}
	if err := w.addHandler(); err != nil {
		w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
	}
}

// source returns the engine as the source of its mirrors.
func (w *World[T]) source() engine.Source[T] {
	source := w.engine.Source()
	if w.seams.source != nil {
		source.ListerWatcher = w.seams.source(source.ListerWatcher)
	}
	return source
}

// closeMirror fails the world if closing the named mirror returns an error.
func (w *World[T]) closeMirror(name string, end func() error) {
	if err := end(); err != nil {
		w.fail(judge.Failed(judge.NothingLeft, name, "%v", err))
	}
}

// notified is what a handler of the informer does. A seam changes what the first one receives.
func (w *World[T]) notified(h *handler[T], n informer.Notification[T]) {
	execution.Delivery(w.trace, -1, engine.Event[T]{Type: n.Type, Object: n.Object, Prev: n.Old, Revision: n.Object.Revision})
	notifications := []informer.Notification[T]{n}
	if w.seams.notify != nil && h == w.mirrors.handlers[0] {
		notifications = w.seams.notify(w, n)
	}
	for _, n := range notifications {
		w.fail(w.judgeNotification(h, n))
	}
}

// judgeNotification judges a notification by what its handler was told before, and by the histories
// of storage: which of them the informer knows is not known from outside.
func (w *World[T]) judgeNotification(to *handler[T], n informer.Notification[T]) error {
	old, object := w.historyObject(n.Old), w.historyObject(n.Object)
	if err := to.Apply(n.Type, old, object); err != nil {
		return err
	}
	follows := n.Cause == informer.Change && w.scenario.Setup.InformerPolicy == informer.Block
	err := w.history().JudgeNotification(to.Name, n.Type, old, object, follows)
	for _, h := range w.former {
		if err != nil && h.JudgeNotification(to.Name, n.Type, old, object, follows) == nil {
			err = nil
		}
	}
	if err == nil && n.Cause == informer.Resync && n.Old != n.Object {
		err = judge.Failed(judge.PrevValue, to.Name, "%v is a change, from %d", n, n.Old.Revision)
	}
	if err == nil && to.registration != nil && n.InInitialList() == to.registration.HasSynced() {
		err = judge.Failed(judge.InitialState, to.Name, "%v, and whether it has had its initial state: %v", n, to.registration.HasSynced())
	}
	return err
}

// judgeInformer compares the informer's snapshot with the state at its revision.
func (w *World[T]) judgeInformer() {
	m := &w.mirrors
	if m.informer == nil {
		return
	}
	if snapshot := w.snapshot(); snapshot.Revision() > 0 {
		w.judgeSnapshot(snapshot)
	}
}

// judgeByKnownHistory fails the world unless holds returns nil for the history that was shown last or
// for a later one, and then advances last to that. It is not known from outside which of them a
// mirror shows: it learns some time later that storage went back. The argument oldest of holds is the
// revision shown last, zero for a later history.
func (w *World[T]) judgeByKnownHistory(last *seen, holds func(h *judge.History[T], oldest store.Revision) error) {
	var err error
	for i := last.history; i <= len(w.former); i++ {
		h, oldest := w.history(), store.Revision(0)
		if i < len(w.former) {
			h = w.former[i]
		}
		if i == last.history {
			oldest = last.revision
		}
		if err = holds(h, oldest); err == nil {
			last.history = i
			return
		}
	}
	w.fail(err)
}

// now returns the state that a mirror shows when it has caught up.
func (w *World[T]) now() seen { return seen{len(w.former), w.newest()} }

func (w *World[T]) snapshot() informer.Snapshot[T] {
	snapshot := w.mirrors.informer.Snapshot()
	if w.seams.snapshot != nil {
		snapshot = w.seams.snapshot(snapshot)
	}
	return snapshot
}

func (w *World[T]) judgeSnapshot(snapshot informer.Snapshot[T]) {
	last := &w.mirrors.snapshotSeen
	objects := w.objectsOf(snapshot)
	w.judgeByKnownHistory(last, func(h *judge.History[T], oldest store.Revision) error {
		r := judge.Read[T]{Name: "informer", Mode: judge.ReadCached, Oldest: oldest, Newest: h.Newest()}
		return h.JudgeSnapshot(r, snapshot.Revision(), objects)
	})
	last.revision = snapshot.Revision()
	w.judgeIndexes(snapshot, false)
}

// objectsOf returns the objects that a snapshot shows.
func (w *World[T]) objectsOf(snapshot informer.Snapshot[T]) []*engine.Object[T] {
	objects := slices.Collect(snapshot.All())
	if w.seams.shown != nil {
		objects = w.seams.shown(w, objects)
	}
	return w.historyObjects(objects)
}

// judgeInformerAtRest compares the informer with the newest state.
func (w *World[T]) judgeInformerAtRest() error {
	now, at := w.newest(), w.snapshot().Revision()
	if at != now {
		return judge.Failed(judge.Recovers, "informer", "it is at %d, storage at %d", at, now)
	}
	w.mirrors.snapshotSeen = w.now()
	return w.judgeInformerAt(now)
}

// judgeInformerAt compares all that the informer shows, and all that it has told its handlers, with the state at
// revision rev.
func (w *World[T]) judgeInformerAt(rev store.Revision) error {
	r := judge.Read[T]{Name: "informer", Mode: judge.ReadCached, Oldest: rev, Newest: rev}
	if err := w.history().JudgeList(r, everything[T], rev, w.objectsOf(w.snapshot())); err != nil {
		return err
	}
	w.judgeIndexes(w.snapshot(), true)
	for _, h := range w.mirrors.handlers {
		if err := w.history().JudgeCopy(&h.Copy, rev); err != nil {
			return err
		}
	}
	return nil
}

// useReference performs a step that acquires or releases a reference, or reads through one.
func (w *World[T]) useReference(s script.Step) {
	m := &w.mirrors
	switch {
	case m.cache == nil:
	case s.Do == script.Acquire:
		value := w.cfg.Draw(rand.New(rand.NewPCG(s.Seed, 1)))
		ref, err := m.cache.Acquire(w.cfg.Engine.Key(value))
		if err != nil {
			w.fail(judge.Failed(judge.Refusals, s.Do.String(), "%v", err))
			return
		}
		if _, known := m.shown[ref.Key()]; !known { // the first reference to a key makes the cache list
			now := w.now()
			m.shown[ref.Key()] = &now
		}
		m.references = append(m.references, ref)
	case len(m.references) == 0:
	case s.Do == script.Release:
		i := int(s.Seed % uint64(len(m.references)))
		m.references[i].Release()
		m.references = slices.Delete(m.references, i, i+1)
	default:
		r := m.references[s.Seed%uint64(len(m.references))]
		w.wait(s, s.For, func(ctx context.Context) { w.fetch(ctx, r, s.N%2 == 1) })
	}
}

// fetch reads through a reference and judges the result. Fresh requires that it is not older than storage,
// unless storage has gone back: the cache may know the revision of another history.
func (w *World[T]) fetch(ctx context.Context, r *objectcache.Ref[T], fresh bool) {
	var asked engine.Revision
	if fresh && len(w.former) == 0 {
		asked = w.newest()
	}
	o, err := get(ctx, r, asked)
	if w.seams.fetched != nil {
		o = w.seams.fetched(r, o)
	}
	w.trace.Result(revisionOf(o), err)
	last, read := w.mirrors.shown[r.Key()], w.readBy(w.engine, judge.Read[T]{Name: "reference", Mode: judge.ReadCached})
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		w.judgeReadError(ctx, read, err, []error{objectcache.ErrNotSynced})
		return
	}
	if len(w.former) == 0 {
		last.revision = max(last.revision, asked)
	}
	was := last.history
	o = w.historyObject(o)
	w.judgeByKnownHistory(last, func(h *judge.History[T], oldest store.Revision) error {
		read.Oldest, read.Newest = oldest, h.Newest()
		return h.JudgeGet(read.Read, r.Key(), o)
	})
	if last.history != was {
		last.revision = 0
	}
	last.revision = max(last.revision, revisionOf(o), w.goneSince(last, r.Key(), o))
}

// get reads through a reference, of the revision oldest or a later one if that is not zero.
func get[T any](ctx context.Context, r *objectcache.Ref[T], oldest engine.Revision) (*engine.Object[T], error) {
	if oldest > 0 {
		return r.GetNotOlderThan(ctx, oldest)
	}
	return r.Get(ctx)
}

// goneSince returns the oldest revision without an object that a reference to key may show if it has
// shown none, as o says, which is then nil; otherwise zero.
func (w *World[T]) goneSince(last *seen, key string, o *engine.Object[T]) store.Revision {
	h := w.history()
	if last.history < len(w.former) {
		h = w.former[last.history]
	}
	for rev := last.revision; o == nil && rev <= h.Newest(); rev++ {
		if _, _, there := h.At(key, rev); !there {
			return rev
		}
	}
	return 0
}

// judgeMirrors compares the mirrors with the newest state when everything is at rest.
// Bookmarks have brought the informer to the newest revision by then, too.
func (w *World[T]) judgeMirrors() {
	w.resting = true
	if w.mirrors.informer != nil {
		if err := w.judgeInformerAtRest(); err != nil {
			w.fail(err)
			return
		}
	}
	for _, r := range w.mirrors.references {
		*w.mirrors.shown[r.Key()] = w.now()
		w.wait(script.Step{Turns: script.Unlimited}, pauseTime, func(ctx context.Context) { w.fetch(ctx, r, true) })
	}
	w.resting = false
}
