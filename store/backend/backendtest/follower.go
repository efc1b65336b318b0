package backendtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/tree"
)

// follower reads a watch as a consumer does, and checks everything that does not depend
// on what was written.
type follower struct {
	*fixture
	watcher backend.Watcher
	prefix  string
	// notified has a token after a notification.
	notified chan struct{}
	// limit is what Next is called with.
	limit int
	// noPrev: the watch may leave out the state before each event.
	noPrev bool

	started bool
	// through and state are those of the last batch.
	through store.Revision
	state   *tree.View
}

// follow watches the keys under prefix after revision from.
func (x *fixture) follow(prefix string, from store.Revision) *follower {
	x.Helper()
	return x.followBy(backend.WatchOptions{Prefix: prefix, From: from})
}

// followBy watches with the options, and sets their Notify.
func (x *fixture) followBy(opts backend.WatchOptions) *follower {
	x.Helper()
	prefix, from := opts.Prefix, opts.From
	f := &follower{fixture: x, prefix: prefix, notified: make(chan struct{}, 1), limit: 100}
	opts.Notify = f.notify
	w, err := x.Backend.Watch(x.ctx, opts)
	require.NoError(x, err, "Watch %q from revision %d", prefix, from)
	f.watcher = w
	if from != 0 {
		f.started, f.through = true, from
	}
	return f
}

// notify is the watch's Notify: it adds a token, unless there is one.
func (f *follower) notify() {
	select {
	case f.notified <- struct{}{}:
	default:
	}
}

// until reads until everything up to rev is delivered, and returns the events.
func (f *follower) until(rev store.Revision) []event {
	f.Helper()
	var events []event
	f.eachBatch(rev, func(batch backend.Batch) { events = append(events, batch.Events...) })
	return events
}

// eachBatch reads until everything up to rev is delivered.
func (f *follower) eachBatch(rev store.Revision, do func(backend.Batch)) {
	f.Helper()
	for !f.started || f.through < rev {
		batch := f.next()
		do(batch)
		if len(batch.Events) == 0 && f.through < rev {
			f.await()
		}
	}
}

// rebuilds reads until everything up to rev is delivered, and applies it to state, which must be
// the state of each batch that has one. It calls given after such a batch.
func (f *follower) rebuilds(state map[string]string, rev store.Revision, given func()) {
	f.Helper()
	f.eachBatch(rev, func(batch backend.Batch) {
		replay(state, batch.Events)
		if batch.State != nil {
			require.Equal(f, state, described(batch.State.AppendTo(nil, "")), "at revision %d", batch.Through)
			given()
		}
	})
}

// drain reads until there are no more events.
func (f *follower) drain() (events []event) {
	f.Helper()
	for {
		batch := f.next()
		if len(batch.Events) == 0 {
			return events
		}
		events = append(events, batch.Events...)
	}
}

// await waits for the notification that an empty batch promises.
func (f *follower) await() {
	f.Helper()
	patience := time.NewTimer(f.Patience)
	defer patience.Stop()
	select {
	case <-f.notified:
	case <-patience.C:
		require.Fail(f, "Notify was not called", "after an empty batch through revision %d, within %v", f.through, f.Patience)
	}
}

// next reads one batch and checks it.
func (f *follower) next() backend.Batch {
	f.Helper()
	batch, err := f.watcher.Next(f.limit)
	require.NoError(f, err, "Next")
	f.checkLength(batch)
	if f.started {
		require.Equal(f, f.through, batch.After, "the batch must start where the one before ended (or the watch began)")
	}
	require.GreaterOrEqual(f, batch.Through, batch.After, "a batch cannot go back")
	if f.prefix == "" && f.Backend.Traits().Contiguous {
		require.Equal(f, int(batch.Through-batch.After), len(batch.Events), "revisions are said to be contiguous, but not all in (%d, %d] came", batch.After, batch.Through)
	}
	f.checkAll(batch)
	f.started, f.through, f.state = true, batch.Through, batch.State
	return batch
}

