package bolt_test

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/journaltest"
)

// writing is a write that must succeed if the disk works: do writes, and apply changes the
// model.
type writing struct {
	do    func() (*store.Object, error)
	apply func() *store.Object
	floor store.Revision // that it raises the floor to, zero if it does not
}

// writing returns a write of some kind. What cannot be removed or compacted is put.
func (p *played) writing(verb, key string, a, b int) writing {
	text, prev, now := fmt.Sprint("text-", a%4), p.objects[key], p.clock.Now()
	switch {
	case verb == "remove" && prev != nil:
		return writing{
			do:    func() (*store.Object, error) { return p.shown.Remove(p.ctx, at(key, prev.Revision)) },
			apply: func() *store.Object { return p.remove(key, now) },
		}
	case verb == "emit":
		return writing{
			do:    func() (*store.Object, error) { return p.shown.Emit(p.ctx, draft(key, text)) },
			apply: func() *store.Object { return p.emit(key, text, now) },
		}
	case verb == "compact" && p.revision > p.oldest:
		floor := p.oldest + 1 + store.Revision(a)%(p.revision-p.oldest)
		return writing{
			do:    func() (*store.Object, error) { return nil, p.shown.Compact(p.ctx, floor) },
			apply: func() *store.Object { p.oldest = max(p.oldest, floor); return nil },
			floor: floor,
		}
	}
	opts := []backend.PutOptions{{}, {}, {TTL: time.Second}, {TTL: time.Minute}, {TTL: 90 * time.Minute}, {KeepExpiry: true}}[b%6]
	var over *store.Object
	if prev != nil {
		over = at(key, prev.Revision)
	}
	expires := opts.Expires(now, prev)
	return writing{
		do:    func() (*store.Object, error) { return p.shown.Put(p.ctx, draft(key, text), over, opts) },
		apply: func() *store.Object { return p.put(key, text, now, expires) },
	}
}

// at is an object of which only the key and the revision are known.
func at(key string, revision store.Revision) *store.Object {
	return &store.Object{Key: key, Revision: revision}
}

// write writes, and checks that this succeeds unless the disk has failed.
func (p *played) write(w writing) {
	p.Helper()
	o, err := w.do()
	if p.failed {
		require.ErrorIs(p, err, backend.ErrFailed)
		require.False(p, backend.Uncertain(err))
		return
	}
	require.NoError(p, err)
	require.Equal(p, describe(w.apply()), describe(o))
	p.settle()
}

// writeStale writes over a revision that is not the object's.
func (p *played) writeStale(key string, expect store.Revision) {
	p.Helper()
	current := p.objects[key]
	if expect == 0 && current == nil || current != nil && current.Revision == expect {
		return
	}
	var over *store.Object
	if expect != 0 {
		over = at(key, expect)
	}
	_, err := p.shown.Put(p.ctx, draft(key, "stale"), over, backend.PutOptions{})
	var conflict *backend.ConflictError
	require.ErrorAs(p, err, &conflict)
	require.Equal(p, describe(current), describe(conflict.Current))
	conflict.Current = current
	require.Equal(p, &backend.ConflictError{Key: key, Expected: expect, Current: current}, conflict)
}

// writeOnAFullDisk writes where there is no space: history that need not be kept makes some,
// or nothing is written.
func (p *played) writeOnAFullDisk(w writing) {
	p.Helper()
	p.disk.Add(journaltest.Fault{Err: p.diskFull()})
	o, err := w.do()
	if err == nil {
		require.Equal(p, describe(w.apply()), describe(o))
	} else {
		require.ErrorIs(p, err, backend.ErrFull)
		require.False(p, backend.Uncertain(err))
	}
	p.settle()
}

// writeOnAFailingDisk writes where the disk fails, before it has the write or after.
func (p *played) writeOnAFailingDisk(w writing, phase journaltest.Phase) {
	p.Helper()
	p.disk.Add(journaltest.Fault{Phase: phase, Err: p.diskFailed()})
	_, err := w.do()
	require.ErrorIs(p, err, backend.ErrFailed)
	require.True(p, backend.Uncertain(err))
	p.failed = true
	if phase == journaltest.After {
		p.hidden, p.hiddenFloor = func() { w.apply() }, w.floor
	}
}

func (p *played) compact(to store.Revision) {
	p.Helper()
	switch err := p.shown.Compact(p.ctx, to); {
	case to > p.revision:
		require.ErrorIs(p, err, store.ErrFuture)
	case p.failed && to > p.oldest:
		require.ErrorIs(p, err, backend.ErrFailed)
	default:
		require.NoError(p, err)
		p.oldest = max(p.oldest, to)
	}
	p.settle()
}

