package world

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// saveCheckpoint lets the consumer of a watch save where it is. It does not where it may have learned that from
// storage before that has gone back: an engine cannot know that.
func (w *World[T]) saveCheckpoint(r *watch[T], rev store.Revision) {
	if r.history != w.history() || r.ambiguous || w.rewinding || w.closing {
		return
	}
	c, err := w.engineOf(r).Checkpoint(context.Background(), rev)
	if err != nil {
		w.fail(judge.Failed(judge.Refusals, r.Name, "its checkpoint: %v", err))
		return
	}
	r.checkpoint, r.checkpointed = c, w.history()
}

// judgeCheckpoint fails the world unless each engine takes the checkpoint of a consumer for its revision, or refuses
// it if storage has gone back since. One with a cache may take it until it has noticed that.
func (w *World[T]) judgeCheckpoint(r *watch[T]) {
	if r.checkpointed == nil {
		return
	}
	for _, e := range []*engine.Engine[T]{w.engine, w.uncached} {
		if e == nil {
			continue
		}
		rev, err := w.revisionOf(e, r.checkpoint)
		switch same := r.checkpointed == w.history(); {
		case same && (err != nil || rev != r.checkpoint.Revision):
			w.fail(judge.Failed(judge.Refusals, r.Name, "its checkpoint %v stands for %d: %v", r.checkpoint, rev, err))
		case w.unnoticed() && e == w.engine && err == nil && rev == r.checkpoint.Revision:
		case !same && !errors.Is(err, engine.ErrForeignCheckpoint):
			w.fail(judge.Failed(judge.OneTimeline, r.Name, "its checkpoint %v is of storage that has gone back since, and stands for %d: %v", r.checkpoint, rev, err))
		}
	}
}

// revisionOf returns the revision for which an engine takes a checkpoint, or the error.
func (w *World[T]) revisionOf(e *engine.Engine[T], c engine.Checkpoint) (store.Revision, error) {
	if w.seams.revisionOf != nil {
		return w.seams.revisionOf(c)
	}
	return e.RevisionOf(context.Background(), c)
}
