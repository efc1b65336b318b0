package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/execution"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// judgeRestart starts an engine on empty storage after the first engine has been closed,
// as when a program without durable storage is started again. The positions of consumers of
// the first engine mean nothing to the second, even after as many writes. It must refuse a
// watch from such a position, which would otherwise miss all that lies below it.
func (w *World[T]) judgeRestart() {
	opts := memory.Options{Clock: w.clock}
	w.restarted = true
	if w.seams.restart != nil {
		opts = w.seams.restart(opts)
	}
	if err := w.playRestart(opts, w.lastPositions()); err != nil {
		w.fail(judge.Failed(judge.Refusals, "restart", "%v", err))
	}
}

// lastPositions returns the last positions of all consumers, each once, the highest first.
func (w *World[T]) lastPositions() (revisions []store.Revision) {
	for _, r := range w.started {
		if n := len(r.Claims); n > 0 && r.Claims[n-1].Revision > 0 {
			revisions = append(revisions, r.Claims[n-1].Revision)
		}
	}
	slices.Sort(revisions)
	revisions = slices.Compact(revisions)
	slices.Reverse(revisions)
	return revisions
}

// playRestart starts an engine on empty storage, writes to it, and checks that it refuses
// watches from the revisions in positions.
func (w *World[T]) playRestart(opts memory.Options, positions []store.Revision) (err error) {
	sched := execution.NewScheduler(w.scenario.Seed, w.trace)
	host, err := engine.NewHost(engine.HostConfig{Clock: w.clock, Executor: sched, Seed: w.scenario.Seed | 1})
	if err != nil {
		return err
	}
	defer func() {
		sched.Closing = true
		err = errors.Join(err, host.Close())
	}()
	b, err := memory.New(w.storage.Schema, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	c := w.cfg.Engine
	c.Host, c.Backend = host, b
	e, err := engine.New(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	draw := rand.New(rand.NewPCG(w.scenario.Seed, 5))
	for range 3 {
		if _, err := e.Put(context.Background(), w.cfg.Draw(draw)); err != nil {
			return err
		}
	}
	if err := w.judgeOldTimeline(e); err != nil {
		w.fail(err)
		return nil
	}
	for _, rev := range positions {
		if err := watchError(e, engine.WatchOptions{From: rev}); !errors.Is(err, engine.ErrExpired) {
			w.fail(judge.Failed(judge.Resumable, "restart", "a watch from %d, of before the restart, should be refused as expired: %v", rev, err))
			return nil
		}
	}
	return nil
}

// watchError returns the error with which an engine refuses a watch; nil if it does not.
func watchError[T any](e *engine.Engine[T], opts engine.WatchOptions) error {
	watch, err := e.Watch(context.Background(), opts)
	if err == nil {
		watch.Stop()
	}
	return err
}

// judgeOldTimeline returns a failure unless an engine, which has other storage than that of the last page and the
// last list, refuses to go on with them.
func (w *World[T]) judgeOldTimeline(e *engine.Engine[T]) error {
	if p := w.paging; p != nil {
		opts := p.options
		if w.seams.page != nil {
			opts.Continue = w.seams.page(w, nil, opts.Continue)
		}
		if _, err := e.List(context.Background(), opts); !errors.Is(err, engine.ErrExpired) {
			return judge.Failed(judge.OneTimeline, "restart", "a page of a list of before the restart should be refused as expired: %v", err)
		}
	}
	if l := w.lastList; l != nil {
		opts := engine.WatchOptions{From: l.revision, Timeline: l.timeline}
		if w.seams.start != nil {
			opts = w.seams.start(w, opts)
		}
		if err := watchError(e, opts); !errors.Is(err, engine.ErrExpired) {
			return judge.Failed(judge.OneTimeline, "restart", "a watch of a list of before the restart should be refused as expired: %v", err)
		}
	}
	return nil
}
