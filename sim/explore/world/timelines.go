package world

import (
	"context"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// A client can go on with a list, by a watch or by the next page, and names the list's
// timeline. If storage has gone back since, it must be refused, whatever the revisions are:
// they may have other content.
//
//	List, Follow ─▶ revision and timeline ──▶ WatchLastList ─▶ a watch of that timeline, or
//	                                            │               ErrExpired
//	                                         Resume ─▶ as well
//	NextPage ─▶ a page, and a token ────────▶ NextPage ─▶ a page of that timeline, or ErrExpired
//	                     ▲
//	       Rewind, Rewrite: another timeline

// lastList is what a client knows of a list that it goes on with.
type lastList[T any] struct {
	selection int
	uncached  bool
	revision  store.Revision
	timeline  engine.Timeline
	// history is the one that the list showed. early: the engine may not have noticed yet that storage had
	// gone back, so that it refuses what continues the list afterwards, even if that is of storage itself.
	history *judge.History[T]
	early   bool
}

// remember makes l the last list. A nil l, of a list that failed, leaves the last one as it
// is.
func (w *World[T]) remember(selection int, uncached bool, l *engine.List[T]) {
	if l != nil {
		w.lastList = &lastList[T]{
			selection: selection, uncached: uncached && w.uncached != nil, revision: l.Revision, timeline: l.Timeline,
			history: w.historyOf(l), early: w.rewinding,
		}
	}
}

// follow lists and starts a watch at the list's revision, in half of the cases with its
// timeline.
func (w *World[T]) follow(s script.Step) {
	selection := s.Start.Selection % len(w.cfg.Selections)
	l := w.listBy(context.Background(), w.engine, script.ReadLatest, s.Seed, w.cfg.Selections[selection])
	if l == nil {
		return
	}
	w.remember(selection, false, l)
	start := *s.Start
	start.Options.Last, start.Options.From, start.Back = 0, l.Revision, 0
	r := w.watchOf(s.Watch, start)
	if s.Seed%2 == 0 {
		r.requireTimeline(w.lastList)
	}
	w.begin(s, r)
}

// watchLastList starts a watch at the revision and the timeline of the last list, if there
// is one.
func (w *World[T]) watchLastList(s script.Step) {
	l := w.lastList
	if l == nil {
		return
	}
	start := *s.Start
	start.Selection, start.Uncached, start.Back = l.selection, l.uncached, 0
	start.Options.Last, start.Options.From = 0, l.revision
	if start.Uncached && start.Options.Policy == engine.Conflate { // which needs the cache
		start.Options.Policy = engine.Park
	}
	r := w.watchOf(s.Watch, start)
	r.requireTimeline(l)
	w.begin(s, r)
}

// requireTimeline makes a watch that is not started yet require the timeline of l, none for
// nil.
func (r *watch[T]) requireTimeline(l *lastList[T]) {
	r.continues = l
	if l != nil {
		r.Options.Timeline, r.Continues = l.timeline, l.history
	}
}

// isOfTimeline reports whether a watch requires the present timeline of its engine, or none. Only storage
// that goes back begins another one: lists that replace lost events do not.
func (w *World[T]) isOfTimeline(r *watch[T]) bool {
	l := r.continues
	return l == nil || l.history == w.history() && !l.early
}