func (p *played) get(key string) {
	p.Helper()
	o, err := p.shown.Get(p.ctx, key)
	if p.objects[key] == nil {
		require.ErrorIs(p, err, store.ErrNotFound)
		return
	}
	require.NoError(p, err)
	require.Equal(p, describe(p.objects[key]), describe(o))
}

// listed is a list, or what is left of one: the pages behind a key, with the token for them.
type listed struct {
	revision      store.Revision
	prefix, after string
	limit         int
	token         string
}

// list reads a page, and keeps the token for the next.
func (p *played) list(of listed) {
	p.Helper()
	opts := backend.ListOptions{Prefix: of.prefix, Revision: of.revision, Limit: of.limit, Continue: of.token}
	if of.token != "" {
		opts.Revision = 0
	}
	l, err := p.shown.List(p.ctx, opts)
	if !p.reaches(of.revision, err) {
		if expired := (*backend.ExpiredContinueError)(nil); of.token != "" {
			require.ErrorAs(p, err, &expired)
		}
		return
	}
	if of.revision == 0 {
		of.revision = p.revision
	}
	want := p.listed(of.revision, of.prefix, of.after)
	more := 0
	if of.limit > 0 && len(want) > of.limit {
		more = len(want) - of.limit
		want = want[:of.limit]
	}
	require.Equal(p, of.revision, l.Revision)
	require.Equal(p, want, describeAll(l.Items), "at %d", of.revision)
	require.Equal(p, more, l.Remaining)
	require.Equal(p, more > 0, l.Continue != "")
	if more > 0 {
		of.after, of.token = l.Items[len(l.Items)-1].Key, l.Continue
		p.lists = append(p.lists, of)
	}
}

// reaches checks the error of a call for a revision, and reports whether the history has it.
func (p *played) reaches(revision store.Revision, err error) bool {
	p.Helper()
	switch {
	case revision > p.revision:
		require.ErrorIs(p, err, store.ErrFuture)
	case revision != 0 && revision < p.oldest:
		require.ErrorIs(p, err, store.ErrExpired)
	case revision != 0 && revision < p.hiddenFloor && err != nil:
		require.ErrorIs(p, err, store.ErrExpired) // what the file has of a compaction that failed
	default:
		require.NoError(p, err)
		return true
	}
	return false
}

// watched is a watch that has read up to a revision.
type watched struct {
	backend.Watcher
	through  store.Revision
	prefix   string
	noPrev   bool
	notified chan struct{}
}

func (p *played) watch(from store.Revision, prefix string, noPrev bool) *watched {
	p.Helper()
	w := &watched{through: from, prefix: prefix, noPrev: noPrev, notified: make(chan struct{}, 1)}
	var err error
	w.Watcher, err = p.shown.Watch(p.ctx, backend.WatchOptions{From: from, Prefix: prefix, NoPrev: noPrev, Notify: func() {
		select {
		case w.notified <- struct{}{}:
		default:
		}
	}})
	if !p.reaches(from, err) {
		return nil
	}
	if from == 0 {
		w.through = p.revision
	}
	p.watches = append(p.watches, w)
	return w
}

// read reads until there are events, or the watch has caught up or ended.
func (p *played) read(w *watched, limit int) {
	p.Helper()
	for {
		batch, err := w.Next(limit)
		if err != nil || w.through < p.oldest {
			require.ErrorIs(p, err, store.ErrExpired)
			require.Less(p, w.through, p.oldest)
			p.end(w)
			return
		}
		require.Equal(p, w.through, batch.After)
		require.LessOrEqual(p, len(batch.Events), limit)
		require.LessOrEqual(p, batch.Through, p.revision)
		var told []string
		for _, ev := range batch.Events {
			told = append(told, tellOf(ev, w.noPrev))
		}
		require.Equal(p, p.told(w.through, batch.Through, w.prefix, w.noPrev), told)
		w.through = batch.Through
		if len(told) > 0 || p.caughtUp(w) {
			return
		}
		select {
		case <-w.notified:
		case <-time.After(time.Minute):
			require.Fail(p, "not notified", "at revision %d of %d", w.through, p.revision)
		}
	}
}

func (p *played) caughtUp(w *watched) bool { return w.through == p.revision }

// end closes a watch.
func (p *played) end(w *watched) {
	w.Close()
	for i, other := range p.watches {
		if other == w {
			p.watches = append(p.watches[:i], p.watches[i+1:]...)
			return
		}
	}
}
