package explore

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/store"
)

// readMode is how fresh a read must be.
type readMode int

const (
	readLatest readMode = iota
	readCached
	readExact
	readNotOlder
	readModes
)

var readInvariants = [readModes]judge.Invariant{judge.ReadLatest, judge.ReadCached, judge.ReadExact, judge.ReadNotOlder}

// reading is a read about to be made: what it may show is fixed before, but for
// the newest revision, since handlers may write meanwhile.
func (w *World[T]) reading(mode readMode, seed uint64) (engine.Read, judge.Read[T]) {
	rev := 1 + store.Revision(seed%uint64(w.newest()))
	r := judge.Read[T]{Name: string(readInvariants[mode]), Mode: readInvariants[mode], Oldest: rev, Newest: rev}
	switch mode {
	case readCached:
		r.Oldest = w.engine.Revision()
		return engine.Cached(), r
	case readExact:
		return engine.Exactly(rev), r
	case readNotOlder:
		return engine.NotOlderThan(rev), r
	}
	r.Oldest = w.newest()
	return engine.Latest(), r
}

// over fixes the newest revision that a read may show, when it has returned.
func (w *World[T]) over(mode readMode, r judge.Read[T]) judge.Read[T] {
	if mode != readExact {
		r.Newest = w.newest()
	}
	return r
}

// read does a step that reads.
func (w *World[T]) read(s Step) {
	mode := readMode(s.N) % readModes
	sel := w.cfg.Selections[s.Seed%uint64(len(w.cfg.Selections))]
	switch s.Do {
	case Get:
		w.wait(s, s.For, func() { w.get(mode, s.Seed) })
	case List:
		w.wait(s, s.For, func() { w.listBy(mode, s.Seed, sel) })
	case Pages:
		w.pages(s, sel)
	case Follow:
		sel := w.cfg.Selections[s.Start.Selection%len(w.cfg.Selections)]
		if rev, ok := w.listBy(readLatest, s.Seed, sel); ok { // row 156
			start := *s.Start
			start.Options.Last = 0
			start.Back = int(w.newest()) + 1 - int(rev)
			w.open(s, s.Watch, start)
		}
	}
}

// get reads one object.
func (w *World[T]) get(mode readMode, seed uint64) {
	keys := w.history().Keys()
	if len(keys) == 0 {
		return
	}
	key := keys[seed%uint64(len(keys))]
	read, r := w.reading(mode, seed)
	o, err := w.engine.Get(context.Background(), key, engine.GetOptions{Read: read})
	var rev store.Revision
	if o != nil {
		rev = o.Revision
	}
	w.trace.result(rev, err)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		w.unreadable(r, err)
		return
	}
	if err := w.history().JudgeGet(w.over(mode, r), key, o); err != nil {
		w.fail(err)
	}
}

// listBy reads everything that a selection shows, and returns the revision.
func (w *World[T]) listBy(mode readMode, seed uint64, sel Selection[T]) (store.Revision, bool) {
	read, r := w.reading(mode, seed)
	l, err := w.engine.List(context.Background(), sel.list(read))
	if err != nil {
		w.trace.result(0, err)
		w.unreadable(r, err)
		return 0, false
	}
	w.trace.listed(l.Revision, len(l.Items))
	if err := w.history().JudgeList(w.over(mode, r), sel.selects(), l.Revision, l.Items); err != nil {
		w.fail(err)
	}
	return l.Revision, true
}

// pages lists page by page while writes go on: all pages show one state.
func (w *World[T]) pages(s Step, sel Selection[T]) {
	opts := sel.list(engine.Read{})
	opts.Limit = s.N
	var all []*engine.Object[T]
	r := judge.Read[T]{Name: "pages", Mode: judge.ReadLatest, Oldest: w.newest()}
	for pages := 1; ; pages++ {
		l, err := w.engine.List(context.Background(), opts)
		if err != nil {
			w.trace.result(0, err)
			w.unreadable(r, err)
			return
		}
		w.trace.listed(l.Revision, len(l.Items))
		if len(all) > 0 && l.Revision != r.Newest || len(l.Items) > opts.Limit {
			w.fail(judge.Failed(judge.ReadState, r.Name, "a page of revision %d with %d items, the first was of %d", l.Revision, len(l.Items), r.Newest))
			return
		}
		r.Newest, all = l.Revision, append(all, l.Items...)
		if opts.Continue = l.Continue; opts.Continue == "" {
			break
		}
		if objects := len(w.history().State(r.Newest, everything[T])); pages > objects {
			w.fail(judge.Failed(judge.ReadState, r.Name, "there are more than %d pages of %d objects", pages, objects))
			return
		}
		s.Seed++
		w.write(Step{Do: Write, Seed: s.Seed})
	}
	if err := w.history().JudgeList(r, sel.selects(), r.Newest, all); err != nil {
		w.fail(err)
	}
}

// unreadable: a read may fail only because history is gone, or the cache is not
// there and cannot be waited for.
func (w *World[T]) unreadable(r judge.Read[T], err error) {
	for _, excuse := range []error{engine.ErrExpired, engine.ErrNotReady, engine.ErrIdle, engine.ErrFuture, errOutage} {
		if errors.Is(err, excuse) {
			return
		}
	}
	if w.closing && errors.Is(err, engine.ErrEngineClosed) {
		return
	}
	w.fail(judge.Failed(judge.Refusals, r.Name, "%v", err))
}
