package load

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/scenario"
)

// asked is a read that is about to be made.
type asked struct {
	read engine.Read
	// Read says how its result is judged.
	judge.Read[content.Item]
	// known is the newest write that was stored before; the zero Entry if there is none.
	known judge.Entry
}

// ask returns the next read, as fresh as the group's must be.
func (rd *reader) ask() asked {
	known, written := rd.run.ledger.Newest()
	a := asked{engine.Latest(), judge.Read[content.Item]{Name: rd.group.name, Mode: judge.ReadLatest, Oldest: known.Revision}, known}
	switch mode := rd.spec.Mode; {
	case mode == scenario.Cached:
		a.read, a.Mode, a.Oldest = engine.Cached(), judge.ReadCached, rd.run.engine.Revision()
	case mode == scenario.NotOlder && written:
		a.read, a.Mode = engine.NotOlderThan(known.Revision), judge.ReadNotOlder
	case mode == scenario.Exact && written:
		a.read, a.Mode, a.Newest = engine.Exactly(known.Revision), judge.ReadExact, known.Revision
	}
	return a
}

// readOne makes a read, and returns what judges its result.
func (rd *reader) readOne(ctx context.Context) (check func(), err error) {
	defer func() { rd.next += rd.spec.Count }()
	if rd.spec.Op == scenario.Get {
		return rd.get(ctx, rd.run.plan.Objects.Key(rd.rand.IntN(rd.run.plan.Objects.Count)))
	}
	return rd.list(ctx, rd.run.plan.SelectRead(*rd.spec, rd.next))
}

// unjudged judges a read that has failed.
func unjudged() {}

// get reads one object.
func (rd *reader) get(ctx context.Context, key string) (check func(), err error) {
	a := rd.ask()
	o, err := rd.run.engine.Get(ctx, key, engine.GetOptions{Read: a.read})
	if err != nil && !errors.Is(err, engine.ErrNotFound) { // which is also a valid result
		return unjudged, err
	}
	return func() { rd.group.breaks(a.judgeGet(key, o)) }, nil
}

// judgeGet judges the result of reading key, nil for none. Whether that is older than it may be
// shows only if the newest write before the read was of that key.
func (a *asked) judgeGet(key string, o *engine.Object[content.Item]) error {
	switch wrote := a.known.Key == key && !a.known.Emitted; {
	case o != nil && o.Key != key:
		return judge.Failed(judge.ReadState, a.Name, "it was to read %q, and has read %q", key, o.Key)
	case o != nil && a.Newest > 0 && o.Revision > a.Newest:
		return judge.Failed(a.Mode, a.Name, "%q as of %d was not there at revision %d", key, o.Revision, a.Newest)
	case !wrote || a.Mode == judge.ReadCached:
		return nil
	case o != nil && o.Revision < a.known.Revision:
		return judge.Failed(a.Mode, a.Name, "it has %q as of %d, which had been changed at %d", key, o.Revision, a.known.Revision)
	case o == nil && a.Mode == judge.ReadExact && !a.known.Deleted:
		return judge.Failed(a.Mode, a.Name, "it has not found %q, which was there at %d", key, a.known.Revision)
	}
	return nil
}

// list lists a selection, page by page.
func (rd *reader) list(ctx context.Context, sel scenario.Selection) (check func(), err error) {
	a := rd.ask()
	opts := engine.ListOptions{Labels: sel.Labels, Fields: sel.Fields, Prefix: sel.Prefix, Limit: rd.spec.Limit, Read: a.read}
	keep := rd.group.sample.Keeps(sel)
	var pages []*engine.List[content.Item]
	for {
		page, err := rd.run.engine.List(ctx, opts)
		if err != nil {
			return unjudged, err
		}
		opts.Continue, opts.Read = page.Continue, engine.Read{}
		if !keep {
			page = &engine.List[content.Item]{Revision: page.Revision} // its objects may go
		}
		pages = append(pages, page)
		if opts.Continue == "" {
			return func() { rd.judgeList(sel, a, pages, keep) }, nil
		}
	}
}

// judgeList judges a list: its revision or, if it is to be kept, all that is in it, which for a large
// list takes longer than the list itself.
func (rd *reader) judgeList(sel scenario.Selection, a asked, pages []*engine.List[content.Item], keep bool) {
	l := judge.Listing[content.Item]{Read: a.Read}
	if keep && a.Mode != judge.ReadCached { // which has no limit
		l.Limit = rd.spec.Limit
	}
	for _, page := range pages {
		if err := l.Page(page); err != nil {
			rd.group.breaks(err)
			return
		}
	}
	if keep {
		rd.group.sample.Keep(sel, l)
	}
}

// judgeReads compares the lists that were kept with the states at their revisions.
func (r *run) judgeReads() {
	for _, g := range r.callers {
		for sel, lists := range g.sample.All() {
			for i := range lists {
				g.breaks(lists[i].Judge(r.expected, judge.Selection(sel)))
			}
		}
	}
}