// checkLength checks that a batch is not longer than requested, except for the rest of a
// revision, which must not be split.
func (f *follower) checkLength(batch backend.Batch) {
	f.Helper()
	n, limit := len(batch.Events), max(1, f.limit) // less than one counts as one
	if n > limit && !f.Backend.Traits().Contiguous {
		last := batch.Events[n-1].Revision
		for n > 0 && batch.Events[n-1].Revision == last {
			n--
		}
		require.Less(f, n, limit, "Next(%d) returned more events than asked for", f.limit)
		return
	}
	require.LessOrEqual(f, n, limit, "Next(%d) returned more events than asked for", f.limit)
}

// checkAll checks the order, the keys and the form of the events.
func (f *follower) checkAll(batch backend.Batch) {
	f.Helper()
	last, key := batch.After, ""
	for _, ev := range batch.Events {
		f.checkOrder(ev, last, key)
		require.True(f, store.HasPrefix(ev.Key(), f.prefix), "%v is not under the prefix %q", ev, f.prefix)
		f.check(ev)
		last, key = ev.Revision, ev.Key()
	}
	require.GreaterOrEqual(f, batch.Through, last, "the batch has events beyond its Through")
}

// checkOrder checks that an event is newer than the one before it, or of the same
// revision and with a greater key, where storage may have several changes at one.
func (f *follower) checkOrder(ev event, last store.Revision, key string) {
	f.Helper()
	if ev.Revision == last && key != "" && !f.Backend.Traits().Contiguous {
		require.Greater(f, ev.Key(), key, "%v after %q: events of one revision must be in key order, a key once", ev, key)
		return
	}
	require.Greater(f, ev.Revision, last, "%v after revision %d: each event must be newer than the one before", ev, last)
}

// check checks that the event is well formed.
func (f *follower) check(ev event) {
	f.Helper()
	require.NotNil(f, ev.Object, "%v has no object", ev)
	require.Equal(f, ev.Revision, ev.Object.Revision, "%v: its object must have its revision", ev)
	switch ev.Type {
	case store.Added:
		require.Nil(f, ev.Prev, "%v: there was nothing before", ev)
		require.Equal(f, ev.Revision, ev.Object.Created, "%v: it was created now", ev)
	case store.Modified, store.Deleted:
		if f.noPrev && ev.Prev == nil {
			return
		}
		require.NotNil(f, ev.Prev, "%v: the state before is missing", ev)
		require.Equal(f, ev.Key(), ev.Prev.Key, "%v: Prev is of another key", ev)
		require.Less(f, ev.Prev.Revision, ev.Revision, "%v: Prev is not older", ev)
		require.Equal(f, ev.Prev.Created, ev.Object.Created, "%v: a change must not change when it was created", ev)
	case store.Emitted:
		require.Nil(f, ev.Prev, "%v is not state, so it has no previous one", ev)
	default:
		require.Fail(f, "unknown event type", "%v", ev)
	}
	if ev.Type == store.Deleted {
		last := schema.Gone(ev.Prev, ev.Revision, ev.Object.Written)
		require.Equal(f, store.As[Item](last).Value, store.As[Item](ev.Object).Value, "%v must carry the last state", ev)
	}
}

// sees checks that exactly these events come next, and nothing after them.
func (f *follower) sees(want ...event) {
	f.Helper()
	if len(want) > 0 {
		require.Equal(f, texts(want), texts(f.until(want[len(want)-1].Revision)))
	}
	require.Empty(f, texts(f.drain()), "there must be no more events")
}

// texts prints each event with its states.
func texts(events []event) []string {
	out := make([]string, 0, len(events))
	for _, ev := range events {
		out = append(out, ev.String()+" "+describe(ev.Object)+" was "+describe(ev.Prev))
	}
	return out
}

func added(o *object) event { return event{Type: store.Added, Revision: o.Revision, Object: o} }

func modified(prev, o *object) event {
	return event{Type: store.Modified, Revision: o.Revision, Object: o, Prev: prev}
}

func deleted(prev, gone *object) event {
	return event{Type: store.Deleted, Revision: gone.Revision, Object: gone, Prev: prev}
}
