package world

import (
	"context"
	"errors"
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

// mirrors are the consumers of the engine's Source in a world: an informer with a handler,
// and an object cache with references. Both are closed before the engine is. If storage
// goes back, each may show the old history for a while, but never again after it has shown
// the new one: see [World.judgeByKnownHistory].
//
//	engine ──Source──▶ informer ──▶ snapshots: the state at their revision
//	           │           └──────▶ notifications ──▶ copy: at rest, the newest state
//	           └─────▶ object cache ──▶ references: a state no older than the last shown
type mirrors[T any] struct {
	informer *informer.SharedInformer[T]
	// handlerState is what the informer's notifications add up to, and snapshotSeen the
	// newest state that its snapshots have shown.
	handlerState judge.Copy[T]
	snapshotSeen seen

	cache      *objectcache.Cache[T]
	references []*objectcache.Ref[T]
	// shown is, by key, the oldest state that a reference may show. It outlives the
	// references: one acquired just after the last was released shows the same state.
	shown map[string]*seen
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
		m.handlerState.Name = "handler"
		m.informer, err = informer.New(informer.Config[T]{
			Source: w.source(), Host: w.host, Name: "informer", Backoff: reconnect,
		})
		if err != nil {
			return err
		}
		w.Cleanup(func() { w.closeMirror("informer", m.informer.Close) })
		_, err = m.informer.Subscribe(w.handleNotification, informer.HandlerOptions{
			Name: "handler", Buffer: setup.InformerBuffer, Policy: setup.InformerPolicy,
		})
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

// handleNotification is the informer's handler.
func (w *World[T]) handleNotification(n informer.Notification[T]) {
	if w.seams.notify != nil && !w.seams.notify(n) {
		return
	}
	execution.Delivery(w.trace, -1, engine.Event[T]{Type: n.Type, Object: n.Object, Prev: n.Old, Revision: n.Object.Revision})
	if err := w.mirrors.handlerState.Apply(n.Type, w.historyObject(n.Old), w.historyObject(n.Object)); err != nil {
		w.fail(err)
	}
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
// for a later one, to which it then advances last. Which of them a mirror shows is not
// known from outside: it learns some time later that storage went back. The argument
// oldest of holds is the revision shown last, zero for a later history.
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
	objects := w.historyObjects(slices.Collect(snapshot.All()))
	w.judgeByKnownHistory(last, func(h *judge.History[T], oldest store.Revision) error {
		r := judge.Read[T]{Name: "informer", Mode: judge.ReadCached, Oldest: oldest, Newest: h.Newest()}
		return h.JudgeSnapshot(r, snapshot.Revision(), objects)
	})
	last.revision = snapshot.Revision()
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
		w.wait(s, s.For, func(ctx context.Context) { w.fetch(ctx, r) })
	}
}

// fetch reads through a reference and judges the result.
func (w *World[T]) fetch(ctx context.Context, r *objectcache.Ref[T]) {
	o, err := r.Get(ctx)
	if w.seams.fetched != nil {
		o = w.seams.fetched(r, o)
	}
	w.trace.Result(revisionOf(o), err)
	last, read := w.mirrors.shown[r.Key()], w.readBy(w.engine, judge.Read[T]{Name: "reference", Mode: judge.ReadCached})
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		w.judgeReadError(ctx, read, err, []error{objectcache.ErrNotSynced})
		return
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
	last.revision = max(last.revision, revisionOf(o))
}

// judgeMirrors compares the mirrors with the newest state when everything is at rest.
// Bookmarks have brought the informer to the newest revision by then, too.
func (w *World[T]) judgeMirrors() {
	if m := &w.mirrors; m.informer != nil {
		snapshot := w.snapshot()
		if snapshot.Revision() != w.newest() {
			w.fail(judge.Failed(judge.Recovers, "informer", "it is at %d, storage at %d", snapshot.Revision(), w.newest()))
			return
		}
		m.snapshotSeen = w.now()
		w.judgeSnapshot(snapshot)
		if err := w.history().JudgeCopy(&m.handlerState, w.newest()); err != nil {
			w.fail(err)
		}
	}
	w.resting = true
	for _, r := range w.mirrors.references {
		*w.mirrors.shown[r.Key()] = w.now()
		w.wait(script.Step{Turns: script.Unlimited}, pauseTime, func(ctx context.Context) { w.fetch(ctx, r) })
	}
	w.resting = false
}
