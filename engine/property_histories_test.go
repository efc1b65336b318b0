package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine"
)

// TestRows153To157_RandomHistories holds random histories against versioned
// storage as plainly as it can be said:
//
//   - 153: a watch's revisions increase, after an initial state in key order;
//   - 154: what it delivers is what its selection shows of all that happened,
//     unless it says otherwise;
//   - 155: nothing up to a bookmark comes after it, everything before;
//   - 156: a list and a watch from there make every later state;
//   - 157: a linearizable read sees all that was acknowledged before;
//
// and every watch ends for exactly one reason, and nothing outlives Close. The
// judge is in property_judge_test.go.
func TestRows153To157_RandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		w.finish()
	})
}

// TestCloseAtAnyMoment closes in the middle of everything.
func TestCloseAtAnyMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		for _, r := range w.records {
			r.end = r.watch.Err()
		}
		w.judge()
		w.close()
	})
}

// readOf draws a way to read, and says which revisions it may show.
func (w *world) readOf(t *rapid.T) (read engine.Read, oldest, newest engine.Revision) {
	switch rapid.IntRange(0, 3).Draw(t, "read") {
	case 0:
		return engine.Cached(), w.engine.Revision(), w.newest()
	case 1:
		rev := engine.Revision(rapid.IntRange(1, int(w.newest())).Draw(t, "revision"))
		return engine.Exactly(rev), rev, rev
	case 2:
		rev := engine.Revision(rapid.IntRange(1, int(w.newest())).Draw(t, "revision"))
		return engine.NotOlderThan(rev), max(rev, 1), w.newest()
	}
	return engine.Latest(), w.newest(), w.newest()
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
	read, oldest, newest := w.readOf(t)
	o, err := w.engine.Get(context.Background(), key, engine.GetOptions{Read: read})
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		w.unreadable(t, err)
		return
	}
	for rev := max(oldest, 1); rev <= newest; rev++ {
		e, there := w.at(rev)[key]
		if there == (err == nil) && (!there || o.Revision == e.revision && o.Value == e.value) {
			return
		}
	}
	t.Fatalf("get %s: %v, %v is not of any revision from %d to %d", key, o, err, oldest, newest)
}

func (w *world) list(t *rapid.T) {
	want := wants[rapid.IntRange(0, len(wants)-1).Draw(t, "want")]
	opts := engine.ListOptions{Key: want.opts.Key, Prefix: want.opts.Prefix, Labels: want.opts.Labels, Fields: want.opts.Fields}
	read, oldest, newest := w.readOf(t)
	opts.Read = read
	l, err := w.engine.List(context.Background(), opts)
	if err != nil {
		w.unreadable(t, err)
		return
	}
	require.GreaterOrEqual(t, l.Revision, oldest)
	require.LessOrEqual(t, l.Revision, newest)
	w.requireState(t, l.Items, l.Revision, want)
	if rapid.Bool().Draw(t, "follow") { // row 156
		follow := want.opts
		follow.From = l.Revision
		w.start(t, &record{want: want, opts: follow})
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
	require.Equal(t, w.newest(), l.Revision)
	w.requireState(t, l.Items, l.Revision, wants[0])
}

// pages lists page by page while writes go on: all pages show one state.
func (w *world) pages(t *rapid.T) {
	want := wants[rapid.IntRange(0, len(wants)-1).Draw(t, "want")]
	opts := engine.ListOptions{
		Key: want.opts.Key, Prefix: want.opts.Prefix, Labels: want.opts.Labels, Fields: want.opts.Fields,
		Limit: rapid.IntRange(1, 3).Draw(t, "limit"),
	}
	var all []*engine.Object[thing]
	var rev engine.Revision
	for {
		l, err := w.engine.List(context.Background(), opts)
		if err != nil {
			w.unreadable(t, err)
			return
		}
		if rev != 0 {
			require.Equal(t, rev, l.Revision, "the state of the first page")
		}
		require.LessOrEqual(t, len(l.Items), opts.Limit)
		rev, all = l.Revision, append(all, l.Items...)
		if opts.Continue = l.Continue; opts.Continue == "" {
			break
		}
		w.write(t)
	}
	w.requireState(t, all, rev, want)
}

// requireState: the objects are, in key order, what want shows of the state at
// rev.
func (w *world) requireState(t *rapid.T, objects []*engine.Object[thing], rev engine.Revision, want want) {
	var got []string
	have := versions{}
	for _, o := range objects {
		require.Equal(t, w.at(rev)[o.Key].value, o.Value, "%s at %d", o.Key, rev)
		got, have[o.Key] = append(got, o.Key), o.Revision
	}
	require.Equal(t, w.view(rev, want.match), have)
	require.Equal(t, have.keys(), got, "in key order")
}
