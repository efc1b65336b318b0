package engine_test

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/judge"
)

// readOf draws a way to read, and says what it may show. Nothing is written
// before the read returns.
func (w *world) readOf(t *rapid.T) (engine.Read, judge.Read[thing]) {
	may := func(mode judge.Invariant, oldest, newest engine.Revision) judge.Read[thing] {
		return judge.Read[thing]{Name: string(mode), Mode: mode, Oldest: oldest, Newest: newest}
	}
	switch rapid.IntRange(0, 3).Draw(t, "read") {
	case 0:
		return engine.Cached(), may(judge.ReadCached, w.engine.Revision(), w.newest())
	case 1:
		rev := engine.Revision(rapid.IntRange(1, int(w.newest())).Draw(t, "revision"))
		return engine.Exactly(rev), may(judge.ReadExact, rev, rev)
	case 2:
		rev := engine.Revision(rapid.IntRange(1, int(w.newest())).Draw(t, "revision"))
		return engine.NotOlderThan(rev), may(judge.ReadNotOlder, rev, w.newest())
	}
	return engine.Latest(), may(judge.ReadLatest, w.newest(), w.newest())
}

// unreadable: a read may fail only because history is gone, or the cache is not
// there and the backend does not answer.
func (w *world) unreadable(t *rapid.T, err error) {
	for _, excuse := range []error{engine.ErrExpired, engine.ErrNotReady, engine.ErrIdle, errOutage} {
		if errors.Is(err, excuse) {
			return
		}
	}
	t.Fatalf("read: %v", err)
}

func (w *world) get(t *rapid.T) {
	key := rapid.SampledFrom(keys).Draw(t, "key")
	read, may := w.readOf(t)
	o, err := w.engine.Get(context.Background(), key, engine.GetOptions{Read: read})
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		w.unreadable(t, err)
		return
	}
	require.NoError(t, w.history.JudgeGet(may, key, o))
}

func (w *world) list(t *rapid.T) {
	want := drawWant(t)
	read, may := w.readOf(t)
	l, err := w.engine.List(context.Background(), want.list(read))
	if err != nil {
		w.unreadable(t, err)
		return
	}
	require.NoError(t, w.history.JudgeList(may, want.match, l.Revision, l.Items))
	if rapid.Bool().Draw(t, "follow") { // row 156
		follow := newRecord(want)
		follow.Options.From = l.Revision
		w.start(t, follow)
	}
}

// latest reads linearizably while the engine is in the middle of something: row
// 157.
func (w *world) latest(t *rapid.T) {
	w.write(t)
	l, err := w.engine.List(context.Background(), engine.ListOptions{})
	if err != nil {
		w.unreadable(t, err)
		return
	}
	may := judge.Read[thing]{Name: "latest", Mode: judge.ReadLatest, Oldest: w.newest(), Newest: w.newest()}
	require.NoError(t, w.history.JudgeList(may, wants[0].match, l.Revision, l.Items))
}

// pages lists page by page while writes go on: all pages show one state, that at
// the start.
func (w *world) pages(t *rapid.T) {
	want := drawWant(t)
	opts := want.list(engine.Latest())
	opts.Limit = rapid.IntRange(1, 3).Draw(t, "limit")
	may := judge.Read[thing]{Name: "pages", Mode: judge.ReadLatest, Oldest: w.newest(), Newest: w.newest()}
	var all []*engine.Object[thing]
	for {
		l, err := w.engine.List(context.Background(), opts)
		if err != nil {
			w.unreadable(t, err)
			return
		}
		require.Equal(t, may.Newest, l.Revision, "the state of the first page")
		require.LessOrEqual(t, len(l.Items), opts.Limit)
		all = append(all, l.Items...)
		if opts.Continue = l.Continue; opts.Continue == "" {
			break
		}
		w.write(t)
	}
	require.NoError(t, w.history.JudgeList(may, want.match, may.Newest, all))
}
