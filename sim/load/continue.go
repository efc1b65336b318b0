package load

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/internal/caughtup"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/sim/trace"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// afterLast finds the last change that is in storage, and waits until the engine
// serves the state after it.
func (r *run) afterLast(ctx context.Context) error {
	h := r.history
	if err := r.checkStore(ctx); err != nil {
		return err
	}
	newest, err := r.storage.Revision(ctx)
	if err != nil {
		return err
	}
	if err := h.checkRevisions(newest); err != nil {
		return err
	}
	h.base, h.last, h.inherited = h.Resume.Origin.Revision, newest, newest
	written := r.writtenThrough(newest)
	if err := r.compareStorage(ctx, written); err != nil {
		return err
	}
	h.start, h.noOps = written.changes, written.noOps
	h.written.Store(int64(h.start))
	return caughtup.Wait(ctx, r.engine, newest)
}

// checkStore refuses checkpoints of another storage.
func (r *run) checkStore(ctx context.Context) error {
	if _, err := r.engine.RevisionOf(ctx, r.history.Resume.Origin); err != nil {
		return err
	}
	for i := range r.history.Resume.Watchers {
		if _, err := r.engine.RevisionOf(ctx, r.history.Resume.Watchers[i].Checkpoint); err != nil {
			return err
		}
	}
	return nil
}

// checkRevisions refuses checkpoints that cannot be of storage at this revision.
func (h *replay) checkRevisions(newest engine.Revision) error {
	origin := h.Resume.Origin.Revision
	if origin == 0 || origin > newest {
		return cannotContinue("it began at revision %d, and the storage is at %d: an older copy of it is in its place", origin, newest)
	}
	for i := range h.Resume.Watchers {
		if at := h.Resume.Watchers[i].Checkpoint.Revision; at < origin || at > newest {
			return cannotContinue("watcher %d is at revision %d, and the storage has %d to %d: an older copy of it is in its place", i, at, origin, newest)
		}
	}
	return nil
}

// written is the part of a history that is in storage.
type written struct {
	// changes is its number of changes, and noOps how many of them changed nothing.
	changes, noOps int
	// newest is the revision of its last change.
	newest engine.Revision
	state  trace.State
	// revisions are those of the state's objects, by key.
	revisions map[string]engine.Revision
}

// writtenThrough returns the part of the history up to a revision, and records it in the
// ledger. Every change that is not a no-op has made one revision.
func (r *run) writtenThrough(newest engine.Revision) *written {
	h := r.history
	p := &written{newest: h.base, state: trace.State{}, revisions: map[string]engine.Revision{}}
	maker := content.NewMaker(&r.plan.Objects, 0, 0)
	for i := 0; i < len(h.Changes) && p.newest < newest; i++ {
		c := &h.Changes[i]
		p.changes++
		if !p.state.Apply(*c) {
			p.noOps++
			continue
		}
		p.newest++
		e := judge.Entry{Revision: p.newest, Key: c.Key, Deleted: c.Op == trace.Delete}
		if e.Deleted {
			delete(p.revisions, c.Key)
		} else {
			p.revisions[c.Key] = p.newest
			e.Fields = maker.File(c.Key, c.Version).Attrs.Fields
		}
		r.ledger.Note(e)
	}
	return p
}

// compareStorage refuses storage that does not have exactly the objects of p.
func (r *run) compareStorage(ctx context.Context, p *written) error {
	if p.newest < r.history.last {
		return cannotContinue("the storage has %d changes, and the history has %d: it is not the one that was begun", r.history.last-r.history.base, p.newest-r.history.base)
	}
	list, err := r.storage.List(ctx, backend.ListOptions{})
	if err != nil {
		return err
	}
	there := states.Of(store.AsObjects[engine.Object[content.Item]](list.Items))
	where := states.TraceDifference(there, p.state)
	for key, o := range there {
		if where == "" && o.Revision != p.revisions[key] {
			where = fmt.Sprintf("%q is %s and should be at revision %d", key, states.Describe(o), p.revisions[key])
		}
	}
	if where != "" {
		return cannotContinue("the storage is not as the first %d changes of the history make it: %s", p.changes, where)
	}
	return nil
}

// restore gives a watcher the state at its checkpoint. If the storage has compacted that
// revision, the watcher lists instead when it follows, as after any disconnect.
func (w *watcher) restore(ctx context.Context) error {
	rev := w.position.Checkpoint.Revision
	list, err := w.list(ctx, engine.Exactly(rev))
	expired := errors.Is(err, engine.ErrExpired) // and list is nil
	if err != nil && !expired {
		return err
	}
	w.mu.Lock()
	w.trail.Resume(list, w.position.Received)
	w.mu.Unlock()
	if expired {
		return nil
	}
	w.at.Store(uint64(rev))
	w.resumed = true
	w.ready()
	if w.pipeline != nil {
		return w.pipeline.Replace(list.Items, list.Revision)
	}
	return nil
}

// restoreCounts gives a new watcher its saved counts.
func (w *watcher) restoreCounts(s WatcherPosition) {
	w.position = s
	w.delivered.Store(s.Delivered)
	w.trail.Conflated, w.trail.Disordered = s.Conflated, s.Misfits
	w.reconnects, w.relists = s.Resumed, s.Relisted
	w.breaks.Skip(s.Resumed)
	if s.Lost != nil {
		w.lost, w.failed = s.Lost, true
	}
}

// inherits reports whether the change at rev was written before the replay was continued:
// by another process, whose times are not comparable.
func (r *run) inherits(rev engine.Revision) bool {
	return r.history != nil && rev <= r.history.inherited
}
