package world

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
)

// paging is a list that is read page by page.
type paging[T any] struct {
	selected Selection[T]
	options  engine.ListOptions
	// read bounds the revision of the list, and history is the one that it shows. The engine
	// had listed again as often as relists says when it returned the first page.
	read    read[T]
	history *judge.History[T]
	relists uint64
	objects []*engine.Object[T]
}

// laterPageErrors are the errors with which a page after the first may fail, which shows a past state
// and does not wait.
var laterPageErrors = []error{engine.ErrExpired, storage.ErrOutage}

// newPaging returns a list by an engine in pages of limit objects, of which none is read yet.
func (w *World[T]) newPaging(name string, by *engine.Engine[T], sel Selection[T], limit int) *paging[T] {
	p := &paging[T]{selected: sel, options: sel.list(engine.Read{}), history: w.history()}
	p.options.Limit = limit
	p.read = w.readBy(by, judge.Read[T]{Name: name, Mode: judge.ReadLatest, Oldest: w.newest()})
	return p
}

// pages lists page by page with a write between two pages. All pages must show one state.
func (w *World[T]) pages(s script.Step, sel Selection[T]) {
	p := w.newPaging("pages", w.engine, sel, s.N)
	for pages := 1; w.turnPage(p); pages++ {
		if objects := len(p.state(everything[T])); pages > objects {
			w.fail(judge.Failed(judge.ReadState, p.read.Name, "there are more than %d pages of %d objects", pages, objects))
			return
		}
		s.Seed++
		w.write(script.Step{Do: script.Write, Seed: s.Seed})
	}
}

// nextPage lists the next page of a list or, if none has more, the first page of one, of N
// objects. All pages must show one state, of one history.
func (w *World[T]) nextPage(s script.Step, sel Selection[T]) {
	p := w.paging
	if w.paging = nil; p == nil {
		p = w.newPaging("next page", w.engineOfStep(s), sel, s.N)
	}
	if w.turnPage(p) {
		w.paging = p
	}
}

// turnPage lists the next page and judges it and, if it is the last, the whole list. It reports
// whether there are more.
func (w *World[T]) turnPage(p *paging[T]) (more bool) {
	opts, allowed := p.options, laterPageErrors
	switch {
	case opts.Continue == "":
		allowed = w.allowedErrors(p.read.by, script.ReadLatest)
	case w.seams.page != nil:
		opts.Continue = w.seams.page(opts.Continue)
	}
	l, err := w.list(context.Background(), p.read, opts)
	if err != nil {
		w.trace.Result(0, err)
		if !errors.Is(err, engine.ErrExpired) || w.goesOn(p) {
			w.judgeReadError(context.Background(), p.read, err, allowed)
		}
		return false
	}
	if opts.Continue == "" {
		p.relists = w.engine.Stats().Relists
	}
	w.trace.Listed(l.Revision, len(l.Items))
	if err := w.judgePage(p, l); err != nil {
		w.fail(err)
		return false
	}
	return p.options.Continue != ""
}

// goesOn reports whether the timeline of a list is certainly still that of its engine.
func (w *World[T]) goesOn(p *paging[T]) bool {
	return p.history == w.history() && (p.read.by != w.engine || p.relists == w.engine.Stats().Relists)
}

// judgePage judges the next page and, if it is the last, the whole list.
func (w *World[T]) judgePage(p *paging[T], l *engine.List[T]) error {
	if err := w.history().JudgeTimeline(p.read.Name, p.history); err != nil {
		return err
	}
	if p.options.Continue != "" && l.Revision != p.read.Newest || len(l.Items) > p.options.Limit {
		return judge.Failed(judge.ReadState, p.read.Name, "a page of revision %d with %d items, the first was of %d", l.Revision, len(l.Items), p.read.Newest)
	}
	p.read.Newest, p.objects = l.Revision, append(p.objects, w.historyObjects(l.Items)...)
	if p.options.Continue = l.Continue; l.Continue == "" {
		return p.history.JudgeList(p.read.Read, p.selected.selects(), l.Revision, p.objects)
	}
	remaining := len(p.state(p.selected.selects())) - len(p.objects)
	if unknown := l.Remaining == -1 && p.selected.Labels+p.selected.Fields != ""; !unknown && l.Remaining != remaining {
		return judge.Failed(judge.ReadState, p.read.Name, "it says that %d objects remain, and %d do", l.Remaining, remaining)
	}
	return nil
}

// state returns what selects matches of the state that the pages show.
func (p *paging[T]) state(selects func(T) bool) judge.State {
	return p.history.State(p.read.Newest, selects)
}
