package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/explore/internal/storage"
	"github.com/watchmill/watchmill/sim/explore/script"
	"github.com/watchmill/watchmill/sim/judge"
)

// paging is a list that is read page by page.
type paging[T any] struct {
	selected Selection[T]
	options  engine.ListOptions
	// read bounds the revision of the list, mode is how fresh it must be, and history is the one that
	// it shows.
	read    read[T]
	mode    script.ReadMode
	history *judge.History[T]
	// early is as in lastList.
	early bool
	// maker is the engine that has made the continue token.
	maker   *engine.Engine[T]
	objects []*engine.Object[T]
}

// laterPageErrors are the errors with which a page after the first may fail, which shows a past state
// and does not wait.
var laterPageErrors = []error{engine.ErrExpired, storage.ErrOutage}

// othersPageErrors are those of a page for which another engine has made the token: the cache need not be ready.
var othersPageErrors = append(slices.Clone(laterPageErrors), engine.ErrNotReady)

// newPaging returns a list by an engine in pages of limit objects. It has read none of them yet.
func (w *World[T]) newPaging(name string, by *engine.Engine[T], sel Selection[T], limit int) *paging[T] {
	p := &paging[T]{selected: sel, options: sel.list(engine.Read{}), history: w.history()}
	p.options.Limit = limit
	p.read = w.readBy(by, judge.Read[T]{Name: name, Mode: judge.ReadLatest, Oldest: w.newest()})
	w.noteBehind(&p.read)
	return p
}

// pagedModes are the modes of lists in pages. With Cached the engine shows all at once.
var pagedModes = []script.ReadMode{script.ReadLatest, script.ReadExact, script.ReadNotOlder}

// pages lists page by page with a write between two pages. All pages must show one state.
func (w *World[T]) pages(s script.Step, sel Selection[T]) {
	p := w.newPaging("pages", w.engine, sel, s.N)
	p.mode = pagedModes[rand.New(rand.NewPCG(s.Seed, 6)).IntN(len(pagedModes))]
	p.options.Read, p.read = w.newRead(w.engine, p.mode, s.Seed)
	if p.read.Name = "pages"; p.mode == script.ReadLatest {
		w.noteBehind(&p.read)
	}
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
// objects. All pages must show one state, of one history, whichever engine each is of.
func (w *World[T]) nextPage(s script.Step, sel Selection[T]) {
	p, by := w.paging, w.engineOfStep(s)
	w.paging = nil
	if p == nil {
		p = w.newPaging("next page", by, sel, s.N)
	} else {
		p.read = w.readBy(by, p.read.Read)
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
		if allowed = w.allowedErrors(p.read.by, p.mode); p.mode == script.ReadNotOlder { // storage serves pages before the cache is ready
			allowed = append(slices.Clone(allowed), storage.ErrOutage)
		}
	case p.maker != p.read.by:
		allowed = othersPageErrors
	}
	if w.seams.page != nil && opts.Continue != "" {
		opts.Continue = w.seams.page(w, p, opts.Continue)
	}
	l, err := w.list(context.Background(), p.read, opts)
	if err != nil {
		w.trace.Result(0, err)
		if !errors.Is(err, engine.ErrExpired) || p.history == w.history() && !p.early {
			w.judgeReadError(context.Background(), p.read, err, allowed)
		}
		return false
	}
	p.maker = p.read.by
	w.trace.Listed(l.Revision, len(l.Items))
	if err := w.judgePage(p, l); err != nil {
		w.fail(err)
		return false
	}
	return p.options.Continue != ""
}

// judgePage judges the next page and, if it is the last, the whole list.
func (w *World[T]) judgePage(p *paging[T], l *engine.List[T]) error {
	if err := w.judgePageTimeline(p, l); err != nil {
		return err
	}
	if p.options.Continue != "" && l.Revision != p.read.Newest || len(l.Items) > p.options.Limit {
		return judge.Failed(judge.ReadState, p.read.Name, "a page of revision %d with %d items, the first was of %d", l.Revision, len(l.Items), p.read.Newest)
	}
	if p.options.Continue == "" {
		p.read.Read = w.boundsIn(p.history, p.mode, p.read)
		if newest := p.read.Newest; l.Revision > newest {
			return judge.Failed(p.read.Mode, p.read.Name, "it is of revision %d, the newest that it may show is %d", l.Revision, newest)
		}
	}
	p.options.Read = engine.Read{} // the later pages have that of the first
	p.read.Newest, p.objects = l.Revision, append(p.objects, w.historyObjects(l.Items)...)
	p.options.Continue = l.Continue
	if l.Continue == "" && l.Remaining != 0 {
		return judge.Failed(judge.ReadState, p.read.Name, "it says that %d objects remain after the last page", l.Remaining)
	}
	if l.Continue == "" {
		return p.history.JudgeList(p.read.Read, p.selected.selects(), l.Revision, p.objects)
	}
	remaining := len(p.state(p.selected.selects())) - len(p.objects)
	if unknown := l.Remaining == -1 && p.selected.Labels+p.selected.Fields != ""; !unknown && l.Remaining != remaining {
		return judge.Failed(judge.ReadState, p.read.Name, "it says that %d objects remain, and %d do", l.Remaining, remaining)
	}
	return nil
}

// judgePageTimeline returns a failure unless the page is of a history that its engine may show now, which is that of
// the first page.
func (w *World[T]) judgePageTimeline(p *paging[T], l *engine.List[T]) error {
	of, may := w.historyOf(l), w.histories(p.read.since)
	if !slices.Contains(may, of) {
		return w.history().JudgeTimeline(p.read.Name, of)
	}
	if p.options.Continue == "" {
		p.history, p.early = of, w.rewinding
	}
	return of.JudgeTimeline(p.read.Name, p.history)
}

// state returns what selects matches of the state that the pages show.
func (p *paging[T]) state(selects func(T) bool) judge.State {
	return p.history.State(p.read.Newest, selects)
}
